package simtest

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-io/signalbox"
)

// Readers xor one writer, also while readers become writers and back. A call that changes the weight and is not answered
// leaves unknown which one the server has: the lighter is counted, which is what the lease promises to be.
func readersAndWriters(w *world) workload {
	r := w.newRoll("rw", signalbox.MaxReaders)
	return workload{turn: r.readOrWrite}
}

func (r *roll) readOrWrite(a *actor) {
	lock := a.box.RWMutex(r.name)
	side, s := lock.Read(), a.stay(1)
	if a.oneIn(3) {
		side, s.weight = lock.Write(), signalbox.MaxReaders
	}
	acquire := side.Acquire
	if a.oneIn(5) {
		acquire = side.TryAcquire
	}
	ctx, cancel := a.context()
	defer cancel()
	lease, err := acquire(ctx, signalbox.TTL(s.ttl), signalbox.Label(s.label))
	if errors.Is(err, signalbox.ErrBusy) || (err != nil && r.world.check.cutEver(a.box.host, err)) {
		return
	}
	if !r.enter(ctx, s, lease, err) {
		return
	}
	a.work(lease.Done(), s.ttl)
	for range a.random.IntN(3) {
		r.change(a, lock, s)
		a.work(lease.Done(), s.ttl)
	}
	r.giveBack(s)
}

// change makes a reader a writer or the other way round.
func (r *roll) change(a *actor, lock *signalbox.RWMutex, s *stay) {
	called := time.Now()
	verb, change := "upgrade", lock.Upgrade
	if s.weight == signalbox.MaxReaders {
		verb, change = "downgrade", lock.Downgrade
		r.weigh(s, 1)
	}
	err := change(context.Background(), s.lease)
	r.world.trace.note("%s: %s of %s: %v", s.label, verb, r.name, err)
	switch {
	case err == nil && verb == "upgrade":
		r.weigh(s, signalbox.MaxReaders)
	case err == nil || errors.Is(err, signalbox.ErrBusy):
	case errors.Is(err, signalbox.ErrLeaseLost):
		a.reasonable(context.Background(), s.called, false, err)
	default:
		a.reasonable(context.Background(), called, true, err)
	}
}

// cutEver excuses a single request that met a connection which had been cut at any time before.
func (c *checker) cutEver(h *host, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Is(err, signalbox.ErrUnavailable) && c.troubled(h, c.trace.origin, true)
}
