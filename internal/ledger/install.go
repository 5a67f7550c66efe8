package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// Installed is what one server has of a library of functions.
type Installed struct {
	Server    string // its address as the connection knows it, "" if it does not tell
	Software  string // such as "Redis 7.0.15"
	Version   int    // of the library, 0 if it is not installed
	Functions []InstalledFunction
}

// InstalledFunction is one function of it.
type InstalledFunction struct {
	Name        string
	Description string
}

// Functions says what each primary has of the library.
func (l *Ledger) Functions(ctx context.Context) ([]Installed, error) {
	return permits.Look(ctx, l.transport)
}

// InstallFunctions puts the library on every primary: see FunctionLibrary.Install.
func (l *Ledger) InstallFunctions(ctx context.Context) ([]Installed, error) {
	return permits.Install(ctx, l.transport)
}

// DeleteFunctions removes the library from every primary.
func (l *Ledger) DeleteFunctions(ctx context.Context) ([]Installed, error) {
	return permits.Delete(ctx, l.transport)
}

// withoutFunctions says so of a server that does not know them.
func withoutFunctions(server Installed, err error) error {
	if !transport.HasPrefix(err, "unknown command") {
		return err
	}
	return fmt.Errorf("%w: %s (%s) has no functions; Redis 7.0 or newer and Valkey have them, unless FUNCTION was renamed: %w",
		ErrUnsupportedServer, server.Server, server.Software, err)
}

func do(ctx context.Context, server transport.Doer, words ...any) error {
	_, err := server.Do(ctx, transport.Command{Words: words})
	return err
}

// software says what a server is. One that does not tell this account is just that.
func software(ctx context.Context, server transport.Doer) (string, error) {
	reply, err := server.Do(ctx, transport.Command{Words: []any{"info", "server"}})
	if transport.HasPrefix(err, "NOPERM") {
		return "the server", nil
	}
	if err != nil {
		return "the server", err
	}
	info, _ := reply.(string)
	told := infoFields(info)
	if version := told["valkey_version"]; version != "" {
		return "Valkey " + version, nil
	}
	return "Redis " + told["redis_version"], nil
}

// address is the server's end of the connection: in a Cluster, which node it is.
func address(ctx context.Context, server transport.Doer) (string, error) {
	reply, err := server.Do(ctx, transport.Command{Words: []any{"client", "info"}})
	if transport.HasPrefix(err, "NOPERM") || transport.HasPrefix(err, "unknown") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	line, _ := reply.(string)
	for word := range strings.FieldsSeq(line) {
		if at, ok := strings.CutPrefix(word, "laddr="); ok {
			return strings.TrimSuffix(at, ":0"), nil // as a Unix socket ends
		}
	}
	return "", nil
}

// fields reads a map as client libraries return it: as a map of RESP3, or as names and values by turns.
func fields(value any) map[string]any {
	found := make(map[string]any)
	switch value := value.(type) {
	case map[string]any:
		return value
	case map[any]any:
		for name, v := range value {
			if text, ok := name.(string); ok {
				found[text] = v
			}
		}
	case []any:
		for i := 0; i+1 < len(value); i += 2 {
			if text, ok := value[i].(string); ok {
				found[text] = value[i+1]
			}
		}
	}
	return found
}
