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
	b.join(&workers)
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
	b.is(awaited(b, "the end of the wait", done), context.Canceled)
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
		latch := b.box(b.claim(longClaim)).Latch(b.name, parties)
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
		b.must(awaited(b, "the open latch", done))
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
		barrier := b.box(b.claim(longClaim)).Barrier(b.name, parties)
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
	b.join(&workers)
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

// onlooker watches the resource.
type onlooker struct {
	*bench
	events chan signalbox.Event // closed when the watching is over
	seen   []signalbox.EventKind
}

// watch returns once the subscription is open and the server publishes. The Snapshots do not tell: there is a second one
// only if the subscription opens later than the first look. So the operator's limit is changed until that is seen.
func (b *bench) watch() *onlooker {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	o, over := &onlooker{bench: b, events: make(chan signalbox.Event, 64)}, make(chan struct{})
	box := b.box()
	go func() {
		defer close(over)
		defer close(o.events)
		for event, err := range box.Watch(ctx, b.name) {
			if err != nil {
				if ctx.Err() == nil {
					b.Error(err)
				}
				return
			}
			select {
			case o.events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	b.Cleanup(func() {
		cancel()
		<-over
	})
	snapshot := awaited(b, "the first event", o.events)
	equal(b, "first event", snapshot.What, signalbox.Snapshot)
	equal(b, "leases", snapshot.State.Leases, 0)
	for limit := 1; !o.hears(); limit++ {
		b.resize(limit)
	}
	b.resize(0)
	for event := o.next(); event.What != signalbox.LimitResized || event.Weight != 0; {
		event = o.next()
	}
	return o
}

// hears reports whether an event comes that is no Snapshot; it gives it a moment.
func (o *onlooker) hears() bool {
	o.Helper()
	moment := time.NewTimer(5 * time.Millisecond)
	defer moment.Stop()
	for {
		select {
		case event, open := <-o.events:
			if o.note(event, open); event.What != signalbox.Snapshot {
				return true
			}
		case <-moment.C:
			return false
		case <-o.ctx.Done():
			o.Fatalf("the subscription has not opened; seen: %v", o.seen)
		}
	}
}

// next returns the next event that is no Snapshot.
func (o *onlooker) next() signalbox.Event {
	o.Helper()
	for {
		select {
		case event, open := <-o.events:
			if o.note(event, open); event.What != signalbox.Snapshot {
				return event
			}
		case <-o.ctx.Done():
			o.Fatalf("no event comes any more; seen: %v", o.seen)
		}
	}
}

func (o *onlooker) note(event signalbox.Event, open bool) {
	o.Helper()
	if !open {
		o.Fatalf("the watching has ended; seen: %v", o.seen)
	}
	o.seen = append(o.seen, event.What)
}

// sees wants the next event to be of a kind.
func (o *onlooker) sees(want signalbox.EventKind) signalbox.Event {
	o.Helper()
	event := o.next()
	if event.What != want {
		o.Fatalf("got event %q, want %q; seen: %v", event.What, want, o.seen)
	}
	return event
}

func watchSees(b *bench) {
	watcher := b.watch()
	box := b.box(signalbox.Owner("the owner"))
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, signalbox.Label("a label")))
	event := watcher.sees(signalbox.LeaseGranted)
	equal(b, "owner", event.Owner+"/"+event.Label, "the owner/a label")
	equal(b, "token", event.Token, lease.Token())
	ctx, cancel := context.WithCancel(b.ctx)
	done := b.start(ctx, box)
	watcher.sees(signalbox.WaiterQueued)
	cancel()
	b.is(awaited(b, "the end of the waiter", done), context.Canceled)
	watcher.sees(signalbox.WaiterLeft)
	done = b.start(b.ctx, box)
	watcher.sees(signalbox.WaiterQueued)
	b.must(lease.Release(b.ctx))
	watcher.sees(signalbox.LeaseReleased)
	watcher.sees(signalbox.LeaseGranted)
	b.must(awaited(b, "the waiter's turn", done))
	watcher.sees(signalbox.LeaseReleased)
	b.resize(3)
	equal(b, "limit", watcher.sees(signalbox.LimitResized).Weight, 3)
	b.resize(0)
}

func watchSeesExpiry(b *bench) {
	var broken faults
	watcher := b.watch()
	box := b.hooked(&broken)
	lease := b.lease(box.Mutex(b.name).Acquire(b.ctx, b.ttl(time.Second)))
	watcher.sees(signalbox.LeaseGranted)
	broken.loseRequests.Store(1 << 40)
	event := watcher.sees(signalbox.LeaseExpired) // nobody waits, so nobody but the watcher asks
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
	suffixes := []string{"", ":leases", ":queue", ":seen", ":rate", ":counted", ":awaiting", ":arrived", ":passed", ":left"}
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
