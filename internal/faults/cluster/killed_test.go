package cluster_test

import (
	"testing"
	"time"
)

// TestClusterClientsKilled: a client of a Cluster likes to send again by itself what got no answer. The nodes' own
// connections are spared.
func TestClusterClientsKilled(t *testing.T) {
	s := start(t, false)
	nodes, killed := s.Nodes(), int64(0)
	s.Repeat(5*time.Millisecond, 20, func() {
		for _, node := range nodes {
			for _, kind := range []string{"normal", "pubsub"} {
				n, err := node.Client.ClientKillByFilter(t.Context(), "TYPE", kind).Result()
				if err != nil {
					t.Error(err)
				}
				killed += n
			}
		}
	})
	if killed < 100 {
		t.Errorf("only %d connections were killed", killed)
	}
	s.Finish()
}
