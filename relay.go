package signalbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// A relay passes leases along inside this process. Acquisitions with LocalHandoff queue here, in order; as many of them
// as the limit has room for go to the server (they are at the front), and each brings back a lease with a block of
// tokens. Whoever releases such a lease hands its life to the first that waits here: the old Lease ends, a new one with the
// next token takes its place, and the server notices nothing. When the block is used up, or nobody waits here, the
// permits go back to the server and others have their turn.
//
// All of it is under the box's mu. Invariant: active is the number of acquisitions at the front plus the lives that came of
// them and are held. It ends with each of them in exactly one vacate.

// relayKey is what acquisitions must have in common to follow one another.
type relayKey struct {
	name          string
	limit, weight int
	ttl           time.Duration
	agreed        ledger.Terms // with how many may follow
}

type relay struct {
	box     *Box
	key     relayKey
	fronts  int
	active  int
	waiting []*runner
}

// runner is one acquisition that waits here.
type runner struct {
	permit *permit
	turn   chan *Lease // the lease; nil is a place at the front
}

// acquireRelayed is ask for an acquisition with LocalHandoff.
func (s *Semaphore) acquireRelayed(ctx context.Context, t terms) (*Lease, error) {
	b, key := s.box, relayKey{s.name, s.limit, t.weight, t.ttl, t.agreed}
	b.mu.Lock()
	r := b.relays[key]
	if r == nil {
		r = &relay{box: b, key: key, fronts: s.limit / t.weight}
		b.relays[key] = r
	}
	if r.active < r.fronts && len(r.waiting) == 0 {
		r.active++
		b.mu.Unlock()
		return r.front(ctx, s, t)
	}
	own := &runner{s.permit(ctx, &t), make(chan *Lease, 1)}
	r.waiting = append(r.waiting, own)
	b.mu.Unlock()
	var err error
	select {
	case lease := <-own.turn:
		if lease != nil {
			return lease, nil
		}
		return r.front(ctx, s, t)
	case <-ctx.Done():
		err = ended(ctx, own.permit.doing())
	case <-b.closing:
		err = fmt.Errorf("%s: %w", own.permit.doing(), ErrClosed)
	}
	r.leave(ctx, own)
	return nil, err
}

// front acquires at the server, for a place that is counted in active.
func (r *relay) front(ctx context.Context, s *Semaphore, t terms) (*Lease, error) {
	lease, err := s.ask(ctx, t, true)
	r.box.mu.Lock()
	defer r.box.mu.Unlock()
	if err != nil || lease.ended { // before it could tell
		r.vacate()
		return lease, err
	}
	lease.relay, lease.handoffs = r, *t.handoffs
	return lease, nil
}

// leave takes a runner out who gave up. What he was given at the last moment goes on.
func (r *relay) leave(ctx context.Context, own *runner) {
	r.box.mu.Lock()
	if at := slices.Index(r.waiting, own); at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
		r.box.mu.Unlock()
		return
	}
	lease := <-own.turn
	if lease == nil {
		r.vacate()
	}
	r.box.mu.Unlock()
	if lease != nil {
		// The error would be that the lease is over already, which is what is wanted.
		_ = lease.Release(context.WithoutCancel(ctx))
	}
}

// vacate gives a place at the front to the next runner, or up. Called with the box's mu held.
func (r *relay) vacate() {
	if len(r.waiting) > 0 {
		r.next().turn <- nil
		return
	}
	r.active--
	if r.active == 0 && r.box.relays[r.key] == r {
		delete(r.box.relays, r.key)
	}
}

func (r *relay) next() *runner {
	first := r.waiting[0]
	r.waiting[0] = nil
	r.waiting = r.waiting[1:]
	return first
}

// pass ends a lease that is being released and hands its life to the next runner. It reports false if there is none, or if
// the server is to have the permits. Called with the box's mu held.
func (l *Lease) pass(out *outbox) bool {
	r := l.relay
	if r == nil || l.handoffs == 0 || len(r.waiting) == 0 || r.box.closed != nil ||
		r.box.clock.Now() >= l.life.machine.Deadline() {
		return false
	}
	runner := r.next()
	runner.permit.id = l.id
	successor := newLease(l.box, l.life, runner.permit, l.token+1)
	successor.relay, successor.handoffs = r, l.handoffs-1
	l.passed, l.life.lease = true, successor
	l.end(&acquisition.Action{Why: acquisition.WasReleased}, out)
	runner.turn <- successor
	return true
}
