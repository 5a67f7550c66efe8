package clustertest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/topology"
	"github.com/signalbox-io/signalbox/queue"
)

func open(t *testing.T, cluster *topology.Cluster, options ...signalbox.Option) *signalbox.Box {
	t.Helper()
	box := signalbox.New(connect(t, cluster), options...)
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	return box
}

// Turns that several processes take at several resources have the nodes tell each other nothing. Heartbeats are so far apart
// that the turns are not taken in time unless everybody hears of its own.
func TestHandoffsTellOtherNodesNothing(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second, Replicas: -1})
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	before := cluster.PassedOn()
	const processes, names, turns = 4, 5, 20
	var all sync.WaitGroup
	for range processes {
		box := open(t, cluster, signalbox.Claim(3*time.Minute))
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

// hearers is how many channels of a resource or a queue a node knows.
func hearers(t *testing.T, n *topology.Node, tag string) int {
	t.Helper()
	channels, err := n.Client.PubSubShardChannels(t.Context(), "*{"+tag+"}*").Result()
	if err != nil {
		t.Error(err)
	}
	return len(channels)
}

// Whoever waits while the slot moves hears at its new place, and what was told meanwhile is asked for.
func TestASlotMovesWhileSomebodyWaits(t *testing.T) {
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
		to := cluster.MigrateSlot("m", func(stage topology.Stage) {
			if topology.Stage(round) == stage { // in each stage once, and once afterwards
				go release()
			}
		})
		if round == 3 {
			until(t, ctx, "the waiter hears at the new node", func() bool { return hearers(t, to, "m") > 0 })
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

func until(t *testing.T, ctx context.Context, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("not in time: " + what)
		}
	}
}

// Jobs that are handed to idle workers, and results that are waited for, have the nodes tell each other nothing either.
func TestJobsTellOtherNodesNothing(t *testing.T) {
	cluster := topology.StartCluster(t, topology.ClusterOptions{NodeTimeout: 15 * time.Second, Replicas: -1})
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	echo := queue.Define[string, string]("echo")
	before := cluster.PassedOn()
	for name := range 3 {
		process := func() *queue.Queue {
			q, err := queue.New(connect(t, cluster), fmt.Sprint("q", name), queue.Lease(time.Hour)) // heartbeats are minutes apart
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			})
			return q
		}
		w := process().Worker("w", queue.Slots(1))
		echo.Handle(w, func(_ context.Context, j *queue.Job[string]) (string, error) { return j.Args, nil })
		go func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		producer := process()
		for range 20 {
			job, err := echo.Enqueue(ctx, producer, "x")
			if err == nil {
				_, err = job.Wait(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := cluster.PassedOn() - before; n != 0 {
		t.Errorf("60 jobs had the nodes pass on %d messages", n)
	}
}
