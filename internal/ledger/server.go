package ledger

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// CheckServer makes sure that the server can run the transitions: Redis 7.0 or newer, or Valkey. An account that may
// not call INFO is let through: the transitions will speak for themselves.
func (l *Ledger) CheckServer(ctx context.Context) error {
	info, err := l.client.Info(ctx, "server").Result()
	switch {
	case err == nil:
		return checkInfo(info)
	case redis.HasErrorPrefix(err, "NOPERM"):
		return nil
	}
	return classify("ask the server for its version", err)
}

func checkInfo(info string) error {
	fields := make(map[string]string)
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":"); ok {
			fields[key] = value
		}
	}
	if fields["valkey_version"] != "" {
		return nil
	}
	version := fields["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return fmt.Errorf("%w: found Redis %q, need Redis 7.0 or newer, or Valkey", ErrUnsupportedServer, version)
	}
	return nil
}
