package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// Installed is what one server has of the Functions library.
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
	return l.eachLibrary(ctx, "list the functions", keep)
}

// keep leaves a library as it is.
func keep(context.Context, transport.Doer, *Installed) error { return nil }

// InstallFunctions puts the library on every primary, and returns what each had before. If one has a newer version than
// this, it fails with ErrNewer and changes nothing.
func (l *Ledger) InstallFunctions(ctx context.Context) ([]Installed, error) {
	const doing = "install the functions"
	before, err := l.eachLibrary(ctx, doing, keep)
	if err != nil {
		return nil, err
	}
	for _, server := range before {
		if server.Version > LibraryVersion {
			return nil, fmt.Errorf("%s: %w: %s has version %d, this is version %d",
				doing, ErrNewer, server.Server, server.Version, LibraryVersion)
		}
	}
	source := Library()
	return l.eachLibrary(ctx, doing, func(ctx context.Context, server transport.Doer, _ *Installed) error {
		return do(ctx, server, "function", "load", "replace", source)
	})
}

// DeleteFunctions removes the library from every primary, and returns what each had before.
func (l *Ledger) DeleteFunctions(ctx context.Context) ([]Installed, error) {
	return l.eachLibrary(ctx, "delete the functions", func(ctx context.Context, server transport.Doer, was *Installed) error {
		if was.Version == 0 {
			return nil
		}
		return do(ctx, server, "function", "delete", LibraryName)
	})
}

// eachLibrary looks at each primary's library and calls change.
func (l *Ledger) eachLibrary(
	ctx context.Context, doing string, change func(context.Context, transport.Doer, *Installed) error,
) ([]Installed, error) {
	var all []Installed
	err := l.transport.EachPrimary(ctx, func(ctx context.Context, server transport.Doer) error {
		installed, err := look(ctx, server)
		if err == nil {
			err = change(ctx, server, &installed)
		}
		if err != nil {
			return withoutFunctions(installed, err)
		}
		all = append(all, installed)
		return nil
	})
	if err != nil {
		return nil, classify(doing, err)
	}
	slices.SortFunc(all, func(a, b Installed) int { return strings.Compare(a.Server, b.Server) })
	return all, nil
}

// withoutFunctions says so of a server that does not know them.
func withoutFunctions(server Installed, err error) error {
	if !transport.HasPrefix(err, "unknown command") {
		return err
	}
	return fmt.Errorf("%w: %s (%s) has no functions; Redis 7.0 or newer and Valkey have them, unless FUNCTION was renamed: %w",
		ErrUnsupportedServer, server.Server, server.Software, err)
}

func look(ctx context.Context, server transport.Doer) (Installed, error) {
	var found Installed
	var err error
	if found.Software, err = software(ctx, server); err != nil {
		return found, err
	}
	if found.Server, err = address(ctx, server); err != nil {
		return found, err
	}
	reply, err := server.Do(ctx, transport.Command{Words: []any{"function", "list", "libraryname", LibraryName}})
	if err != nil {
		return found, err
	}
	libraries, _ := reply.([]any)
	if len(libraries) == 0 {
		return found, nil
	}
	functions, _ := fields(libraries[0])["functions"].([]any)
	for _, f := range functions {
		name, _ := fields(f)["name"].(string)
		description, _ := fields(f)["description"].(string)
		found.Functions = append(found.Functions, InstalledFunction{name, description})
	}
	slices.SortFunc(found.Functions, func(a, b InstalledFunction) int { return strings.Compare(a.Name, b.Name) })
	if !slices.ContainsFunc(found.Functions, func(f InstalledFunction) bool { return f.Name == versionFunction }) {
		return found, fmt.Errorf("%w: %s has a library named %s that is not ours: remove it with FUNCTION DELETE %s",
			ErrServer, found.Server, LibraryName, LibraryName)
	}
	reply, err = server.Do(ctx, transport.Command{Words: []any{"fcall_ro", versionFunction, 0}})
	if err != nil {
		return found, err
	}
	version, ok := reply.(int64)
	if !ok || version < 1 {
		return found, unexpected("ask for the version", versionFunction, reply)
	}
	found.Version = int(version)
	return found, nil
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
