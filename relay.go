package signalbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// A relay passes leases along inside this process. Acquisitions with LocalHandoff queue here, in order; as many of them
// as the limit has room for go to the server (they are at the front), and each brings back a lease with a block of
// tokens. Whoever releases such a lease hands it to the first that waits here: the old Lease ends, a new one with the
// next token takes its place, and the server notices nothing. When the block is used up, or nobody waits here, the
// permits go back to the server and others have their turn.
//
// Invariant: active is the number of acquisitions at the front plus the leases that came of them and are held. It ends
// with each of them in exactly one vacate.

// relayKey is what acquisitions must have in common to follow one another.
type relayKey struct {
	name          string
	limit, weight int
	ttl           time.Duration
	agreed        ledger.Terms // with how many may follow
}

type relay struct {
	box    *Box
	key    relayKey
	fronts int

	mu      sync.Mutex
	active  int
	waiting []*runner
	gone    bool // no longer in box.relays
}

// runner is one acquisition that waits here.
type runner struct {
	ctx    context.Context
	label  string
	shared bool
	turn   chan *Lease // the lease; nil is a place at the front
}

// relay returns the relay that an acquisition belongs to.
func (b *Box) relay(s *Semaphore, t *terms) *relay {
	key := relayKey{s.name, s.limit, t.weight, t.ttl, t.agreed}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.relays[key]
	if r == nil {
		r = &relay{box: b, key: key, fronts: s.limit / t.weight}
		b.relays[key] = r
	}
	return r
}

func (r *relay) acquire(ctx context.Context, s *Semaphore, t terms) (*Lease, error) {
	r.mu.Lock()
	if r.gone {
		r.mu.Unlock()
		return r.box.relay(s, &t).acquire(ctx, s, t)
	}
	if r.active < r.fronts && len(r.waiting) == 0 {
		r.active++
		r.mu.Unlock()
		return r.front(ctx, s, t)
	}
	own := &runner{ctx, t.label, t.reentrant, make(chan *Lease, 1)}
	r.waiting = append(r.waiting, own)
	r.mu.Unlock()
	var err error
	select {
	case lease := <-own.turn:
		if lease != nil {
			return lease, nil
		}
		return r.front(ctx, s, t)
	case <-ctx.Done():
		err = ended(ctx, s.name)
	case <-r.box.closing:
		err = fmt.Errorf("acquire %q: %w", s.name, ErrClosed)
	}
	r.leave(own)
	return nil, err
}

// front acquires at the server, for a place that is counted in active.
func (r *relay) front(ctx context.Context, s *Semaphore, t terms) (*Lease, error) {
	lease, err := s.ask(ctx, t, true)
	if err != nil {
		r.vacate()
		return nil, err
	}
	lease.mu.Lock()
	over := lease.ended
	lease.relay, lease.handoffs = r, *t.handoffs
	lease.mu.Unlock()
	if over { // before it could tell
		r.vacate()
	}
	return lease, nil
}

// leave takes a runner out who gave up. What he was given at the last moment goes on.
func (r *relay) leave(own *runner) {
	r.mu.Lock()
	at := slices.Index(r.waiting, own)
	if at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	}
	r.mu.Unlock()
	if at >= 0 {
		return
	}
	if lease := <-own.turn; lease != nil {
		// The error would be that the lease is over already, which is what is wanted.
		_ = lease.release(context.WithoutCancel(own.ctx), ErrReleased)
		return
	}
	r.vacate()
}

// vacate gives a place at the front to the next runner, or up.
func (r *relay) vacate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vacated()
}

// vacated is vacate with r.mu held.
func (r *relay) vacated() {
	if len(r.waiting) > 0 {
		r.next().turn <- nil
		return
	}
	r.active--
	if r.active > 0 {
		return
	}
	r.gone = true
	r.box.mu.Lock()
	defer r.box.mu.Unlock()
	if r.box.relays[r.key] == r {
		delete(r.box.relays, r.key)
	}
}

// next takes the first runner out. Called with r.mu held, and with one there.
func (r *relay) next() *runner {
	first := r.waiting[0]
	r.waiting[0] = nil
	r.waiting = r.waiting[1:]
	return first
}

// pass hands a lease that is being released to the next runner. It reports false if there is none, or if the server is
// to have it.
func (r *relay) pass(l *Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return false
	}
	successor, lost := l.succeed(r.waiting[0])
	if successor == nil {
		return false
	}
	r.next().turn <- successor
	if lost {
		r.vacated()
	}
	return true
}

// succeed ends the lease on this side and returns one with the next token in its place; nil if there is no token left,
// or if the lease has ended. lost says that the successor ended before it knew of the relay. Called with the relay's mu
// held.
func (l *Lease) succeed(to *runner) (successor *Lease, lost bool) {
	l.mu.Lock()
	if l.ended || l.handoffs == 0 {
		l.mu.Unlock()
		return nil, false
	}
	g := l.grant
	g.label, g.shared, g.since = to.label, to.shared, time.Now()
	weight, token, handoffs := l.weight, l.token+1, l.handoffs-1
	expires := l.deadline.Add(margin(l.ttl)) // what is left is not counted anew
	l.mu.Unlock()
	due, waits := l.box.keeper.scheduled(&l.duty)
	if !waits {
		// A renewal is on its way; its answer is the heir's, and says when the next is due. Were each heir renewed at once,
		// a lease that came by a message, with little time left, would cost a request for each that follows on it.
		due = time.Now().Add(time.Until(expires) / 4)
	}
	successor, ok := newLeaseDue(to.ctx, g, weight, token, expires, l.ttl, due)
	if !ok {
		return nil, false
	}
	relay, ok := l.finish(ErrReleased)
	if !ok {
		// It was lost at this moment; its end gives up the place.
		successor.end(l.Err())
		return nil, false
	}
	l.mu.Lock()
	l.heir = successor
	l.mu.Unlock()
	successor.mu.Lock()
	defer successor.mu.Unlock()
	successor.relay, successor.handoffs = relay, handoffs
	return successor, successor.ended
}

func (l *Lease) relayed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.relay != nil
}
