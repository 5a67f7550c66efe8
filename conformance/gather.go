package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox"
)

// What is not a permit: rates, latches, barriers, guarded writes, watching.
var gatherPromises = map[string]func(*bench){
	"Limiter: rate and burst":       limiterKeepsRate,
	"Limiter: wait":                 limiterWaits,
	"Limiter: gives back":           limiterGivesBack,
	"Limiter: bad input":            limiterBadInput,
	"Latch: opens once":             latchOpens,
	"Latch: party counts once":      latchCountsOnce,
	"Barrier: rounds":               barrierRounds,
	"Barrier: who leaves":           barrierLeaves,
	"Fence: refuses a stale token":  fenceRefuses,
	"Fence: command and reply":      fenceReplies,
	"Watch: what happens":           watchSees,
	"Watch: expiry":                 watchSeesExpiry,
	"L6 nothing but what is in use": nothingForever,
}

func limiterKeepsRate(b *bench) {
	limiter := b.box().Limiter(b.name, signalbox.Every(time.Hour), signalbox.Burst(3))
	b.must(limiter.Allow(b.ctx, 1))
	b.must(limiter.Allow(b.ctx, 2))
	err := limiter.Allow(b.ctx, 1)
	b.is(err, signalbox.ErrBusy)
	var late *signalbox.RateError
	if !errors.As(err, &late) || late.RetryAfter < 59*time.Minute || late.RetryAfter > time.Hour {
		b.Fatalf("got %v, want an hour", err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	begun := time.Now()
	b.is(limiter.Wait(ctx, 1), context.DeadlineExceeded)
	if time.Since(begun) > patience {
		b.Fatal("waited although its turn could not come in time")
	}
}

func limiterWaits(b *bench) {
	const units, interval = 10, 20 * time.Millisecond
	begun := time.Now()
	var workers sync.WaitGroup
	for range units {
		limiter := b.box().Limiter(b.name, signalbox.Every(interval))
		workers.Go(func() {
			if err := limiter.Wait(b.ctx, 1); err != nil {
				b.Error(err)
			}
		})
	}
	workers.Wait()
	if took := time.Since(begun); took < (units-1)*interval {
		b.Fatalf("%d units in %v", units, took)
	}
}

func limiterGivesBack(b *bench) {
	limiter := b.box().Limiter(b.name, signalbox.Every(time.Hour), signalbox.Burst(1))
	b.must(limiter.Allow(b.ctx, 1))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.ctx)) // the deadline of b.ctx would have it refused
	done := make(chan error, 1)
	go func() { done <- limiter.Wait(ctx, 1) }()
	delay := func() time.Duration {
		var late *signalbox.RateError
		if err := limiter.Allow(b.ctx, 1); !errors.As(err, &late) {
			b.Fatalf("got %v", err)
		}
		return late.RetryAfter
	}
	b.eventually("the unit is taken", func() bool { return delay() > time.Hour })
	cancel()
	b.is(receive(b, done), context.Canceled)
	b.eventually("the unit is given back", func() bool { return delay() <= time.Hour })
}

func limiterBadInput(b *bench) {
	box := b.box()
	second := signalbox.Every(time.Second)
	b.is(box.Limiter("", second).Allow(b.ctx, 1), signalbox.ErrInvalid)
	b.is(box.Limiter(b.name, signalbox.Every(0)).Allow(b.ctx, 1), signalbox.ErrInvalid)
	b.is(box.Limiter(b.name, signalbox.PerSecond(-1)).Allow(b.ctx, 1), signalbox.ErrInvalid)
	b.is(box.Limiter(b.name, second, signalbox.Burst(0)).Allow(b.ctx, 1), signalbox.ErrInvalid)
	b.is(box.Limiter(b.name, second).Wait(b.ctx, 0), signalbox.ErrInvalid)
	b.is(box.Limiter(b.name, second).Allow(b.ctx, 2), signalbox.ErrTooHeavy)
}

func latchOpens(b *bench) {
	const parties, awaiting = 5, 6
	done := make(chan error, awaiting)
	for range awaiting {
		latch := b.box(b.claim(time.Second)).Latch(b.name, parties)
		go func() { done <- latch.Await(b.ctx) }()
	}
	latch := b.box().Latch(b.name, parties)
	for i := range parties {
		select {
		case err := <-done:
			b.Fatalf("open after %d of %d: %v", i, parties, err)
		default:
		}
		missing, err := latch.CountDown(b.ctx, fmt.Sprint("worker ", i))
		b.must(err)
		equal(b, "missing", missing, parties-1-i)
	}
	for range awaiting {
		b.must(receive(b, done))
	}
	b.must(latch.Await(b.ctx)) // stays open
}

func latchCountsOnce(b *bench) {
	latch := b.box().Latch(b.name, 2)
	for range 3 {
		missing, err := latch.CountDown(b.ctx, "one")
		b.must(err)
		equal(b, "missing", missing, 1)
	}
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Millisecond)
	defer cancel()
	b.is(latch.Await(ctx), context.DeadlineExceeded)
	_, err := latch.CountDown(b.ctx, "")
	b.is(err, signalbox.ErrInvalid)
	_, err = b.box().Latch(b.name, 0).Missing(b.ctx)
	b.is(err, signalbox.ErrInvalid)
}

func barrierRounds(b *bench) {
	const parties, rounds = 4, 8
	var arrived atomic.Int64
	passed := make([][rounds]int64, parties)
	var workers sync.WaitGroup
	for party := range parties {
		barrier := b.box(b.claim(time.Second)).Barrier(b.name, parties)
		workers.Go(func() {
			for round := range rounds {
				arrived.Add(1)
				number, err := barrier.Wait(b.ctx)
				if err != nil {
					b.Error(err)
					return
				}
				if n := arrived.Load(); n < int64(parties*(round+1)) {
					b.Errorf("through round %d when %d had arrived", round, n)
				}
				passed[party][round] = number
			}
		})
	}
	workers.Wait()
	for party := range passed {
		equal(b, "rounds of all parties", passed[party], passed[0])
	}
	for round := 1; round < rounds; round++ {
		if passed[0][round] <= passed[0][round-1] {
			b.Fatalf("round %d after %d", passed[0][round], passed[0][round-1])
		}
	}
}

func barrierLeaves(b *bench) {
	barrier := b.box().Barrier(b.name, 2)
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	_, err := barrier.Wait(ctx)
	b.is(err, context.DeadlineExceeded)
	ctx, cancel = context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	_, err = barrier.Wait(ctx) // the one that left is not counted
	b.is(err, context.DeadlineExceeded)
}

func fenceRefuses(b *bench) {
	box := b.box()
	mutex, fence := box.Mutex(b.name), box.Fence("data of "+b.name)
	old := b.lease(mutex.Acquire(b.ctx))
	b.must(old.Release(b.ctx))
	current := b.lease(mutex.Acquire(b.ctx))
	_, err := fence.Do(b.ctx, current.Token(), "set", "new")
	b.must(err)
	_, err = fence.Do(b.ctx, old.Token(), "set", "old")
	b.is(err, signalbox.ErrStale)
	var stale *signalbox.StaleError
	if !errors.As(err, &stale) || stale.Newest != current.Token() {
		b.Fatalf("got %v", err)
	}
	b.is(fence.Check(b.ctx, old.Token()), signalbox.ErrStale)
	value, err := fence.Do(b.ctx, current.Token(), "get")
	b.must(err)
	equal(b, "value", value, any("new"))
	b.must(current.Release(b.ctx))
	b.must(b.client.Del(b.ctx, "data of "+b.name).Err())
}

func fenceReplies(b *bench) {
	key := "{" + b.name + "} hash"
	fence := b.box().Fence(key)
	reply, err := fence.Do(b.ctx, 1, "hset", "a", 1, "b", int64(2))
	b.must(err)
	equal(b, "reply of hset", reply, any(int64(2)))
	reply, err = fence.Do(b.ctx, 1, "hget", "none")
	b.must(err)
	equal(b, "reply of hget", reply, nil)
	reply, err = fence.Do(b.ctx, 2, "hmget", "a", "b")
	b.must(err)
	equal(b, "reply of hmget", fmt.Sprint(reply), "[1 2]")
	_, err = fence.Do(b.ctx, 2, "lpush", "x")
	b.is(err, signalbox.ErrServer)
	_, err = fence.Do(b.ctx, 0, "get")
	b.is(err, signalbox.ErrInvalid)
	_, err = fence.Do(b.ctx, 1, "", "x")
	b.is(err, signalbox.ErrInvalid)
	_, err = b.box().Fence("").Do(b.ctx, 1, "get")
	b.is(err, signalbox.ErrInvalid)
	_, err = fence.Do(b.ctx, 2, "hset", "a", 1.5)
	b.is(err, signalbox.ErrInvalid)
	b.must(b.client.Del(b.ctx, key).Err())
}

// watch collects events until the function it returns is called.
func (b *bench) watch() (events <-chan signalbox.Event, stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	list := make(chan signalbox.Event, 64)
	over := make(chan struct{})
	box := b.box(b.claim(shortClaim))
	go func() {
		defer close(over)
		for event, err := range box.Watch(ctx, b.name) {
			if err != nil {
				if ctx.Err() == nil {
					b.Error(err)
				}
				return
			}
			list <- event
		}
	}()
	return list, func() {
		cancel()
		<-over
	}
}

// next returns the next event that is no Snapshot.
func (b *bench) next(events <-chan signalbox.Event) signalbox.Event {
	b.Helper()
	for {
		select {
		case event := <-events:
			if event.What != signalbox.Snapshot {
				return event
			}
		case <-b.ctx.Done():
			b.Fatal("no event")
		}
	}
}

func watchSees(b *bench) {
	events, stop := b.watch()
	defer stop()
	snapshot := receive(b, events)
	equal(b, "first event", snapshot.What, signalbox.Snapshot)
	equal(b, "leases", snapshot.State.Leases, 0)
	// The subscription opens in its own time, and tells so by a snapshot.
	box := b.box(signalbox.Owner("the owner"))
	equal(b, "second event", receive(b, events).What, signalbox.Snapshot)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, signalbox.Label("a label")))
	event := b.next(events)
	equal(b, "event", event.What, signalbox.LeaseGranted)
	equal(b, "owner", event.Owner+"/"+event.Label, "the owner/a label")
	equal(b, "token", event.Token, lease.Token())
	ctx, cancel := context.WithCancel(b.ctx)
	done := b.start(ctx, box)
	equal(b, "event", b.next(events).What, signalbox.WaiterQueued)
	cancel()
	b.is(receive(b, done), context.Canceled)
	equal(b, "event", b.next(events).What, signalbox.WaiterLeft)
	done = b.start(b.ctx, box)
	equal(b, "event", b.next(events).What, signalbox.WaiterQueued)
	b.must(lease.Release(b.ctx))
	equal(b, "event", b.next(events).What, signalbox.LeaseReleased)
	equal(b, "event", b.next(events).What, signalbox.LeaseGranted)
	b.must(receive(b, done))
	equal(b, "event", b.next(events).What, signalbox.LeaseReleased)
	b.resize(3)
	event = b.next(events)
	equal(b, "event", event.What, signalbox.LimitResized)
	equal(b, "limit", event.Weight, 3)
	b.resize(0)
}

func watchSeesExpiry(b *bench) {
	var broken faults
	events, stop := b.watch()
	defer stop()
	receive(b, events)
	receive(b, events)
	box := b.hooked(&broken, b.claim(shortClaim))
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, b.ttl(300*time.Millisecond)))
	equal(b, "event", b.next(events).What, signalbox.LeaseGranted)
	broken.loseRequests.Store(1 << 40)
	event := b.next(events) // nobody waits, so nobody but the watcher asks
	equal(b, "event", event.What, signalbox.LeaseExpired)
	equal(b, "id", event.ID, lease.ID())
	broken.loseRequests.Store(0)
}

// nothingForever: every key that the primitives leave has an expiry.
func nothingForever(b *bench) {
	box := b.box()
	tag := "{" + b.name + "}"
	lease := b.lease(box.Mutex(tag).Acquire(b.ctx, signalbox.Pace(signalbox.Every(time.Hour), 1),
		signalbox.HoldAtLeast(time.Hour), signalbox.LockDelay(time.Hour)))
	b.must(lease.Release(b.ctx))
	b.must(box.Limiter(tag, signalbox.Every(time.Hour)).Allow(b.ctx, 1))
	_, err := box.Latch(tag, 2).CountDown(b.ctx, "one")
	b.must(err)
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Millisecond)
	defer cancel()
	if box.Latch(tag, 2).Await(ctx) == nil {
		b.Fatal("open")
	}
	if _, err := box.Barrier(tag, 2).Wait(ctx); err == nil {
		b.Fatal("passed")
	}
	_, err = box.Barrier(tag, 1).Wait(b.ctx)
	b.must(err)
	b.must(box.Fence(tag).Check(b.ctx, 5))
	b.use(tag)
	suffixes := []string{"", ":leases", ":queue", ":seen", ":rate", ":counted", ":awaiting", ":arrived", ":passed"}
	for _, suffix := range suffixes {
		left, err := b.client.PTTL(b.ctx, b.keys[0]+suffix).Result()
		b.must(err)
		if left == -1 {
			b.Errorf("L6: %s%s never expires", b.keys[0], suffix)
		}
	}
	left, err := b.client.PTTL(b.ctx, "signalbox:fence:"+tag+":"+tag).Result()
	b.must(err)
	if left <= 0 {
		b.Errorf("L6: the fence expires in %v", left)
	}
}
