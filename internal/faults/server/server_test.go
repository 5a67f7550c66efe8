//go:build unix

package server_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(holderURL); url != "" {
		hold(url)
		return
	}
	faults.Main(m)
}

// site is one server and a load on it.
type site struct {
	*faults.Load
	*difftest.Server
	client *redis.Client
	url    string // for who waits for an answer as long as it takes
}

// start begins the test. noFailure says that no caller may notice the fault.
func start(t *testing.T, noFailure bool) *site {
	t.Helper()
	faults.Begin(t)
	redisServer := difftest.Redis(t)
	client := redis.NewClient(&redis.Options{
		Addr: redisServer.Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	well := "redis://" + redisServer.Addr
	url := well
	if !noFailure {
		url = faults.WithOption(url, "read_timeout=200ms")
	}
	return &site{
		Load: faults.StartLoad(t, faults.Setup{
			URL: url, Well: well, NoFailure: noFailure,
			Servers: func() []*redis.Client { return []*redis.Client{client} },
		}),
		Server: redisServer, client: client, url: well,
	}
}
