package clustertest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/topology"
)

func TestMain(m *testing.M) { topology.Main(m) }

// connect returns a client that is closed with the test, unless the test has closed it.
func connect(t *testing.T, cluster *topology.Cluster) redis.UniversalClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:      strings.Split(strings.TrimPrefix(cluster.URL(), "redis+cluster://"), ","),
		MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return client
}

// TestCluster: each subtest has names of its own, so that they spread over the slots of all primaries.
func TestCluster(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second}) // nobody is to fail over
	t.Run("suite", func(t *testing.T) {
		conformance.Exercise(t, func(t *testing.T) redis.UniversalClient {
			return connect(t, cluster)
		})
	})
	for _, primary := range cluster.Primaries() {
		scripts, err := primary.Client.Info(t.Context(), "commandstats").Result()
		if err != nil || !strings.Contains(scripts, "cmdstat_evalsha") {
			t.Errorf("no transition ran on %s: %v", primary.Addr, err)
		}
	}
}
