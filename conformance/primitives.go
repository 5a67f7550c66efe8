package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox"
)

// The primitives that are more than one semaphore.
var primitivePromises = map[string]func(*bench){
	"RWMutex: readers together, writers alone": readersAndWriters,
	"RWMutex: a writer is not starved":         writerNotStarved,
	"RWMutex: downgrade":                       downgrade,
	"RWMutex: upgrade fails fast":              upgradeFailsFast,
	"RWMutex: a lease of another":              upgradeOfAnother,
	"Election: terms follow one another":       terms,
	"Election: observe":                        observeElection,
	"AcquireAll: all or nothing":               allOrNothing,
	"AcquireAll: no deadlock in any order":     noDeadlock,
	"AcquireAll: gives up":                     allGivesUp,
	"AcquireAll: holds nothing while it waits": allHoldsNothing,
	"Within: key in its own queue":             within,
	"Deadlocks: two that wait for each other":  deadlockFound,
}

// tagged makes names that share a slot of a Cluster.
func (b *bench) tagged(names ...string) []string {
	for i, name := range names {
		names[i] = name + " {" + b.name + "}"
	}
	return names
}

func readersAndWriters(b *bench) {
	var readers, writers, most atomic.Int64
	var workers sync.WaitGroup
	for i := range 12 {
		lock := b.box().RWMutex(b.name)
		workers.Go(func() {
			for range 15 {
				var err error
				if i%4 == 0 {
					err = lock.Write().Do(b.ctx, func(context.Context) error {
						if w, r := writers.Add(1), readers.Load(); w != 1 || r != 0 {
							b.Errorf("%d writers with %d readers", w, r)
						}
						writers.Add(-1)
						return nil
					})
				} else {
					err = lock.Read().Do(b.ctx, func(context.Context) error {
						r := readers.Add(1)
						if w := writers.Load(); w != 0 {
							b.Errorf("%d readers with %d writers", r, w)
						}
						for m := most.Load(); r > m && !most.CompareAndSwap(m, r); m = most.Load() {
						}
						readers.Add(-1)
						return nil
					})
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

func writerNotStarved(b *bench) {
	lock := b.box().RWMutex(b.name)
	reader := b.lease(lock.Read().Acquire(b.ctx))
	second := b.lease(lock.Read().Acquire(b.ctx)) // readers share
	got := make(chan *signalbox.Lease, 1)
	go func() {
		defer close(got)
		lease, err := lock.Write().Acquire(b.ctx)
		if err != nil {
			b.Error(err)
			return
		}
		got <- lease
	}()
	b.eventually("the writer waits", func() bool { return b.inspect().Waiters == 1 })
	_, err := lock.Read().TryAcquire(b.ctx)
	b.is(err, signalbox.ErrBusy) // nobody passes the writer
	b.must(reader.Release(b.ctx))
	b.must(second.Release(b.ctx))
	writer := awaited(b, "the writer's turn", got)
	if writer.Token() <= second.Token() {
		b.Fatalf("L2: the writer's token %d after %d", writer.Token(), second.Token())
	}
	b.must(writer.Release(b.ctx))
}

func downgrade(b *bench) {
	lock := b.box().RWMutex(b.name)
	writer := b.lease(lock.Write().Acquire(b.ctx))
	token := writer.Token()
	got := make(chan error, 1)
	go func() {
		lease, err := lock.Read().Acquire(b.ctx)
		if err == nil {
			err = lease.Release(b.ctx)
		}
		got <- err
	}()
	b.eventually("the reader waits", func() bool { return b.inspect().Waiters == 1 })
	b.must(lock.Downgrade(b.ctx, writer))
	b.must(awaited(b, "the reader's turn", got))
	equal(b, "token", writer.Token(), token)
	equal(b, "weight", writer.Weight(), 1)
	b.must(lock.Upgrade(b.ctx, writer)) // alone again
	if writer.Token() <= token {
		b.Fatalf("L2: the token of the upgrade is %d after %d", writer.Token(), token)
	}
	_, err := lock.Read().TryAcquire(b.ctx)
	b.is(err, signalbox.ErrBusy)
	b.must(writer.Release(b.ctx))
	b.nothingLeft()
}

func upgradeFailsFast(b *bench) {
	lock := b.box().RWMutex(b.name)
	one, two := b.lease(lock.Read().Acquire(b.ctx)), b.lease(lock.Read().Acquire(b.ctx))
	b.is(lock.Upgrade(b.ctx, one), signalbox.ErrBusy)
	b.is(lock.Upgrade(b.ctx, two), signalbox.ErrBusy)
	b.must(errors.Join(one.Err(), two.Err(), two.Release(b.ctx)))
	b.must(lock.Upgrade(b.ctx, one))
	b.must(lock.Upgrade(b.ctx, one)) // is one already
	b.must(one.Release(b.ctx))
	b.is(lock.Upgrade(b.ctx, one), signalbox.ErrReleased)
}

func upgradeOfAnother(b *bench) {
	box := b.box()
	lock := box.RWMutex(b.name)
	b.is(lock.Upgrade(b.ctx, nil), signalbox.ErrInvalid)
	foreign := b.lease(box.RWMutex(b.name + " other").Read().Acquire(b.ctx))
	b.is(lock.Upgrade(b.ctx, foreign), signalbox.ErrInvalid)
	b.must(foreign.Release(b.ctx))
	heavy := b.lease(box.Semaphore(b.name, 10).Acquire(b.ctx, signalbox.Weight(5)))
	b.is(lock.Downgrade(b.ctx, heavy), signalbox.ErrInvalid)
	b.must(heavy.Release(b.ctx))
}

func terms(b *bench) {
	one, two := b.box().Election(b.name), b.box().Election(b.name)
	nobody, err := one.Leader(b.ctx)
	b.must(err)
	equal(b, "leader", nobody.Exists(), false)
	first, err := one.Campaign(b.ctx, signalbox.Label("10.0.0.1:80"))
	b.must(err)
	leader, err := two.Leader(b.ctx)
	b.must(err)
	equal(b, "label of the leader", leader.Label, "10.0.0.1:80")
	equal(b, "term", leader.Term, first.Token())
	next := make(chan *signalbox.Term, 1)
	go func() {
		term, err := two.Campaign(b.ctx)
		if err != nil {
			b.Error(err)
		}
		if first.Err() == nil {
			b.Error("two terms at once")
		}
		next <- term
	}()
	b.eventually("a candidate", func() bool { return b.inspect().Waiters == 1 })
	b.must(first.Resign(b.ctx))
	second := awaited(b, "the second term", next)
	if second.Token() <= first.Token() {
		b.Fatalf("L2: term %d after %d", second.Token(), first.Token())
	}
	ctx, cancel := context.WithCancel(b.ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := one.Campaign(ctx)
		gone <- err
	}()
	b.eventually("a candidate", func() bool { return b.inspect().Waiters == 1 })
	cancel() // to resign while campaigning
	b.is(awaited(b, "the end of the campaign", gone), context.Canceled)
	b.must(second.Resign(b.ctx))
	b.nothingLeft()
}

func observeElection(b *bench) {
	election := b.box().Election(b.name)
	leaders := make(chan signalbox.Leader, 16)
	ctx, cancel := context.WithCancel(b.ctx)
	over := make(chan error, 1)
	go func() {
		for leader, err := range b.box().Election(b.name).Observe(ctx) {
			if err != nil {
				over <- err
				return
			}
			leaders <- leader
		}
	}()
	equal(b, "leader", awaited(b, "word of no leader", leaders).Exists(), false)
	var last int64
	for i := range 3 {
		label := fmt.Sprint("candidate ", i)
		term, err := election.Campaign(b.ctx, signalbox.Label(label))
		b.must(err)
		leader := awaited(b, "word of the leader", leaders)
		equal(b, "label of the leader", leader.Label, label)
		equal(b, "term", leader.Term, term.Token())
		if leader.Term <= last {
			b.Fatalf("L2: term %d after %d", leader.Term, last)
		}
		last = leader.Term
		b.must(term.Resign(b.ctx))
		equal(b, "leader", awaited(b, "word of no leader", leaders).Exists(), false)
	}
	cancel()
	b.is(awaited(b, "the end of Observe", over), context.Canceled)
}

func allOrNothing(b *bench) {
	box := b.box()
	n := b.tagged("x", "y", "z")
	x, y, z := box.Mutex(n[0]), box.Semaphore(n[1], 3), box.Mutex(n[2])
	all, err := box.AcquireAll(b.ctx, []signalbox.Request{x.Request(), y.Request(2), z.Request()})
	b.must(err)
	equal(b, "weight", all.All()[1].Weight(), 2)
	_, err = box.TryAcquireAll(b.ctx, []signalbox.Request{y.Request(1), z.Request()})
	b.is(err, signalbox.ErrBusy)
	if !strings.Contains(err.Error(), "z {") {
		b.Fatalf("the error does not name what is busy: %v", err)
	}
	b.use(n[1])
	equal(b, "permits of y", b.inspect().Held, 2)
	b.must(all.Release(b.ctx))
	b.is(all.Err(), signalbox.ErrReleased)
	for _, name := range n {
		b.use(name)
		b.nothingLeft()
	}
	_, err = box.AcquireAll(b.ctx, nil)
	b.is(err, signalbox.ErrInvalid)
	_, err = box.AcquireAll(b.ctx, []signalbox.Request{x.Request(), x.Request()})
	b.is(err, signalbox.ErrInvalid)
	_, err = box.AcquireAll(b.ctx, []signalbox.Request{y.Request(4)})
	b.is(err, signalbox.ErrTooHeavy)
	_, err = box.AcquireAll(b.ctx, []signalbox.Request{{}})
	b.is(err, signalbox.ErrInvalid)
}

// noDeadlock: many processes want pairs of the same resources in every order, singly too.
func noDeadlock(b *bench) {
	names := b.tagged("a", "b", "c", "d")
	var inside [4]atomic.Int64
	var workers sync.WaitGroup
	for i := range 8 {
		box := b.box(b.claim(longClaim))
		workers.Go(func() {
			for turn := range 20 {
				first, second := (i+turn)%4, (i*3+turn*2+1)%4
				var err error
				if first == second {
					err = box.Mutex(names[first]).Do(b.ctx, func(context.Context) error { return nil })
				} else {
					var all *signalbox.Leases
					all, err = box.AcquireAll(b.ctx,
						[]signalbox.Request{box.Mutex(names[first]).Request(), box.Mutex(names[second]).Request()})
					if err == nil {
						if inside[first].Add(1) != 1 || inside[second].Add(1) != 1 {
							b.Error("L1: two inside")
						}
						inside[first].Add(-1)
						inside[second].Add(-1)
						err = all.Release(b.ctx)
					}
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.join(&workers)
	for _, name := range names {
		b.use(name)
		b.nothingLeft()
	}
}

func allGivesUp(b *bench) {
	box := b.box()
	n := b.tagged("x", "y")
	x, y := box.Mutex(n[0]), box.Mutex(n[1])
	held := b.lease(y.Acquire(b.ctx))
	ctx, cancel := context.WithTimeout(b.ctx, 100*time.Millisecond)
	defer cancel()
	_, err := box.AcquireAll(ctx, []signalbox.Request{x.Request(), y.Request()})
	b.is(err, context.DeadlineExceeded)
	b.must(held.Release(b.ctx))
	for _, name := range n {
		b.use(name)
		b.nothingLeft()
	}
}

func allHoldsNothing(b *bench) {
	box := b.box()
	n := b.tagged("x", "y")
	x, y := box.Mutex(n[0]), box.Mutex(n[1])
	held := b.lease(y.Acquire(b.ctx))
	got := make(chan error, 1)
	go func() {
		all, err := box.AcquireAll(b.ctx, []signalbox.Request{x.Request(), y.Request()})
		if err == nil {
			err = all.Release(b.ctx)
		}
		got <- err
	}()
	b.use(n[0])
	b.eventually("a place in the queue of x", func() bool { return b.inspect().Waiters == 1 })
	equal(b, "held of x", b.inspect().Held, 0)
	b.must(held.Release(b.ctx))
	b.must(awaited(b, "the turn of all", got))
}

func within(b *bench) {
	box := b.box()
	all := box.Semaphore(b.name, 3)
	tenant := func(i int) *signalbox.Semaphore { return box.Semaphore(fmt.Sprint(b.name, " tenant ", i), 1) }
	_, err := tenant(1).Within(b.ctx, tenant(1)) // would wait for itself
	b.is(err, signalbox.ErrInvalid)
	first, err := tenant(1).Within(b.ctx, all)
	b.must(err)
	blocked := make(chan error, 1)
	go func() {
		leases, err := tenant(1).Within(b.ctx, all) // over its own limit
		if err == nil {
			err = leases.Release(b.ctx)
		}
		blocked <- err
	}()
	second, err := tenant(2).Within(b.ctx, all) // is not in its way
	b.must(err)
	equal(b, "held of all", b.inspect().Held, 2)
	b.must(first.Release(b.ctx))
	b.must(awaited(b, "the turn of the blocked", blocked))
	b.must(second.Release(b.ctx))
	b.nothingLeft()
}

func deadlockFound(b *bench) {
	box := b.box()
	names := []string{b.name + " x", b.name + " y"}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var workers sync.WaitGroup
	labels := []string{"one" + b.name, "two" + b.name}
	for i, label := range labels {
		b.lease(box.Mutex(names[i]).Acquire(b.ctx, signalbox.Label(label)))
	}
	for i, label := range labels {
		workers.Go(func() {
			_, err := box.Mutex(names[1-i]).Acquire(ctx, signalbox.Label(label))
			if !errors.Is(err, context.Canceled) {
				b.Errorf("got %v", err)
			}
		})
	}
	own := func(found []signalbox.Deadlock) (waits []signalbox.Blocked) {
		for _, deadlock := range found {
			for _, wait := range deadlock.Waits {
				if strings.HasSuffix(wait.Label, b.name) {
					waits = append(waits, wait)
				}
			}
		}
		return waits
	}
	b.eventually("both are found", func() bool {
		found, err := box.Deadlocks(b.ctx)
		b.must(err)
		return len(own(found)) == 2
	})
	cancel()
	b.join(&workers)
	found, err := box.Deadlocks(b.ctx)
	b.must(err)
	equal(b, "after one gave up", len(own(found)), 0)
}
