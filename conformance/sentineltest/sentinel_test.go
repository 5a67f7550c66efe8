package sentineltest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/topology"
)

func TestMain(m *testing.M) { topology.Main(m) }

// connect returns a client that is closed with the test, unless the test has closed it.
func connect(t *testing.T, group *topology.Sentinel) redis.UniversalClient {
	addrs, master := group.Addrs()
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		SentinelAddrs: addrs, MasterName: master, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
	})
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return client
}

func TestSentinel(t *testing.T) {
	group := topology.StartSentinel(t, topology.SentinelOptions{DownAfter: 15 * time.Second}) // nobody is to fail over
	t.Run("suite", func(t *testing.T) {
		conformance.Exercise(t, func(t *testing.T) redis.UniversalClient { return connect(t, group) })
	})
}
