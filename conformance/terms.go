package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What an acquisition may want besides permits.
var termPromises = map[string]func(*bench){
	"L1 lock delay rests after expiry":       lockDelay,
	"L1 lock delay not after release":        lockDelayReleased,
	"L4 resting permits are nobody's":        restingIsNobodys,
	"L1 held at least":                       heldAtLeast,
	"L1 held at least after a lost reply":    heldAtLeastLostReply,
	"pace holds grants apart":                paceHolds,
	"pace tells the head when":               paceTells,
	"notice that somebody waits":             notice,
	"notice with the renewal":                noticeByRenewal,
	"L2 reentrant keeps lease and token":     reentrant,
	"reentrant refuses to grow":              reentrantGrows,
	"L2 L3 local handoff":                    localHandoff,
	"L7 local handoff: who gives up":         localHandoffGivesUp,
	"local handoff: the lease is renewed on": localHandoffRenews,
	"no replicas are reported as none":       noReplicas,
	"observations":                           observations,
	"release heeds its context":              releaseHeedsContext,
}

func (b *bench) grantedWith(id string, limit int, terms ledger.Terms) {
	b.Helper()
	request := b.request(id, 1, limit, time.Minute)
	request.Terms = terms
	answer, err := b.ledger.Acquire(b.ctx, request)
	b.must(err)
	equal(b, "outcome of "+id, answer.Outcome, ledger.Granted)
}

func lockDelay(b *bench) {
	b.grantedWith("a", 1, ledger.Terms{Cool: 100 * time.Minute * 24 * 365 * 100})
	b.waits("b", 1, 1)
	b.expire("a") // in 1970, so that the delay must reach to this day
	b.waits("b", 1, 1)
	equal(b, "holders", b.holders(), "!process-a")
	equal(b, "L1: held", b.inspect().Held, 1)
	equal(b, "L4: the lost lease is renewed", b.renew("a"), ledger.Lost)
	equal(b, "L4: the lost lease is released", b.release("a"), ledger.Lost)
	b.expire("!process-a:1")
	b.granted("b", 1, 1)
}

func lockDelayReleased(b *bench) {
	b.grantedWith("a", 1, ledger.Terms{Cool: time.Hour})
	b.waits("b", 1, 1)
	equal(b, "release", b.release("a"), ledger.Held)
	b.granted("b", 1, 1)
}

func restingIsNobodys(b *bench) {
	b.grantedWith("a", 1, ledger.Terms{Hold: time.Hour})
	equal(b, "release", b.release("a"), ledger.Held)
	equal(b, "second release", b.release("a"), ledger.Lost)
	equal(b, "renewal", b.renew("a"), ledger.Lost)
	state := b.inspect()
	equal(b, "resting", state.Holders[0].Resting, true)
	ended, err := b.ledger.ForceAll(b.ctx, b.resource, time.Minute)
	b.must(err)
	equal(b, "force ends the rest", ended, 1)
	b.granted("c", 1, 1)
}

func heldAtLeast(b *bench) {
	box := b.box()
	busy := box.Mutex(b.name + " for an hour")
	lease := b.lease(busy.Acquire(b.ctx, signalbox.HoldAtLeast(time.Hour)))
	b.must(lease.Release(b.ctx))
	_, err := busy.TryAcquire(b.ctx)
	b.is(err, signalbox.ErrBusy)
	_, err = box.ForceAll(b.ctx, b.name+" for an hour")
	b.must(err)

	mutex, least, begun := box.Mutex(b.name), b.lasting(400*time.Millisecond), time.Now()
	lease = b.lease(mutex.Acquire(b.ctx, signalbox.HoldAtLeast(least)))
	b.must(lease.Release(b.ctx))
	next := b.lease(mutex.Acquire(b.ctx))
	if held := time.Since(begun); held < least {
		b.Fatalf("granted again after %v", held)
	}
	b.must(next.Release(b.ctx))
	b.nothingLeft()
}

// heldAtLeastLostReply: such a lease is given back in another way, since a request to acquire may still be under way.
func heldAtLeastLostReply(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	b.knows(box)
	broken.loseReplies.Store(1)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, signalbox.HoldAtLeast(time.Hour)))
	b.must(lease.Release(b.ctx))
	_, err := box.Mutex(b.name).TryAcquire(b.ctx)
	b.is(err, signalbox.ErrBusy)
	_, err = box.ForceAll(b.ctx, b.name)
	b.must(err)
}

func paceHolds(b *bench) {
	pace := ledger.Terms{Pace: time.Hour, Burst: 2}
	b.grantedWith("a", 9, pace)
	b.grantedWith("b", 9, pace)
	request := b.request("c", 1, 9, 0)
	request.Terms = pace
	answer, err := b.ledger.Acquire(b.ctx, request)
	b.must(err)
	equal(b, "outcome of a try", answer.Outcome, ledger.Refused)
	if answer.Next < 59*time.Minute || answer.Next > time.Hour {
		b.Fatalf("refused for %v, want an hour", answer.Next)
	}
	request.Wait = time.Minute
	answer, err = b.ledger.Acquire(b.ctx, request)
	b.must(err)
	equal(b, "outcome", answer.Outcome, ledger.Waiting)
	b.release("a")
	equal(b, "holders: a release does not quicken the pace", b.holders(), "b")
	b.must(b.client.HSet(b.ctx, b.keys[0], "pace", time.Now().UnixMicro()).Err()) // an hour goes by
	equal(b, "holders", b.holders(), "b c")
}

// paceTells: each of many that wait for the pace gets its turn when it is due, and not a heartbeat later.
func paceTells(b *bench) {
	const turns, interval = 8, 50 * time.Millisecond
	box := b.box(signalbox.Claim(2 * time.Minute)) // were they told by heartbeats only, the test's time would be over before
	semaphore := box.Semaphore(b.name, 2)
	begun := time.Now()
	done := make(chan error, turns)
	for range turns {
		go func() {
			done <- semaphore.Do(b.ctx, func(context.Context) error { return nil },
				signalbox.Pace(signalbox.Every(interval), 1))
		}()
	}
	for range turns {
		b.must(awaited(b, "the next turn", done))
	}
	if took := time.Since(begun); took < (turns-1)*interval {
		b.Fatalf("%d grants in %v", turns, took)
	}
}

func notice(b *bench) {
	box := b.box(signalbox.Claim(20 * time.Second))
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, signalbox.NoticeWaiters(), signalbox.TTL(time.Hour)))
	deaf := b.lease(box.Mutex(b.name+" other").Acquire(b.ctx, signalbox.NoticeWaiters(), signalbox.TTL(time.Hour)))
	// The inbox opens with the first waiter of a process; a holder that wants notice opens it too.
	done := b.start(b.ctx, b.box())
	b.eventually("the holder hears of the waiter", func() bool {
		select {
		case <-lease.Wanted():
			return true
		default:
			return false
		}
	})
	select {
	case <-deaf.Wanted():
		b.Fatal("notice for a resource nobody waits for")
	default:
	}
	b.must(lease.Err())
	b.must(lease.Release(b.ctx))
	b.must(awaited(b, "the waiter's turn", done))
	b.must(deaf.Release(b.ctx))
}

func noticeByRenewal(b *bench) {
	b.granted("a", 1, 1)
	equal(b, "renewal", b.renew("a"), ledger.Held)
	b.waits("b", 1, 1)
	equal(b, "renewal while somebody waits", b.renew("a"), ledger.Wanted)
}

func reentrant(b *bench) {
	mutex := b.box().Mutex(b.name)
	outer := b.lease(mutex.Acquire(b.ctx, signalbox.Reentrant()))
	inner := b.lease(mutex.Acquire(outer.Context(), signalbox.Reentrant()))
	equal(b, "lease", inner, outer)
	equal(b, "token", inner.Token(), outer.Token())
	b.must(inner.Release(b.ctx))
	b.must(outer.Err())
	equal(b, "holders", b.inspect().Leases, 1)
	err := mutex.Do(outer.Context(), func(ctx context.Context) error {
		return mutex.Do(ctx, func(context.Context) error { return nil }, signalbox.Reentrant())
	}, signalbox.Reentrant())
	b.must(err)
	b.must(outer.Release(b.ctx))
	b.is(outer.Err(), signalbox.ErrReleased)
	// The lease it carries is over.
	again := b.lease(mutex.Acquire(context.WithoutCancel(outer.Context()), signalbox.Reentrant()))
	if again == outer {
		b.Fatal("a lease that was released was entered again")
	}
	b.must(again.Release(b.ctx))

	plain := b.lease(mutex.Acquire(b.ctx))
	ctx, cancel := context.WithTimeout(plain.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = mutex.Acquire(ctx) // not asked for: waits for itself
	b.is(err, context.DeadlineExceeded)
	b.must(plain.Release(b.ctx))
	b.nothingLeft()
}

func reentrantGrows(b *bench) {
	semaphore := b.box().Semaphore(b.name, 5)
	outer := b.lease(semaphore.Acquire(b.ctx, signalbox.Reentrant(), signalbox.Weight(2)))
	_, err := semaphore.Acquire(outer.Context(), signalbox.Reentrant(), signalbox.Weight(3))
	b.is(err, signalbox.ErrInvalid)
	b.must(outer.Release(b.ctx))
}

func localHandoff(b *bench) {
	const goroutines, turns, handoffs = 20, 10, 7
	box := b.box()
	other := b.box().Mutex(b.name)
	mutex := box.Mutex(b.name)
	inside, grants := 0, make(map[int64]bool) // guarded by the mutex under test
	last := int64(0)
	enter := func(token int64) error {
		inside++
		defer func() { inside-- }()
		if inside != 1 || token <= last || grants[token] {
			return fmt.Errorf("L1 L2: %d inside, token %d after %d", inside, token, last)
		}
		last, grants[token] = token, true
		return nil
	}
	done := make(chan error, goroutines+1)
	for range goroutines {
		go func() {
			var errs []error
			for range turns {
				lease, err := mutex.Acquire(b.ctx, signalbox.LocalHandoff(handoffs))
				if err == nil {
					err = errors.Join(enter(lease.Token()), lease.Err(), lease.Release(b.ctx))
				}
				errs = append(errs, err)
			}
			done <- errors.Join(errs...)
		}()
	}
	go func() { // another process is not starved
		var errs []error
		for range turns {
			lease, err := other.Acquire(b.ctx)
			if err == nil {
				err = errors.Join(enter(lease.Token()), lease.Release(b.ctx))
			}
			errs = append(errs, err)
		}
		done <- errors.Join(errs...)
	}()
	for range goroutines + 1 {
		b.must(awaited(b, "the end of the turns", done))
	}
	equal(b, "grants", len(grants), goroutines*turns+turns)
	b.nothingLeft()
}

func localHandoffGivesUp(b *bench) {
	box := b.box()
	mutex := box.Mutex(b.name)
	first := b.lease(mutex.Acquire(b.ctx, signalbox.LocalHandoff(5)))
	ctx, cancel := context.WithCancel(b.ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := mutex.Acquire(ctx, signalbox.LocalHandoff(5))
		gone <- err
	}()
	next := make(chan *signalbox.Lease, 1)
	cancel()
	b.is(awaited(b, "the end of the acquire", gone), context.Canceled)
	go func() {
		lease, err := mutex.Acquire(b.ctx, signalbox.LocalHandoff(5))
		if err != nil {
			b.Error(err)
		}
		next <- lease
	}()
	equal(b, "waiters on the server", b.inspect().Waiters, 0)
	b.must(first.Release(b.ctx))
	lease := awaited(b, "the next turn", next)
	b.must(lease.Err())
	b.must(lease.Release(b.ctx))
	b.nothingLeft()
}

// localHandoffRenews: a lease that passes from hand to hand faster than it is renewed lives on.
func localHandoffRenews(b *bench) {
	mutex := b.box().Mutex(b.name)
	ttl := b.lasting(3 * time.Second)
	stop := time.Now().Add(4 * ttl / 3)
	brief := func(ctx context.Context) error { // as work is: it leaves the processor to others
		select {
		case <-time.After(time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	done := make(chan error, 3)
	for range 3 {
		go func() {
			var errs []error
			for time.Now().Before(stop) {
				errs = append(errs, mutex.Do(b.ctx, brief, signalbox.LocalHandoff(signalbox.MaxHandoffs), signalbox.TTL(ttl)))
			}
			done <- errors.Join(errs...)
		}()
	}
	for range 3 {
		b.must(awaited(b, "the end of the turns", done))
	}
	b.nothingLeft()
}

func noReplicas(b *bench) {
	lease := b.lease(b.box().Mutex(b.name).Acquire(b.ctx, signalbox.WithReplicas(9, 20*time.Millisecond)))
	if lease.Replicas() >= 9 {
		b.Fatalf("%d replicas had the grant", lease.Replicas())
	}
	b.must(lease.Err())
	b.must(lease.Release(b.ctx))
}

func observations(b *bench) {
	var seen []signalbox.Happening
	box := b.box(signalbox.Observe(func(o signalbox.Observation) {
		if o.Resource == b.name {
			seen = append(seen, o.What)
		}
	}))
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx))
	_, err := box.Mutex(b.name).TryAcquire(b.ctx)
	b.is(err, signalbox.ErrBusy)
	b.must(lease.Release(b.ctx))
	equal(b, "observations", fmt.Sprint(seen), "[begun granted begun refused released]")
}

func releaseHeedsContext(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, signalbox.TTL(time.Hour)))
	broken.loseRequests.Store(1 << 40)
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	b.is(lease.Release(ctx), context.DeadlineExceeded)
	b.is(lease.Err(), signalbox.ErrReleased)
	broken.loseRequests.Store(0)
	b.nothingLeft() // it went on in the background
}
