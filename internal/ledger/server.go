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
// not call INFO is let through: the transitions will speak for themselves.
func (l *Ledger) CheckServer(ctx context.Context) error {
	reply, err := l.transport.Do(ctx, transport.Command{Words: []any{"info", "server"}})
	switch {
	case err == nil:
		info, _ := reply.(string) // anything else is no server we know
		return checkInfo(info)
	case transport.HasPrefix(err, "NOPERM"):
		return nil
	}
	return classify("ask the server for its version", err)
}

func checkInfo(info string) error {
	told := infoFields(info)
	if told["valkey_version"] != "" {
		return nil
	}
	version := told["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fmt.Errorf("%w: found Redis %q, need Redis 7.0 or newer, or Valkey", ErrUnsupportedServer, version)
	}
	return nil
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
