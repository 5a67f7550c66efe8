package simtest

import (
	"github.com/signalbox-io/signalbox"
)

// Leases that are passed on inside a process: one holder at a time, a token of its own for each, and no more of them in a
// row than was said, so that other processes have their turn.
func handoffs(w *world) workload {
	const most = 4
	r := w.newRoll("handoff", 1)
	inRow := make(map[string]int) // by the lease's id on the server
	r.also = func(s *stay) {
		id := s.lease.ID()
		if inRow[id]++; inRow[id] > most+1 {
			w.check.violated("handoff: %s is the %d. on lease %s", s.label, inRow[id], id)
		}
	}
	return workload{turn: func(a *actor) {
		if a.oneIn(4) {
			r.once(a, 1)
			return
		}
		r.handOff(a, most)
	}}
}

// handOff acquires with one ttl for all, since only those follow one another. Some find what they hold again.
func (r *roll) handOff(a *actor, most int) {
	s := a.stay(1)
	s.ttl = a.plan.TTLs[0]
	ctx, cancel := a.context()
	defer cancel()
	mutex := a.box.Mutex(r.name)
	options := []signalbox.AcquireOption{
		signalbox.TTL(s.ttl), signalbox.Label(s.label), signalbox.LocalHandoff(most), signalbox.Reentrant(),
	}
	lease, err := mutex.Acquire(ctx, options...)
	if !r.enter(ctx, s, lease, err) {
		return
	}
	if a.oneIn(4) {
		again, err := mutex.Acquire(lease.Context(), options...)
		switch {
		case err == nil && again == lease:
			r.world.check.must("release once of twice", again.Release(ctx))
		case err == nil:
			r.world.check.broken("handoff: %s entered lease %s from within %s", s.label, again.ID(), lease.ID())
		}
	}
	a.work(lease.Done(), s.ttl)
	r.giveBack(s)
}
