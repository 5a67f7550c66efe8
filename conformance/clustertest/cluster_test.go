package clustertest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/topology"
)

func TestMain(m *testing.M) { topology.Main(m) }

// TestCluster: each subtest has names of its own, so that they spread over the slots of all primaries.
func TestCluster(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second}) // nobody is to fail over
	t.Run("suite", func(t *testing.T) {
		conformance.Exercise(t, func(t *testing.T) redis.UniversalClient {
			client := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs:      strings.Split(strings.TrimPrefix(cluster.URL(), "redis+cluster://"), ","),
				MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Minute, // contexts decide
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() {
				if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
			return client
		})
	})
	for _, primary := range cluster.Primaries() {
		scripts, err := primary.Client.Info(t.Context(), "commandstats").Result()
		if err != nil || !strings.Contains(scripts, "cmdstat_evalsha") {
			t.Errorf("no transition ran on %s: %v", primary.Addr, err)
		}
	}
}
