package signalbox_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// What one process with very many leases and waiters costs: requests, goroutines, connections. What is counted is counted
// in virtual time, so that nothing depends on how fast the machine is.

// underRace says that the race detector makes everything several times as slow: then numbers are smaller.
var underRace bool

func scaled(n int) int {
	if underRace {
		return n / 10
	}
	return n
}

// traffic counts what a client sends, but for how it greets on a new connection.
type traffic struct{ singles, pipelines, piped atomic.Int64 }

func (c *traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" {
			c.singles.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.pipelines.Add(1)
		c.piped.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func (c *traffic) reset() {
	c.singles.Store(0)
	c.pipelines.Store(0)
	c.piped.Store(0)
}

// countedBox is a Box on an engine of its own, and what it sends.
func countedBox(t *testing.T) (box *signalbox.Box, sent *traffic, server *engine.Engine) {
	t.Helper()
	server, err := engine.Open(engine.Options{})
	must(t, err)
	client := redis.NewClient(&redis.Options{
		Dialer:     func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
		MaxRetries: -1, DisableIdentity: true, Addr: "engine",
		// Nobody waits for a connection: go-redis would take timers of this bubble into a pool that other tests share.
		PoolSize:                 6000,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	sent = &traffic{}
	client.AddHook(sent)
	box = signalbox.New(client)
	t.Cleanup(func() {
		must(t, box.Close())
		must(t, client.Close())
		must(t, server.Close())
	})
	return box, sent, server
}

func TestTenThousandLeases(t *testing.T) {
	n := scaled(10000)
	for name, test := range map[string]struct {
		lease    func(box *signalbox.Box, i int) *signalbox.Semaphore
		commands int // in a round of renewals
	}{
		"of one semaphore": {
			func(box *signalbox.Box, _ int) *signalbox.Semaphore { return box.Semaphore("s", n) }, n / 500,
		},
		"of as many names": {
			func(box *signalbox.Box, i int) *signalbox.Semaphore { return box.Semaphore(strconv.Itoa(i), 1) }, n,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { holdMany(t, n, test.commands, test.lease) })
		})
	}
}

func holdMany(t *testing.T, n, commands int, of func(box *signalbox.Box, i int) *signalbox.Semaphore) {
	box, sent, _ := countedBox(t)
	const ttl, rounds = 30 * time.Second, 3
	hold := func(i int) *signalbox.Lease {
		lease, err := of(box, i).TryAcquire(t.Context(), signalbox.TTL(ttl))
		must(t, err)
		return lease
	}
	leases := []*signalbox.Lease{hold(0)}
	time.Sleep(ttl / 3) // from here on there is a keeper, and the server knows the scripts
	synctest.Wait()
	before := runtime.NumGoroutine()
	for i := range n - 1 {
		leases = append(leases, hold(i+1))
	}
	synctest.Wait()
	if now := runtime.NumGoroutine(); now > before+2 {
		t.Errorf("%d goroutines with one lease, %d with %d", before, now, n)
	}
	sent.reset()
	time.Sleep(rounds*ttl/3 + time.Millisecond)
	synctest.Wait()
	// 500 leases go in a request or a pipeline, and several of these in one if the lane is full. A round may begin early by
	// an eighth of its time, so that one more fits in. A lane begins with small batches, until it knows its server.
	const small = 16
	if got, most := sent.pipelines.Load(), int64((rounds+1)*n/500+small); got == 0 || got > most {
		t.Errorf("%d pipelines in %d rounds, want %d at most", got, rounds, most)
	}
	if got, least := sent.piped.Load(), int64(rounds*commands); got < least {
		t.Errorf("%d commands in %d rounds, want at least %d: this test counts the wrong thing", got, rounds, least)
	}
	if got, most := sent.piped.Load(), int64((rounds+1)*commands); got > most || sent.singles.Load() != 0 {
		t.Errorf("%d commands in pipelines and %d single ones, want %d at most and none", got, sent.singles.Load(), most)
	}
	for _, lease := range leases {
		must(t, lease.Release(t.Context()))
	}
	forgotten(t, box)
}

// forgotten checks that the box has nothing left of what was acquired.
func forgotten(t *testing.T, box *signalbox.Box) {
	t.Helper()
	if lives, relays, alarms := box.Remembered(); lives+relays+alarms != 0 {
		t.Errorf("the box remembers %d lives, %d relays, %d alarms, and all is over", lives, relays, alarms)
	}
}

func TestFiveThousandWaitersOfOneMutex(t *testing.T) {
	n := scaled(5000)
	synctest.Test(t, func(t *testing.T) {
		box, sent, server := countedBox(t)
		mutex := box.Mutex("m")
		first, err := mutex.Acquire(t.Context())
		must(t, err)
		inside, turns, last := 0, 0, first.Token() // guarded by the mutex alone
		var waiters sync.WaitGroup
		for range n {
			waiters.Go(func() {
				lease, err := mutex.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				turns++
				if inside++; inside != 1 || lease.Token() <= last {
					t.Errorf("%d inside, token %d after %d", inside, lease.Token(), last)
				}
				inside--
				last = lease.Token()
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		subscriptions(t, server, 1)
		const seconds = 5
		sent.reset()
		time.Sleep(seconds * time.Second) // a heartbeat each
		synctest.Wait()
		if got, most := sent.pipelines.Load(), int64((seconds+2)*(n/500+1)); got > most || sent.singles.Load() > most {
			t.Errorf("%d pipelines and %d single commands in %d s of %d waiters, want %d at most",
				got, sent.singles.Load(), seconds, n, most)
		}
		if got, least := sent.piped.Load()+sent.singles.Load(), int64((seconds-1)*(n/500)); got < least {
			t.Errorf("%d heartbeats, want at least %d: this test counts the wrong thing", got, least)
		}
		must(t, first.Release(t.Context()))
		waiters.Wait()
		if turns != n {
			t.Errorf("%d of %d had their turn", turns, n)
		}
		subscriptions(t, server, 1)
		forgotten(t, box)
	})
}

// subscriptions checks how many channels are subscribed to, which are all inboxes.
func subscriptions(t *testing.T, server *engine.Engine, want int) {
	t.Helper()
	reply, err := server.Do(t.Context(), "PUBSUB", "CHANNELS")
	must(t, err)
	if got := reply.Len(); got != want {
		t.Errorf("%d channels are subscribed to, want %d", got, want)
	}
}

// TestThousandGoroutinesHandOff is on both servers: which of the ways a permit passes is left to the moment.
func TestThousandGoroutinesHandOff(t *testing.T) {
	onEach(t, func(t *testing.T, box *signalbox.Box) {
		n, mutex := scaled(1000), box.Mutex("m")
		inside, turns, last := 0, 0, int64(0) // guarded by the mutex alone: the race detector watches
		var workers sync.WaitGroup
		for range n {
			workers.Go(func() {
				lease, err := mutex.Acquire(context.Background(), signalbox.LocalHandoff(100))
				if err != nil {
					t.Error(err)
					return
				}
				turns++
				if inside++; inside != 1 || lease.Token() <= last {
					t.Errorf("%d inside, token %d after %d", inside, lease.Token(), last)
				}
				last = lease.Token()
				inside--
				if err := lease.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		if turns != n {
			t.Errorf("%d of %d had their turn", turns, n)
		}
		forgotten(t, box)
		idle(t, box, "m")
	})
}

// Those who stand together follow one another on one lease: the server is asked a few times for each hundred.
func TestHandoffsCostNoRequest(t *testing.T) {
	const n, together = 1000, 100
	synctest.Test(t, func(t *testing.T) {
		box, sent, _ := countedBox(t)
		mutex := box.Mutex("m")
		must(t, mutex.Do(t.Context(), func(context.Context) error { return nil })) // now the server knows the scripts
		first, err := mutex.Acquire(t.Context())
		must(t, err)
		var workers sync.WaitGroup
		for range n {
			workers.Go(func() {
				lease, err := mutex.Acquire(t.Context(), signalbox.LocalHandoff(together))
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		sent.reset()
		must(t, first.Release(t.Context()))
		workers.Wait()
		// One lease serves the one who brought it and a hundred after. It costs an acquire, a release, and sometimes one
		// more request, if the next has asked before this one is given back.
		if got, most := sent.singles.Load()+sent.piped.Load(), int64(3*(n/together)+3); got > most {
			t.Errorf("%d commands for %d turns, want %d at most", got, n, most)
		}
	})
}

// BenchmarkMemoryOfALease tells what a lease costs in this process; the server is another.
func BenchmarkMemoryOfALease(b *testing.B) {
	box := openBox(b, difftest.Redis(b).Addr)
	const n = 10000
	for b.Loop() {
		before := heap()
		var leases []*signalbox.Lease
		for i := range n {
			lease, err := box.Mutex(fmt.Sprint(i)).Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			leases = append(leases, lease)
		}
		b.ReportMetric(float64(heap()-before)/n, "B/lease")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
		for _, lease := range leases {
			if err := lease.Release(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// heap is how much of it is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what was pooled goes with the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
