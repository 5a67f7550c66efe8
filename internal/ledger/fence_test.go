package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// A guarded command that fails has done nothing, and so its token has not been there.
func TestFenceForgetsWhatFailed(t *testing.T) {
	t.Parallel()
	for name, options := range servers(t) {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(options)
			defer client.Close()
			l := ledger.New(goredis.New(client))
			run := func(token int64, keep time.Duration, command string, args ...any) (newest int64, err error) {
				request := ledger.FenceRequest{Key: "guarded", Token: token, Keep: keep, Command: command, Args: args}
				_, newest, err = l.Fence(t.Context(), &request)
				return newest, err
			}
			if _, err := run(1, time.Minute, "set", "old"); err != nil {
				t.Fatal(err)
			}
			for what, fails := range map[string]func() (int64, error){
				"another type":       func() (int64, error) { return run(2, time.Minute, "lpush", "x") },
				"an unknown command": func() (int64, error) { return run(2, time.Minute, "sett", "x") },
				"too many arguments": func() (int64, error) { return run(2, time.Minute, "lpush", slices.Repeat([]any{"x"}, 9000)...) },
				"no time":            func() (int64, error) { return run(2, 0, "set", "new") },
			} {
				if _, err := fails(); !errors.Is(err, ledger.ErrServer) {
					t.Errorf("%s: got %v", what, err)
				}
				if newest, err := run(1, time.Minute, "set", "old"); newest != 0 || err != nil {
					t.Errorf("after %s: refused for %d, %v", what, newest, err)
				}
			}
			if value := client.Get(t.Context(), "guarded").Val(); value != "old" {
				t.Errorf("the value is %q", value)
			}
			if newest, err := run(2, time.Minute, "del"); newest != 0 || err != nil {
				t.Errorf("a newer token: %d, %v", newest, err)
			}
			if newest, err := run(1, time.Minute, "set", "old"); newest != 2 || err != nil {
				t.Errorf("the older one after it: refused for %d, %v", newest, err)
			}
		})
	}
}

func TestEvictionIsTold(t *testing.T) {
	t.Parallel()
	for name, options := range servers(t) {
		t.Run(name, func(t *testing.T) {
			client := redis.NewClient(options)
			defer client.Close()
			l := ledger.New(goredis.New(client))
			for _, c := range []struct{ bytes, policy, want string }{
				{"0", "allkeys-lru", ""}, {"100mb", "noeviction", ""}, {"100mb", "volatile-ttl", "volatile-ttl"},
			} {
				for setting, value := range map[string]string{"maxmemory": c.bytes, "maxmemory-policy": c.policy} {
					if err := client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
						t.Fatal(err)
					}
				}
				if policy, err := l.CheckServer(t.Context()); policy != c.want || err != nil {
					t.Errorf("%s bytes, %s: got %q, %v", c.bytes, c.policy, policy, err)
				}
			}
		})
	}
}
