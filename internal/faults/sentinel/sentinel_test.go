package sentinel_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// site is a Sentinel group and a load on it.
type site struct {
	*faults.Load
	*topology.Sentinel
}

func start(t *testing.T) *site {
	t.Helper()
	faults.Begin(t)
	group := topology.StartSentinel(t, topology.SentinelOptions{})
	return &site{faults.StartLoad(t, faults.Setup{
		URL: faults.WithOption(group.URL(), "read_timeout=500ms"), Well: group.URL(),
		Servers: func() []*redis.Client { return []*redis.Client{group.Primary().Client} },
	}), group}
}
