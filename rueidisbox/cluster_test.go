package rueidisbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/topology"
	"github.com/signalbox-io/signalbox/rueidisbox"
)

// open returns a Box of a process of its own.
func open(t *testing.T, cluster *topology.Cluster) *signalbox.Box {
	t.Helper()
	var addrs []string
	for _, n := range cluster.Nodes() {
		addrs = append(addrs, n.Addr)
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs})
	if err != nil {
		t.Fatal(err)
	}
	box := rueidisbox.New(client, signalbox.Claim(3*time.Minute)) // no heartbeat comes in time
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
		client.Close()
	})
	return box
}

// Heartbeats are so far apart that the turns are not taken in time unless everybody hears of its own.
func TestHandoffsTellOtherNodesNothing(t *testing.T) {
	t.Parallel()
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second, Replicas: -1})
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	before := cluster.PassedOn()
	const processes, names, turns = 3, 5, 20
	var all sync.WaitGroup
	for range processes {
		box := open(t, cluster)
		for name := range names {
			all.Go(func() {
				for range turns {
					if err := box.Mutex(fmt.Sprint("m", name)).Do(ctx, func(context.Context) error { return nil }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if n := cluster.PassedOn() - before; n != 0 {
		t.Errorf("%d handoffs had the nodes pass on %d messages", processes*names*turns, n)
	}
}

// The slot moves between an acquire that waits and the release: the waiter hears at the new node.
func TestASlotMovesWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second, Replicas: -1})
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	holder, waiter := open(t, cluster), open(t, cluster)
	for round := range 4 {
		first, err := holder.Mutex("m").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		waits, turn := make(chan signalbox.Waiting, 10), make(chan *signalbox.Lease, 1)
		go func() {
			lease, err := waiter.Mutex("m").Acquire(ctx, signalbox.OnWait(func(w signalbox.Waiting) { waits <- w }))
			if err != nil {
				t.Error(err)
			}
			turn <- lease
		}()
		<-waits
		released := make(chan error, 1)
		release := func() { released <- first.Release(ctx) }
		cluster.MigrateSlot("m", func(stage topology.Stage) {
			if topology.Stage(round) == stage { // in each stage once, and once afterwards
				go release()
			}
		})
		if round == 3 {
			go release()
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
		next := <-turn
		if next == nil {
			t.Fatal("a turn was lost")
		}
		if err := next.Release(ctx); err != nil {
			t.Error(err)
		}
	}
}
