package sentineltest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/topology"
)

func TestMain(m *testing.M) { topology.Main(m) }

func TestSentinel(t *testing.T) {
	group := topology.StartSentinel(t, topology.SentinelOptions{DownAfter: 15 * time.Second}) // nobody is to fail over
	addrs, master := group.Addrs()
	t.Run("suite", func(t *testing.T) {
		conformance.Exercise(t, func(t *testing.T) redis.UniversalClient {
			client := redis.NewFailoverClient(&redis.FailoverOptions{
				SentinelAddrs: addrs, MasterName: master, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
			})
			t.Cleanup(func() {
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
			return client
		})
	})
}
