package ledger

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// CheckServer makes sure that the server can run the transitions: Redis 7.0 or newer, or Valkey. An account that may
// not call INFO is let through: the transitions will speak for themselves. eviction is the policy by which the server
// removes keys when its memory is full, "" if it removes none: then it refuses to take more. A lease whose keys are removed
// is another's.
func (l *Ledger) CheckServer(ctx context.Context) (eviction string, err error) {
	reply, err := l.transport.Do(ctx, transport.Command{Words: []any{"info", "server", "memory"}, Within: l.within})
	switch {
	case err == nil:
		text, _ := reply.(string) // anything else is no server we know
		told := infoFields(text)
		return evictionOf(told), checkVersion(told)
	case transport.HasPrefix(err, "NOPERM"):
		return "", nil
	case transport.HasPrefix(err, "syntax error"): // servers older than 7.0 know one section at a time
		version := "older than 7.0"
		reply, _ = l.transport.Do(ctx, transport.Command{Words: []any{"info", "server"}, Within: l.within}) // to say which
		if text, _ := reply.(string); infoFields(text)["redis_version"] != "" {
			version = infoFields(text)["redis_version"]
		}
		return "", tooOld(version)
	}
	return "", classify("ask the server for its version", err)
}

func evictionOf(told map[string]string) string {
	if limit := told["maxmemory"]; limit == "" || limit == "0" || told["maxmemory_policy"] == "noeviction" {
		return ""
	}
	return told["maxmemory_policy"]
}

func checkVersion(told map[string]string) error {
	if told["valkey_version"] != "" {
		return nil
	}
	version := told["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return tooOld(version)
	}
	return nil
}

func tooOld(version string) error {
	return fmt.Errorf("%w: found Redis %q, need Redis 7.0 or newer, or Valkey", ErrUnsupportedServer, version)
}

// infoFields reads the reply to INFO.
func infoFields(info string) map[string]string {
	told := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":"); ok {
			told[key] = value
		}
	}
	return told
}
