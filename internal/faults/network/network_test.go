package network_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

func TestMain(m *testing.M) { faults.Main(m) }

// site is one server with a proxy in front of it, and a load that goes through the proxy.
type site struct {
	*faults.Load
	proxy  *faultproxy.Proxy
	server *redis.Client // past the proxy
	url    string        // through the proxy, for who waits for an answer as long as it takes
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
	proxy := faultproxy.Start(t, redisServer.Addr)
	through := "redis://" + proxy.Addr()
	url := through
	if !noFailure {
		url = faults.WithOption(url, "read_timeout=200ms")
	}
	return &site{
		Load: faults.StartLoad(t, faults.Setup{
			URL: url, Well: "redis://" + redisServer.Addr, NoFailure: noFailure,
			Servers: func() []*redis.Client { return []*redis.Client{client} },
		}),
		proxy: proxy, server: client, url: through,
	}
}

// suffer has a fault felt several times, with a good moment between.
func (s *site) suffer(fault faultproxy.Fault) {
	for range 3 {
		s.proxy.Set(fault)
		s.Failures(10)
		s.proxy.Restore()
		s.Turns(1)
	}
}
