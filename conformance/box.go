package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

var boxPromises = map[string]func(*bench){
	"L1 L2 L3 under load":              underLoad,
	"L5 crashed holder":                crashedHolder,
	"L7 context ended before":          endedBefore,
	"L7 cancel while waiting":          cancelWhileWaiting,
	"L7 lost reply of a try":           lostReplyOfTry,
	"L7 lost reply of an acquire":      lostReplyOfAcquire,
	"L7 request later than the cancel": lateRequest,
	"L7 cancels racing grants":         cancelsRacingGrants,
	"lost reply of a release":          lostReplyOfRelease,
	"renewal":                          renewal,
	"renewal through passing failures": renewalRetries,
	"renewal later than the release":   lateRenewal,
	"force reaches the holder":         forceReachesHolder,
	"force reaches the waiter":         forceReachesWaiter,
	"close":                            closeEndsAll,
	"waiting is silent":                waitingIsSilent,
	"lost message":                     lostMessage,
	"server gone":                      serverGone,
	"try":                              tryIsBusy,
	"heavy is told":                    heavyIsTold,
	"place in the queue":               placeInQueue,
	"do":                               doEndsWithLease,
	"list":                             listNamesBusy,
}

// longClaim is for what a slow machine must not disturb: a waiter that gets no processor for so long is taken for dead.
const longClaim = 10 * time.Second

func (b *bench) lease(lease *signalbox.Lease, err error) *signalbox.Lease {
	b.Helper()
	b.must(err)
	return lease
}

func (b *bench) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got error %v, want %v", err, want)
	}
}

// start acquires in the background and returns when the acquisition stands in the queue.
func (b *bench) start(ctx context.Context, box *signalbox.Box, options ...signalbox.AcquireOption) <-chan error {
	b.Helper()
	before := b.inspect().Waiters
	done := make(chan error, 1)
	go func() {
		lease, err := box.Mutex(b.name).Acquire(ctx, options...)
		if err == nil {
			err = lease.Release(context.Background())
		}
		done <- err
	}()
	b.eventually("a waiter in the queue", func() bool { return b.inspect().Waiters > before })
	return done
}

func (b *bench) nothingLeft() {
	b.Helper()
	b.eventually("neither lease nor waiter left", func() bool {
		state := b.inspect()
		return state.Leases == 0 && state.Waiters == 0 && state.Held == 0
	})
}

// turn is one acquisition of many at once, on a clock that ticks whenever anybody does something.
type turn struct {
	began   int64 // before it asked
	arrived int64 // when it was known to stand in the queue, or to be granted
	token   int64
}

func underLoad(b *bench) {
	const limit, clients, turns = 5, 8, 60
	var held, clock atomic.Int64
	all := make([][turns]turn, clients)
	var workers sync.WaitGroup
	for client := range clients {
		semaphore := b.box(signalbox.Claim(longClaim)).Semaphore(b.name, limit)
		workers.Go(func() {
			for i := range turns {
				own := &all[client][i]
				own.began = clock.Add(1)
				weight := 1 + rand.IntN(3)
				lease, err := semaphore.Acquire(b.ctx, signalbox.Weight(weight), signalbox.OnWait(func(signalbox.Waiting) {
					own.arrived = cmp.Or(own.arrived, clock.Add(1))
				}))
				if err != nil {
					b.Error(err)
					return
				}
				if sum := held.Add(int64(weight)); sum > limit {
					b.Errorf("L1: %d of %d permits held", sum, limit)
				}
				own.arrived, own.token = cmp.Or(own.arrived, clock.Add(1)), lease.Token()
				held.Add(int64(-weight))
				if err := lease.Release(b.ctx); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.join(&workers)
	b.nothingLeft()
	var list []turn
	for _, client := range all {
		list = append(list, client[:]...)
	}
	b.inOrder(list)
}

// inOrder holds turns to the order of their tokens, which is that of the grants: no token twice (L2), and whoever had
// arrived before another began comes first (L3).
func (b *bench) inOrder(turns []turn) {
	b.Helper()
	slices.SortFunc(turns, func(x, y turn) int { return cmp.Compare(x.token, y.token) })
	latest := turn{} // of those granted so far, the one that began last
	for i, t := range turns {
		if i > 0 && t.token == turns[i-1].token {
			b.Errorf("L2: token %d was granted twice", t.token)
		}
		if t.arrived < latest.began {
			b.Errorf("L3: %+v was granted before %+v, which had arrived when it began", latest, t)
		}
		if t.began > latest.began {
			latest = t
		}
	}
}

func crashedHolder(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	holder := b.lease(box.Mutex(b.name).Acquire(b.ctx, b.ttl(500*time.Millisecond)))
	broken.loseRequests.Store(1 << 40) // from here on the holder is cut off
	next := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	b.is(holder.Err(), signalbox.ErrLeaseLost) // before the permit was given away, however late its timer is
	b.ends(holder)
	if next.Token() <= holder.Token() {
		b.Fatalf("L2: token %d after %d", next.Token(), holder.Token())
	}
	b.is(holder.Release(b.ctx), signalbox.ErrLeaseLost)
	broken.loseRequests.Store(0)
}

func endedBefore(b *bench) {
	var count faults
	box := b.hooked(&count)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err := box.Mutex(b.name).Acquire(ctx)
	b.is(err, context.Canceled)
	equal(b, "commands sent", count.sent.Load(), 0)
}

func cancelWhileWaiting(b *bench) {
	holder := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	ctx, cancel := context.WithCancel(b.ctx)
	done := b.start(ctx, b.box())
	cancel()
	err := awaited(b, "the end of the acquire", done)
	b.is(err, context.Canceled)
	if !strings.Contains(err.Error(), fmt.Sprintf("%q", b.name)) {
		b.Fatalf("the error does not name the resource: %v", err)
	}
	b.eventually("nobody in the queue", func() bool { return b.inspect().Waiters == 0 }) // a server that is busy hears of it later

	ctx, cancel = context.WithTimeout(b.ctx, 20*time.Millisecond)
	defer cancel()
	_, err = b.box().Mutex(b.name).Acquire(ctx)
	b.is(err, context.DeadlineExceeded)
	b.must(holder.Release(b.ctx))
	b.nothingLeft()
}

// knows has a Box met its server, so that nothing is sent any more but what it is asked for: a lease that is held would be
// renewed, or asked for when its server comes back.
func (b *bench) knows(box *signalbox.Box) {
	b.Helper()
	b.must(b.lease(box.Mutex(b.name + " first").Acquire(b.ctx)).Release(b.ctx))
}

func lostReplyOfTry(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	b.knows(box)
	broken.loseReplies.Store(1)
	_, err := box.Mutex(b.name).TryAcquire(b.ctx)
	b.is(err, signalbox.ErrUnavailable)
	b.nothingLeft()
}

func lostReplyOfAcquire(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	b.knows(box)
	broken.loseReplies.Store(1)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx))
	equal(b, "leases", b.inspect().Leases, 1)
	equal(b, "token", lease.Token(), b.inspect().Token)
	b.must(lease.Release(b.ctx))
	b.nothingLeft()
	// The first request might still be under way: it must find its id barred.
	answer := b.ask(lease.ID(), 1, 1)
	if answer.Token != 0 {
		b.Fatal("a request that arrived after its release was granted")
	}
}

func lateRequest(b *bench) {
	var slow faults
	box := b.hooked(&slow)
	b.knows(box)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open() // also when the test fails: nothing that hangs there could be closed
	slow.delay.Store(&gate)
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	before := slow.sent.Load()
	go func() {
		_, err := box.Mutex(b.name).Acquire(ctx)
		done <- err
	}()
	b.eventually("the request under way", func() bool { return slow.sent.Load() > before })
	slow.delay.Store(nil) // the cancel overtakes
	cancel()
	b.is(awaited(b, "the end of the acquire", done), context.Canceled)
	open()
	b.nothingLeft()
}

func cancelsRacingGrants(b *bench) {
	var workers sync.WaitGroup
	for range 6 {
		mutex := b.box().Mutex(b.name)
		workers.Go(func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(b.ctx, rand.N(2*time.Millisecond))
				lease, err := mutex.Acquire(ctx)
				cancel()
				if err == nil {
					err = lease.Release(b.ctx)
				} else if errors.Is(err, context.DeadlineExceeded) {
					err = nil
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.join(&workers)
	b.nothingLeft()
}

func lostReplyOfRelease(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx))
	broken.loseReplies.Store(1)
	b.must(lease.Release(b.ctx))
	b.must(lease.Release(b.ctx))
	b.is(lease.Err(), signalbox.ErrReleased)
	b.nothingLeft()
}

func renewal(b *bench) {
	ttl := b.lasting(2 * time.Second)
	lease := b.lease(b.box().Mutex(b.name).Acquire(b.ctx, signalbox.TTL(ttl)))
	first := lease.Deadline()
	b.eventually("a lease that outlives its ttl", func() bool {
		b.must(lease.Err())
		return lease.Deadline().Sub(first) > ttl
	})
	b.must(lease.Err())
	b.must(lease.Release(b.ctx))
}

func renewalRetries(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, b.ttl(5*time.Second)))
	first := lease.Deadline()
	broken.loseRequests.Store(3)
	b.eventually("a renewal after three failed", func() bool {
		b.must(lease.Err())
		return lease.Deadline().After(first)
	})
	b.must(lease.Err())
	b.must(lease.Release(b.ctx))
}

func lateRenewal(b *bench) {
	var slow faults
	box := b.hooked(&slow)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, b.ttl(3*time.Second)))
	first := lease.Deadline()
	b.eventually("a renewal, so that the server knows its script", func() bool {
		b.must(lease.Err())
		return lease.Deadline().After(first)
	})
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	defer open() // also when the test fails: nothing that hangs there could be closed
	slow.delay.Store(&gate)
	before := slow.sent.Load()
	b.eventually("another under way", func() bool { return slow.sent.Load() > before })
	slow.delay.Store(nil) // the release overtakes
	b.must(lease.Release(b.ctx))
	b.nothingLeft()
	next := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	open()
	b.must(box.Close()) // returns when the renewal has been answered
	b.is(lease.Err(), signalbox.ErrReleased)
	equal(b, "leases", b.inspect().Leases, 1)
	b.must(next.Err())
	b.must(next.Release(b.ctx))
	b.nothingLeft()
}

func forceReachesHolder(b *bench) {
	box := b.box()
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, b.ttl(4*time.Second)))
	ok, err := b.box().Force(b.ctx, b.name, lease.ID())
	b.must(err)
	equal(b, "ended", ok, true)
	b.ends(lease) // no inbox is open: the renewal is told
	b.is(lease.Err(), signalbox.ErrForced)
	b.is(lease.Release(b.ctx), signalbox.ErrForced)
}

func forceReachesWaiter(b *bench) {
	holder := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	done := b.start(b.ctx, b.box())
	ok, err := b.box().Force(b.ctx, b.name, b.inspect().Queue[0].ID)
	b.must(err)
	equal(b, "ended", ok, true)
	b.is(awaited(b, "the end of the waiter", done), signalbox.ErrForced)
	b.must(holder.Release(b.ctx))
	b.nothingLeft()
}

func closeEndsAll(b *bench) {
	box := b.box()
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx))
	done := b.start(b.ctx, box)
	b.must(box.Close())
	b.is(awaited(b, "the end of the waiter", done), signalbox.ErrClosed)
	b.is(lease.Err(), signalbox.ErrClosed)
	b.must(lease.Release(b.ctx))
	_, err := box.Mutex(b.name).TryAcquire(b.ctx)
	b.is(err, signalbox.ErrClosed)
	b.nothingLeft()
}

func waitingIsSilent(b *bench) {
	var count faults
	box := b.hooked(&count, signalbox.Claim(time.Minute))
	holder := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	done := b.start(b.ctx, box)
	// A script that the server has not seen is sent twice, so what counts is what was executed.
	b.eventually("the version, the place in the queue, and a heartbeat once the inbox is open", func() bool { return count.done.Load() == 3 })
	b.must(holder.Release(b.ctx))
	b.must(awaited(b, "the waiter's turn, and its release", done))
	equal(b, "commands executed", count.done.Load(), 4)
}

func lostMessage(b *bench) {
	holder := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	done := b.start(b.ctx, b.box())
	b.cutInboxes()
	b.must(holder.Release(b.ctx))
	b.must(awaited(b, "the waiter's turn", done))
}

// cutInboxes cuts every connection for messages, on every node of a Cluster.
func (b *bench) cutInboxes() {
	b.Helper()
	cut := func(ctx context.Context, node *redis.Client) error {
		return node.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err()
	}
	switch client := b.client.(type) {
	case *redis.ClusterClient:
		b.must(client.ForEachShard(b.ctx, cut))
	case *redis.Client:
		b.must(cut(b.ctx, client))
	default:
		b.Fatalf("a client of a kind that the suite does not know: %T", client)
	}
}

func serverGone(b *bench) {
	var broken faults
	holder := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	box := b.hooked(&broken, b.claim(time.Second)) // after so long it gives up
	done := b.start(b.ctx, box)
	broken.loseRequests.Store(1 << 40)
	b.is(awaited(b, "the end of the waiter", done), signalbox.ErrUnavailable)
	broken.loseRequests.Store(0)
	b.must(holder.Release(b.ctx))
	b.nothingLeft()
}

func tryIsBusy(b *bench) {
	box := b.box()
	b.lease(box.Semaphore(b.name, 3).TryAcquire(b.ctx, signalbox.Weight(2)))
	_, err := box.Semaphore(b.name, 3).TryAcquire(b.ctx, signalbox.Weight(2))
	var busy *signalbox.BusyError
	if !errors.As(err, &busy) || !errors.Is(err, signalbox.ErrBusy) {
		b.Fatalf("got %v, want a BusyError", err)
	}
	if busy.Held != 2 || busy.Limit != 3 || busy.RetryAfter <= 0 || busy.Resource != b.name {
		b.Fatalf("got %+v", busy)
	}
}

func heavyIsTold(b *bench) {
	box := b.box()
	holder := b.lease(box.Mutex(b.name).Acquire(b.ctx))
	done := make(chan error, 1)
	go func() {
		_, err := box.Semaphore(b.name, 5).Acquire(b.ctx, signalbox.Weight(5))
		done <- err
	}()
	b.eventually("a waiter", func() bool { return b.inspect().Waiters == 1 })
	_, err := box.Resize(b.ctx, b.name, 2)
	b.must(err)
	b.is(awaited(b, "the end of the waiter", done), signalbox.ErrTooHeavy)
	b.must(holder.Release(b.ctx))
	_, err = box.Resize(b.ctx, b.name, 0)
	b.must(err)
}

func placeInQueue(b *bench) {
	holder := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	first := b.start(b.ctx, b.box())
	told := make(chan signalbox.Waiting, 10)
	second := b.start(b.ctx, b.box(), signalbox.OnWait(func(w signalbox.Waiting) { told <- w }))
	waiting := awaited(b, "the place in the queue", told)
	equal(b, "waiters ahead", waiting.Ahead, 1)
	if waiting.Next <= 0 || waiting.Next > signalbox.DefaultTTL {
		b.Fatalf("next lease expires in %v", waiting.Next)
	}
	b.must(holder.Release(b.ctx))
	b.must(awaited(b, "the first waiter's turn", first))
	b.must(awaited(b, "the second waiter's turn", second))
}

func doEndsWithLease(b *bench) {
	box := b.box()
	own := errors.New("the work's own")
	b.is(box.Mutex(b.name).Do(b.ctx, func(context.Context) error { return own }), own)
	b.nothingLeft()
	func() {
		defer func() { equal(b, "panic", fmt.Sprint(recover()), "the work's") }()
		_ = box.Mutex(b.name).Do(b.ctx, func(context.Context) error { panic("the work's") })
	}()
	b.nothingLeft()
	err := box.Mutex(b.name).Do(b.ctx, func(ctx context.Context) error {
		_, err := box.ForceAll(b.ctx, b.name)
		b.must(err)
		<-ctx.Done()
		return context.Cause(ctx)
	}, b.ttl(4*time.Second)) // the renewal is told, and must not come too late for that
	b.is(err, signalbox.ErrForced)
}

func listNamesBusy(b *bench) {
	box := b.box()
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx))
	listed := func() bool {
		list, err := box.List(b.ctx)
		b.must(err)
		for _, state := range list {
			if state.Resource == b.name {
				return true
			}
		}
		return false
	}
	equal(b, "listed while held", listed(), true)
	b.must(lease.Release(b.ctx))
	equal(b, "listed while idle", listed(), false)
}
