package signalbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// QuorumLease is a lock held on the majority of the servers. Its context ends when it is held on a minority only, which
// is given back then, on Release, and before the servers can give it to somebody else.
//
// A server that it has lost, or that did not answer when it was acquired, is asked again every third of the ttl, and counts
// again when it has granted and knows the token. What it granted may have a larger token than the lease: nobody ever sees
// that one, so the lease keeps its own, and the other servers need not know. A server where an operator ended the lease is
// left alone.
type QuorumLease struct {
	quorum  *Quorum
	name    string
	token   int64
	ctx     context.Context
	cancel  context.CancelCauseFunc
	options []AcquireOption
	ttl     time.Duration
	hold    time.Duration // by HoldAtLeast
	since   time.Time

	// By server. Guarded by the mutex of the quorum.
	shares []share
	ended  bool
	timer  *time.Timer // runs regain; nil while no server is missing
}

// share is what a lease has of one server.
type share struct {
	lease     *Lease // nil if it does not count; those that do know the token
	regaining bool
	barred    bool // it is not to be regained
}

func newQuorumLease(
	ctx context.Context, m *QuorumMutex, token int64, held []answer, options []AcquireOption, t *terms,
) *QuorumLease {
	l := &QuorumLease{
		quorum: m.quorum, name: m.name, token: token, options: append([]AcquireOption(nil), options...), ttl: t.ttl,
		hold: t.agreed.Hold, since: time.Now(), shares: make([]share, len(m.quorum.boxes)),
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, a := range held {
		l.shares[a.server].lease = a.lease
	}
	l.quorum.mu.Lock()
	l.arm()
	l.quorum.mu.Unlock()
	for _, a := range held {
		l.follow(a.server, a.lease)
	}
	return l
}

// follow has the loss of a server noticed.
func (l *QuorumLease) follow(server int, lease *Lease) {
	context.AfterFunc(lease.Context(), func() { l.lost(server, lease) })
}

// lost counts one server less. What is left of a majority that is none any more would be renewed for ever by a caller who
// does not release what is lost: it is given back.
func (l *QuorumLease) lost(server int, lease *Lease) {
	err := lease.Err()
	l.quorum.mu.Lock()
	if l.ended || l.shares[server].lease != lease {
		l.quorum.mu.Unlock()
		return
	}
	minority := len(l.held())-1 < l.quorum.majority
	if !minority {
		barred := errors.Is(err, ErrForced) || errors.Is(err, ErrClosed)
		l.shares[server] = share{barred: barred}
		l.arm()
	}
	l.quorum.mu.Unlock()
	if minority {
		l.lose(err)
	}
}

// held is the servers that count. Called with the mutex held.
func (l *QuorumLease) held() (held []answer) {
	for server, share := range l.shares {
		if share.lease != nil {
			held = append(held, answer{server: server, lease: share.lease})
		}
	}
	return held
}

// arm has regain run after a while, if a server is missing. Called with the mutex held.
func (l *QuorumLease) arm() {
	for _, share := range l.shares {
		if share.lease == nil && !share.barred && l.timer == nil && !l.ended {
			l.timer = time.AfterFunc(l.ttl/4+rand.N(l.ttl/6), l.regain)
		}
	}
}

// regain is the timer's: it asks the servers that are missing.
func (l *QuorumLease) regain() {
	var missing []int
	l.quorum.mu.Lock()
	l.timer = nil
	for server := range l.shares {
		share := &l.shares[server]
		wanted := share.lease == nil && !share.barred && !share.regaining && !l.ended
		if wanted && l.quorum.silence[server].due() {
			share.regaining, missing = true, append(missing, server)
		}
	}
	l.arm()
	l.quorum.mu.Unlock()
	for _, server := range missing {
		box := l.quorum.boxes[server]
		if box.enter() != nil {
			continue // it is closed, and stays away
		}
		go func() {
			defer box.tasks.Done()
			l.regainAt(server)
			l.quorum.mu.Lock()
			defer l.quorum.mu.Unlock()
			l.shares[server].regaining = false
		}()
	}
}

// regainAt queues at one server for a while: behind those who will find that they cannot have the majority, and before
// those who come later, who then wait there for their turn.
func (l *QuorumLease) regainAt(server int) {
	ctx, done := context.WithTimeout(l.ctx, answerBound(l.ttl))
	defer done()
	options := append(l.options[:len(l.options):len(l.options)], HoldAtLeast(max(0, l.hold-time.Since(l.since))))
	got := l.quorum.queueAt(ctx, l.name, server, hedge, options)
	if got.err != nil {
		return // the timer has been set again
	}
	if raiseAt(ctx, got.lease, l.token) != nil || !l.add(server, got.lease) {
		_ = got.lease.Release(context.Background()) // else it ends with its ttl
	}
}

// add counts a server again, unless the lease is over. The order matters: the majority must be there at a moment when this
// server has been had already. Else the lease could have been without one for a moment, in which somebody else came and
// went, and this would bring it back to life.
func (l *QuorumLease) add(server int, lease *Lease) bool {
	if l.Err() != nil || lease.Err() != nil {
		return false
	}
	l.quorum.mu.Lock()
	over := l.ended
	if !over {
		l.shares[server].lease = lease
	}
	l.quorum.mu.Unlock()
	if !over {
		l.follow(server, lease)
	}
	return !over
}

// end ends the lease on this side, once; it returns what was held then, and whether this was the time.
func (l *QuorumLease) end(cause error) (held []answer, first bool) {
	l.quorum.mu.Lock()
	first, l.ended = !l.ended, true
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	l.cancel(cause) // the first cause stays
	held = l.held()
	l.quorum.mu.Unlock()
	return held, first
}

// lose ends a lease whose majority is lost for the reason given.
func (l *QuorumLease) lose(err error) {
	held, first := l.end(fmt.Errorf("the majority is lost: %w", err))
	if !first {
		return
	}
	for _, a := range held {
		box := l.quorum.boxes[a.server]
		if box.enter() != nil {
			continue // it closes, and gives back what it has
		}
		go func() {
			defer box.tasks.Done()
			_ = a.lease.Release(context.Background()) // else it ends with its ttl
		}()
	}
}

// Resource is the name of what is held.
func (l *QuorumLease) Resource() string { return l.name }

// Token is the fencing token: larger than that of every lease granted by a majority before.
func (l *QuorumLease) Token() int64 { return l.token }

// Servers is on how many servers the lease is held at this moment. It rises again when a server is regained.
func (l *QuorumLease) Servers() int {
	l.quorum.mu.Lock()
	defer l.quorum.mu.Unlock()
	return len(l.held())
}

// Context ends with the lease; context.Cause says why. It carries the values of the context that acquired.
func (l *QuorumLease) Context() context.Context { return l.ctx }

// Done is closed when the lease ends.
func (l *QuorumLease) Done() <-chan struct{} { return l.ctx.Done() }

// Err is nil while the lease is held; then it wraps ErrReleased, or why the last server of the majority was lost. Like that
// of a Lease it looks at the clock.
func (l *QuorumLease) Err() error {
	l.quorum.mu.Lock()
	over, held := l.ended, l.held()
	l.quorum.mu.Unlock()
	alive, lost := 0, error(nil)
	for _, a := range held {
		if err := a.lease.Err(); err != nil {
			lost = err
		} else {
			alive++
		}
	}
	if !over && alive < l.quorum.majority {
		l.lose(lost)
	}
	return context.Cause(l.ctx)
}

// Release gives the lock back on every server. The error is nil if the majority took it back while it was held. It does not
// wait for servers that are silent when the majority has answered; it goes on there in the background.
func (l *QuorumLease) Release(ctx context.Context) error {
	held, _ := l.end(ErrReleased)
	if ctx.Err() != nil { // it had ended before: then nobody can give up any more
		ctx = context.WithoutCancel(ctx)
	}
	leases, servers := byServer(held)
	released, errs := 0, []error(nil)
	for _, a := range l.quorum.ask(ctx, servers, l.quorum.majority, l.ttl, func(ctx context.Context, server int) (*Lease, error) {
		return nil, leases[server].Release(ctx)
	}) {
		if a.err != nil {
			errs = append(errs, a.err)
		} else {
			released++
		}
	}
	if released >= l.quorum.majority {
		return nil
	}
	if cause := context.Cause(l.ctx); !errors.Is(cause, ErrReleased) {
		errs = append(errs, fmt.Errorf("release %q: %w", l.name, cause))
	}
	if endOf(ctx) != nil {
		errs = append(errs, fmt.Errorf("release %q: %w; it goes on in the background", l.name, endOf(ctx)))
	}
	return errors.Join(errs...)
}
