package signalbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Lease is permits that are held. It renews itself until it is released. Its context ends when it does: on Release,
// and when it is lost, then before the server can give the permits to somebody else.
//
// The clock that decides is this machine's monotonic one, counted from the moment the last renewal that was answered
// had been sent. A process that is paused cannot see that; what must hold even then checks Token.
type Lease struct {
	box      *Box
	resource *ledger.Resource
	id       string
	weight   int
	ttl      time.Duration
	token    int64
	doubtful bool // a request to acquire may still reach the server
	ctx      context.Context
	cancel   context.CancelCauseFunc
	duty     duty
	renewals int // failed in a row; the keeper's

	mu       sync.Mutex
	ended    bool
	deadline time.Time
	timer    *time.Timer
	trouble  error         // of the last renewal, nil if it succeeded
	released chan struct{} // made by the first Release, closed when it is done
	outcome  error         // of that one
}

// maxMargin bounds how long before the server a lease ends here.
const maxMargin = 500 * time.Millisecond

// margin is what is taken off a lease of a given span: a twentieth, for clocks that run at different rates and for the
// time a holder needs to stop.
func margin(span time.Duration) time.Duration {
	return min(max(span/20, 2*time.Millisecond), maxMargin)
}

// newLease reports false if the box closes and takes no new members.
func newLease(w *waiter, token int64, expires time.Time, span time.Duration) (*Lease, bool) {
	l := &Lease{
		box: w.box, resource: w.request.Resource, id: w.request.ID, weight: w.request.Weight, ttl: w.request.TTL,
		token: token, doubtful: w.doubtful || w.asking > 0, deadline: expires.Add(-margin(span)),
	}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(w.parent))
	l.duty.lease = l
	if !l.box.join(l.id, l) {
		l.cancel(ErrClosed)
		return nil, false
	}
	l.mu.Lock()
	l.timer = time.AfterFunc(time.Until(l.deadline), l.expire)
	l.mu.Unlock()
	third := min(span, l.ttl) / 3
	l.box.keeper.schedule(&l.duty, l.box.keeper.align(expires.Add(third-span), third))
	return l, true
}

// Resource is the name of what is held.
func (l *Lease) Resource() string { return l.resource.Name }

// ID names the lease on the server, for Box.Inspect and Box.Force.
func (l *Lease) ID() string { return l.id }

// Token is the fencing token: larger than that of every lease granted on the resource before.
func (l *Lease) Token() int64 { return l.token }

// Weight is how many permits are held.
func (l *Lease) Weight() int { return l.weight }

// Context ends with the lease; context.Cause says why. It carries the values of the context that acquired, not its end.
func (l *Lease) Context() context.Context { return l.ctx }

// Done is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err is nil while the lease is held; then it wraps ErrReleased, ErrLeaseLost, ErrForced or ErrClosed.
func (l *Lease) Err() error { return context.Cause(l.ctx) }

// Deadline is when the lease ends if no renewal succeeds until then.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Release gives the permits back; those who wait are granted theirs before it returns. It goes on although ctx has
// ended, and tries again until the lease would expire by itself. The error wraps ErrLeaseLost or ErrForced if the lease
// was not held any more, or ErrUnavailable. Calling it again returns the same.
func (l *Lease) Release(ctx context.Context) error {
	return l.release(ctx, ErrReleased)
}

func (l *Lease) release(ctx context.Context, cause error) error {
	l.mu.Lock()
	released, first := l.released, l.released == nil
	if first {
		released = make(chan struct{})
		l.released = released
	}
	deadline := l.deadline
	l.mu.Unlock()
	if !first {
		<-released
		return l.outcome
	}
	defer close(released)
	if l.end(cause) {
		l.outcome = l.giveBack(ctx, deadline)
	} else {
		l.outcome = fmt.Errorf("release %q: %w", l.resource.Name, l.Err())
	}
	return l.outcome
}

// giveBack tells the server until it answers or the lease has expired; once the box closes, for no longer than the
// claim time. An attempt nobody answered may have been the one that released, so that an answer of "not held" to a
// later one is good news.
func (l *Lease) giveBack(ctx context.Context, deadline time.Time) error {
	unsure, closing := false, l.box.closing
	for {
		hold, err := l.sendRelease(bounded{context.WithoutCancel(ctx), time.Now().Add(l.box.claim)})
		pause := backoff(l.box.claim)
		switch {
		case err == nil && (hold == ledger.Held || unsure):
			return nil
		case err == nil && hold == ledger.Forced:
			return fmt.Errorf("release %q: %w", l.resource.Name, ErrForced)
		case err == nil:
			return fmt.Errorf("release %q: %w: it had expired on the server", l.resource.Name, ErrLeaseLost)
		case !ledger.Retryable(err) || time.Now().Add(pause).After(deadline):
			return fmt.Errorf("%w; the server ends the lease when its ttl of %v is over", err, l.ttl)
		}
		unsure = unsure || !ledger.Undone(err)
		select {
		case <-time.After(pause):
		case <-closing:
			closing = nil
			if last := time.Now().Add(l.box.claim); last.Before(deadline) {
				deadline = last
			}
		}
	}
}

// bounded is a context with a deadline and no timer: the connection keeps the deadline, and a timer costs a release a
// good part of its round trip.
type bounded struct {
	context.Context
	until time.Time
}

func (b bounded) Deadline() (time.Time, bool) { return b.until, true }

// sendRelease ends the lease on the server. If a request to acquire may still arrive there, its id is barred too.
func (l *Lease) sendRelease(ctx context.Context) (ledger.Hold, error) {
	if !l.doubtful {
		return l.box.ledger.Release(ctx, l.resource, l.id)
	}
	was, err := l.box.ledger.Cancel(ctx, l.resource, l.id, l.box.claim)
	if err == nil && was == ledger.WasHeld {
		return ledger.Held, nil
	}
	return ledger.Lost, err
}

// end ends the lease on this side, once; it reports whether this was the time.
func (l *Lease) end(cause error) bool {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.box.keeper.cancel(&l.duty)
	l.box.part(l.id, l)
	l.cancel(cause)
	return true
}

// expire is the timer's: the deadline may have moved since it was set.
func (l *Lease) expire() {
	l.mu.Lock()
	left := time.Until(l.deadline)
	if left > 0 && !l.ended {
		l.timer.Reset(left)
		l.mu.Unlock()
		return
	}
	trouble := l.trouble
	l.mu.Unlock()
	err := fmt.Errorf("%w: %q could not be renewed in time", ErrLeaseLost, l.resource.Name)
	if trouble != nil {
		err = fmt.Errorf("%w: %w", err, trouble)
	}
	l.end(err)
}

// renewed takes the answer to a renewal.
func (l *Lease) renewed(sent time.Time, hold ledger.Hold, err error) {
	switch {
	case err != nil && l.box.stopping.Err() != nil:
		// Close interrupted the renewal. It ends the lease too, and releases it.
	case err != nil && ledger.Retryable(err):
		l.renewals++
		l.mu.Lock()
		l.trouble = err
		l.mu.Unlock()
		pause := min(backoff(l.box.claim), l.ttl/20) << min(l.renewals, 4)
		l.box.keeper.schedule(&l.duty, time.Now().Add(pause))
	case err != nil:
		l.end(errors.Join(fmt.Errorf("%w: %q", ErrLeaseLost, l.resource.Name), err))
	case hold == ledger.Held:
		l.renewals = 0
		l.extend(sent)
	case hold == ledger.Forced:
		l.end(fmt.Errorf("%w: %q", ErrForced, l.resource.Name))
	default:
		l.end(fmt.Errorf("%w: %q had expired on the server", ErrLeaseLost, l.resource.Name))
	}
}

func (l *Lease) extend(sent time.Time) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	l.trouble = nil
	l.deadline = sent.Add(l.ttl - margin(l.ttl))
	l.timer.Reset(time.Until(l.deadline))
	l.mu.Unlock()
	l.box.keeper.schedule(&l.duty, l.box.keeper.align(sent.Add(l.ttl/3), l.ttl/3))
}

// hear takes a message from the inbox. A grant that comes late, after the answer to a heartbeat, says nothing new.
func (l *Lease) hear(m message) {
	if m.verb == "force" {
		l.end(fmt.Errorf("%w: %q", ErrForced, l.resource.Name))
	}
}

// shut releases the lease of a box that closes. The holder's own Release returns what became of it.
func (l *Lease) shut() {
	// The error is the holder's to see.
	_ = l.release(context.Background(), fmt.Errorf("%w: %q", ErrClosed, l.resource.Name))
}
