package signalbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Quorum locks over several independent servers, of which a minority may fail or forget: the algorithm of Redlock. A lock
// is had when the majority has granted it. Servers must not replicate each other, and one that has lost its memory must
// stay away for as long as the longest ttl; pauses and clocks that run at different rates are its limits, as the limits of
// every lease: check tokens.
//
// All processes must name the servers in the same order. The first that can be reached is where they queue, in order; on
// the others they find the way free but for races and failures. Who does not get the majority gives everything back and
// tries again after a while.
type Quorum struct {
	boxes    []*Box
	err      error
	majority int
}

// NewQuorum makes a quorum of an odd number of boxes, at least three, each over another server.
func NewQuorum(boxes ...*Box) *Quorum {
	q := &Quorum{boxes: boxes, majority: len(boxes)/2 + 1}
	if len(boxes) < 3 || len(boxes)%2 == 0 {
		q.err = fmt.Errorf("%w: a quorum of %d boxes, must be an odd number of at least 3", ErrInvalid, len(boxes))
	}
	seen := make(map[*Box]bool)
	for _, box := range boxes {
		if box == nil || seen[box] {
			q.err = fmt.Errorf("%w: a box of the quorum is nil, or named twice", ErrInvalid)
		}
		seen[box] = true
	}
	return q
}

// QuorumMutex lets one holder in at a time, by the majority of the servers.
type QuorumMutex struct {
	quorum *Quorum
	name   string
}

// Mutex returns the mutex of a name. A bad name is reported by the first call.
func (q *Quorum) Mutex(name string) *QuorumMutex { return &QuorumMutex{q, name} }

// QuorumLease is a lock held on the majority of the servers. Its context ends when it is held on a minority only, which
// is given back then, on Release, and before the servers can give it to somebody else.
type QuorumLease struct {
	name     string
	token    int64
	majority int
	ctx      context.Context
	cancel   context.CancelCauseFunc

	leases []*Lease // on every server that granted one
	raised []*Lease // those of them that know the token: the majority, or more
	unlink []func() bool

	mu   sync.Mutex
	held int
}

// Acquire waits for its turn. Of the options, TTL, Label, LockDelay, HoldAtLeast and NoticeWaiters are heeded, on every
// server. While fewer than the majority can be reached it goes on trying until ctx ends.
func (m *QuorumMutex) Acquire(ctx context.Context, options ...AcquireOption) (*QuorumLease, error) {
	for {
		lease, err := m.attempt(ctx, options, true)
		if err == nil {
			return lease, nil
		}
		if over(ctx) != nil {
			return nil, ended(ctx, m.name)
		}
		if !isBusy(err) && !errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		// Those who met each other must not meet again.
		pause := time.NewTimer(20*time.Millisecond + rand.N(100*time.Millisecond))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ended(ctx, m.name)
		}
	}
}

// TryAcquire does not wait for anybody: it is refused with ErrBusy if the majority cannot be had at once, and with
// ErrUnavailable if it cannot be reached.
func (m *QuorumMutex) TryAcquire(ctx context.Context, options ...AcquireOption) (*QuorumLease, error) {
	return m.attempt(ctx, options, false)
}

// Do runs fn while holding the mutex. See Semaphore.Do.
func (m *QuorumMutex) Do(ctx context.Context, fn func(ctx context.Context) error, options ...AcquireOption) (err error) {
	lease, err := m.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(lease.ctx, func() { cancel(lease.Err()) })
	defer func() {
		unlink()
		cancel(nil)
		err = errors.Join(err, lease.Release(ctx))
	}()
	return fn(inner)
}

// attempt asks every server once.
func (m *QuorumMutex) attempt(ctx context.Context, options []AcquireOption, wait bool) (*QuorumLease, error) {
	if m.quorum.err != nil {
		return nil, fmt.Errorf("acquire %q: %w", m.name, m.quorum.err)
	}
	t := newTerms(options)
	if err := t.check(m.name, 1); err != nil {
		return nil, err
	}
	if t.reentrant || t.replicas != nil || t.handoffs != nil || t.pace != nil || t.onWait != nil {
		return nil, fmt.Errorf("acquire %q: %w: of the options only TTL, Label, LockDelay, HoldAtLeast and NoticeWaiters "+
			"have a meaning here", m.name, ErrInvalid)
	}
	leases, errs := m.collect(ctx, options, wait, t.ttl)
	if over(ctx) != nil {
		giveUp(ctx, leases)
		return nil, ended(ctx, m.name)
	}
	if len(leases) < m.quorum.majority {
		giveUp(ctx, leases)
		return nil, m.failure(len(leases), errs)
	}
	lease, err := m.raise(ctx, leases)
	if err != nil {
		giveUp(ctx, leases)
		return nil, err
	}
	return lease, nil
}

// collect queues at the first server that can be reached, and tries the others at once.
func (m *QuorumMutex) collect(
	ctx context.Context, options []AcquireOption, wait bool, ttl time.Duration,
) (leases []*Lease, errs []error) {
	boxes := m.quorum.boxes
	for wait && len(boxes) > 0 && len(leases) == 0 {
		first := boxes[0].Mutex(m.name)
		boxes = boxes[1:]
		lease, err := first.Acquire(ctx, options...)
		switch {
		case err == nil:
			leases = append(leases, lease)
		case over(ctx) != nil:
			return nil, append(errs, err)
		default:
			errs = append(errs, err)
		}
	}
	// A server that does not answer must not use up the ttl of those that have.
	ctx, done := context.WithTimeout(ctx, max(min(ttl/4, 2*time.Second), 5*time.Millisecond))
	defer done()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, box := range boxes {
		all.Go(func() {
			lease, err := box.Mutex(m.name).TryAcquire(ctx, options...)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				leases = append(leases, lease)
			} else {
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	return leases, errs
}

func giveUp(ctx context.Context, leases []*Lease) {
	var all sync.WaitGroup
	for _, lease := range leases {
		// What cannot be given back now ends with its ttl.
		all.Go(func() { _ = lease.Release(ctx) })
	}
	all.Wait()
}

// failure puts what the servers said into one error: what will not pass by itself first; then busy, if one was, for
// others may be behind it; else unavailable, which a server is too that did not answer in the time it was given.
func (m *QuorumMutex) failure(granted int, errs []error) error {
	kind := ErrUnavailable
	for _, err := range errs {
		switch {
		case isBusy(err):
			kind = ErrBusy
		case errors.Is(err, ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		default:
			return err
		}
	}
	return fmt.Errorf("acquire %q: %w: %d of %d servers, %d are needed: %v", m.name, kind, granted, len(m.quorum.boxes),
		m.quorum.majority, errors.Join(errs...)) //nolint:errorlint // a time limit in there is not the caller's
}

// raise makes the largest of the tokens that of all, and has the majority know it before anybody uses it: so the next
// majority, which has a server in common with this one, comes to a larger one.
func (m *QuorumMutex) raise(ctx context.Context, leases []*Lease) (*QuorumLease, error) {
	token := int64(0)
	for _, lease := range leases {
		token = max(token, lease.Token())
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	var held []*Lease
	for _, lease := range leases {
		all.Go(func() {
			hold, err := lease.box.ledger.Raise(ctx, lease.resource, lease.id, token)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && hold == ledger.Held && lease.Err() == nil {
				held = append(held, lease)
			} else {
				errs = append(errs, fmt.Errorf("%w: raise %q: %v", ErrUnavailable, m.name, errors.Join(err, lease.Err()))) //nolint:errorlint // what counts is that it is not held
			}
		})
	}
	all.Wait()
	if len(held) < m.quorum.majority {
		return nil, m.failure(len(held), errs)
	}
	l := &QuorumLease{name: m.name, token: token, majority: m.quorum.majority, leases: leases, raised: held, held: len(held)}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, lease := range held {
		l.unlink = append(l.unlink, context.AfterFunc(lease.ctx, func() { l.lost(lease.Err()) }))
	}
	return l, nil
}

// lost counts one server less. What is left of a majority that is none any more would be renewed for ever by a caller who
// does not release what is lost: it is given back.
func (l *QuorumLease) lost(err error) {
	l.mu.Lock()
	l.held--
	minority := l.held < l.majority
	l.mu.Unlock()
	if !minority {
		return
	}
	cause := minorityLeft(err)
	l.cancel(cause)
	for _, lease := range l.leases {
		if lease.box.enter() != nil {
			continue // it closes, and gives back what it has
		}
		go func() {
			defer lease.box.tasks.Done()
			// What cannot be given back ends with its ttl.
			_ = lease.release(context.Background(), cause)
		}()
	}
}

// minorityLeft is why a lease ended whose last server of the majority was lost for the reason given.
func minorityLeft(err error) error { return fmt.Errorf("the majority is lost: %w", err) }

// Resource is the name of what is held.
func (l *QuorumLease) Resource() string { return l.name }

// Token is the fencing token: larger than that of every lease granted by a majority before.
func (l *QuorumLease) Token() int64 { return l.token }

// Servers is on how many servers the lease is held at this moment.
func (l *QuorumLease) Servers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Context ends with the lease; context.Cause says why. It carries the values of the context that acquired.
func (l *QuorumLease) Context() context.Context { return l.ctx }

// Done is closed when the lease ends.
func (l *QuorumLease) Done() <-chan struct{} { return l.ctx.Done() }

// Err is nil while the lease is held; then it wraps ErrReleased, or why the last server of the majority was lost. Like that
// of a Lease it looks at the clock.
func (l *QuorumLease) Err() error {
	held, lost := 0, error(nil)
	for _, lease := range l.raised {
		if err := lease.Err(); err != nil {
			lost = err
		} else {
			held++
		}
	}
	if held < l.majority {
		l.cancel(minorityLeft(lost)) // unless it has ended before, with another cause
	}
	return context.Cause(l.ctx)
}

// Release gives the lock back on every server. The error is nil if the majority took it back while it was held.
func (l *QuorumLease) Release(ctx context.Context) error {
	for _, unlink := range l.unlink {
		unlink()
	}
	l.cancel(ErrReleased)
	var mu sync.Mutex
	var all sync.WaitGroup
	var errs []error
	for _, lease := range l.leases {
		all.Go(func() {
			err := lease.Release(ctx)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	if len(l.leases)-len(errs) >= l.majority {
		return nil
	}
	return errors.Join(errs...)
}
