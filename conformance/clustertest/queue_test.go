package clustertest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/conformance"
	"github.com/signalbox-io/signalbox/internal/topology"
	"github.com/signalbox-io/signalbox/queue"
)

// TestQueue: each queue has a name of its own, so that they spread over the slots of all primaries.
func TestQueue(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second, Replicas: -1}) // nobody is to fail over
	t.Run("suite", func(t *testing.T) {
		conformance.ExerciseQueue(t, func(t *testing.T) redis.UniversalClient { return connect(t, cluster) })
	})
}

// What is about a slot that moves and a primary that is replaced is one load on one Cluster.
func TestQueueWhileTheClusterChanges(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{})
	load := conformance.StartQueueLoad(t, "app", func(t *testing.T) redis.UniversalClient { return connect(t, cluster) })
	refused := func() (sum int) {
		for _, n := range cluster.Nodes() {
			sum += n.Refusals(t, "TRYAGAIN")
		}
		return sum
	}
	for range 3 {
		before := refused()
		cluster.MigrateSlot("app", func(stage topology.Stage) {
			if stage == topology.OneMoved {
				load.Until("the queue feels that its slot moves", func() bool { return refused() > before })
			}
		})
		load.Turns(50)
	}
	cluster.Failover("app")
	load.Turns(50)
	primary := cluster.PrimaryOf("app")
	primary.Quiesce(t)
	primary.Kill()
	cluster.AwaitTakeover("app", primary)
	load.Turns(50)
	load.Finish()
}

// Partitions are where the Cluster has room: every primary has some of them.
func TestPartitionsSpread(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second, Replicas: -1})
	for _, n := range []int{8, 16, 32} {
		p, err := queue.NewPartitions(connect(t, cluster), "app", n)
		if err != nil {
			t.Fatal(err)
		}
		on := map[string]int{}
		for _, q := range p {
			on[cluster.PrimaryOf(q.Name()).Addr]++
		}
		for _, primary := range cluster.Primaries() {
			if on[primary.Addr] < n/8 {
				t.Errorf("of %d partitions %s has %d", n, primary.Addr, on[primary.Addr])
			}
		}
		t.Log(n, on)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
