package signalbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Lease is permits that are held. It renews itself until it is released. Its context ends when it does: on Release,
// and when it is lost, then before the server can give the permits to somebody else.
//
// The clock that decides is this machine's monotonic one, counted from the moment the last renewal that was answered
// had been sent. A process that is paused cannot see that; what must hold even then checks Token.
type Lease struct {
	grant
	ctx    context.Context
	cancel context.CancelCauseFunc
	wanted chan struct{} // closed when somebody waits
	duty   duty

	mu       sync.Mutex
	relay    *relay // nil but with LocalHandoff
	weight   int
	token    int64
	holds    int    // acquisitions by Reentrant that are not released yet
	handoffs int    // left to the relay
	heir     *Lease // that the relay has put in the place of this one
	ended    bool
	cause    error // why it ended; the context hears of it a moment later
	told     bool  // observers know that it was granted
	isWanted bool
	deadline time.Time
	due      time.Time // of the next renewal
	timer    *time.Timer
	replicas int
	renewals int           // failed in a row; an heir hears of its predecessor's, too, beside its own
	trouble  error         // of the last renewal, nil if it succeeded
	released chan struct{} // made by the first Release, closed when it is done
	outcome  error         // of that one
	unsure   bool          // an attempt of it may have released
}

// grant is what a lease is made of and keeps.
type grant struct {
	box      *Box
	resource *ledger.Resource
	id       string
	label    string
	ttl      time.Duration
	cool     time.Duration
	since    time.Time // by this machine's clock
	doubtful bool      // a request to acquire may still reach the server
	shared   bool      // by Reentrant
	notice   bool      // by NoticeWaiters
}

// maxMargin bounds how long before the server a lease ends here.
const maxMargin = 500 * time.Millisecond

// margin is what is taken off a lease of a given span: a twentieth, for clocks that run at different rates and for the
// time a holder needs to stop.
func margin(span time.Duration) time.Duration {
	return min(max(span/20, 2*time.Millisecond), maxMargin)
}

// newLease makes the lease of a grant that the server ends at `expires`, `span` after it was made or last renewed. It
// reports false if the box closes and takes no new members.
func newLease(
	parent context.Context, g grant, weight int, token int64, expires time.Time, span time.Duration,
) (*Lease, bool) {
	third := min(span, g.ttl) / 3
	return newLeaseDue(parent, g, weight, token, expires, span, g.box.keeper.align(expires.Add(third-span), third))
}

// newLeaseDue is newLease with the time of the first renewal.
func newLeaseDue(
	parent context.Context, g grant, weight int, token int64, expires time.Time, span time.Duration, due time.Time,
) (*Lease, bool) {
	l := &Lease{
		grant: g, weight: weight, token: token, wanted: make(chan struct{}), deadline: expires.Add(-margin(span)),
	}
	l.ctx, l.cancel = context.WithCancelCause(l.carry(context.WithoutCancel(parent)))
	l.duty.lease = l
	if !l.box.join(l.id, l) {
		l.cancel(ErrClosed)
		return nil, false
	}
	l.mu.Lock()
	l.timer = time.AfterFunc(time.Until(l.deadline), l.expire)
	l.due = due
	l.mu.Unlock()
	l.box.keeper.schedule(&l.duty, due)
	if l.notice {
		l.box.inbox.open()
	}
	return l, true
}

// Resource is the name of what is held.
func (l *Lease) Resource() string { return l.resource.Name }

// ID names the lease on the server, for Box.Inspect and Box.Force.
func (l *Lease) ID() string { return l.id }

// Token is the fencing token: larger than that of every lease granted on the resource before. RWMutex.Upgrade changes
// it.
func (l *Lease) Token() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// Weight is how many permits are held.
func (l *Lease) Weight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weight
}

// Wanted is closed when somebody waits for the resource: a holder that can finish early may do so. It is heard at once
// if the lease was acquired with NoticeWaiters, and otherwise with the next renewal. It stays closed.
func (l *Lease) Wanted() <-chan struct{} { return l.wanted }

// Replicas is how many replicas had the grant when Acquire returned, if it was asked for by WithReplicas; otherwise 0.
func (l *Lease) Replicas() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replicas
}

// Context ends with the lease; context.Cause says why. It carries the values of the context that acquired, not its end.
func (l *Lease) Context() context.Context { return l.ctx }

// Done is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err is nil while the lease is held; then it wraps ErrReleased, ErrLeaseLost, ErrForced or ErrClosed. It looks at the
// clock: where a busy machine lets timers, and with them Done, come late, it ends a lease whose Deadline has passed
// itself.
func (l *Lease) Err() error {
	l.mu.Lock()
	cause, ended := l.cause, l.ended
	over := !ended && !time.Now().Before(l.deadline)
	l.mu.Unlock()
	if !over {
		return cause
	}
	l.expire()
	return l.Err()
}

// Deadline is when the lease ends if no renewal succeeds until then.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Release gives the permits back; those who wait are granted theirs before it returns. A ctx that has ended already
// makes no difference; one that ends meanwhile ends the call with its error, and the server is told in the background.
// That is tried until the lease would expire by itself. Other errors wrap ErrLeaseLost or ErrForced if the lease was not
// held any more, or ErrUnavailable. Calling it again returns the same.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	if l.holds > 0 && !l.ended {
		l.holds--
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	return l.release(ctx, ErrReleased)
}

func (l *Lease) release(ctx context.Context, cause error) error {
	abandon := ctx.Done()
	if ctx.Err() != nil { // it had ended before: then nobody can give up any more
		abandon = nil
	}
	l.mu.Lock()
	released, first := l.released, l.released == nil
	if first {
		released = make(chan struct{})
		l.released = released
	}
	deadline, relay := l.deadline, l.relay
	l.mu.Unlock()
	if first {
		if relay != nil && relay.pass(l) {
			close(released)
			return nil
		}
		// Close waits for it, and does not close the client before. If Close has begun already, it has this lease among
		// those that it releases, and waits there.
		if l.box.enter() == nil {
			defer l.box.tasks.Done()
		}
		if !l.end(cause) {
			l.outcome = fmt.Errorf("release %q: %w", l.resource.Name, l.Err())
			close(released)
			return l.outcome
		}
		// This goroutine does it, as long as ctx lets it: another one costs more than the request.
		finished := false
		if l.outcome, finished = l.giveBack(ctx, deadline, abandon); finished || l.box.enter() != nil {
			close(released)
			return l.outcome
		}
		go func() {
			defer l.box.tasks.Done()
			defer close(released)
			l.outcome, _ = l.giveBack(context.WithoutCancel(ctx), deadline, nil)
		}()
	}
	select {
	case <-released:
		return l.outcome
	case <-abandon:
	}
	return fmt.Errorf("release %q: %w; it goes on in the background", l.resource.Name, ctx.Err())
}

// giveBack tells the server until it answers or the lease has expired; once the box closes, for no longer than the
// claim time. An attempt nobody answered may have been the one that released, so that an answer of "not held" to a
// later one is good news. It stops unfinished between two attempts when abandon is closed.
func (l *Lease) giveBack(ctx context.Context, deadline time.Time, abandon <-chan struct{}) (err error, finished bool) {
	closing := l.box.closing
	for {
		hold, err := l.sendRelease(bounded{context.WithoutCancel(ctx), time.Now().Add(l.box.claim)})
		pause := backoff(l.box.claim)
		switch {
		case err == nil && (hold == ledger.Held || l.unsure):
			return nil, true
		case err == nil && hold == ledger.Forced:
			return fmt.Errorf("release %q: %w", l.resource.Name, ErrForced), true
		case err == nil:
			return fmt.Errorf("release %q: %w: it had expired on the server", l.resource.Name, ErrLeaseLost), true
		case !ledger.Retryable(err) || time.Now().Add(pause).After(deadline):
			return fmt.Errorf("%w; the server ends the lease when its ttl of %v is over", err, l.ttl), true
		}
		l.unsure = l.unsure || !ledger.Undone(err)
		select {
		case <-time.After(pause):
		case <-abandon:
			return err, false
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
	was, err := l.box.ledger.GiveBack(ctx, l.resource, l.id, l.box.claim)
	if err == nil && was == ledger.WasHeld {
		return ledger.Held, nil
	}
	return ledger.Lost, err
}

// end ends the lease on this side, once; it reports whether this was the time.
func (l *Lease) end(cause error) bool {
	relay, ok := l.finish(cause)
	if relay != nil {
		relay.vacate()
	}
	return ok
}

// finish is end without giving up the place in the relay, which is returned if there is one to give up.
func (l *Lease) finish(cause error) (*relay, bool) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil, false
	}
	l.ended, l.cause = true, cause
	relay, told := l.relay, l.told
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.box.keeper.cancel(&l.duty)
	l.box.part(l.id, l)
	l.cancel(cause)
	if told { // otherwise observed does, if the lease reaches its caller
		l.observeEnd()
	}
	return relay, true
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

// renewed takes the answer to a renewal. It is the heir's, if there is one.
func (l *Lease) renewed(sent time.Time, hold ledger.Hold, err error) {
	l.mu.Lock()
	heir := l.heir
	l.mu.Unlock()
	switch {
	case heir != nil:
		heir.renewed(sent, hold, err)
	case err != nil && l.box.stopping.Err() != nil:
		// Close interrupted the renewal. It ends the lease too, and releases it.
	case err != nil && ledger.Retryable(err):
		l.mu.Lock()
		// What the server has answered says more than that there was no answer in the little time that was left at last.
		if answer := new(transport.ServerError); !errors.As(l.trouble, &answer) || errors.As(err, &answer) {
			l.trouble = err
		}
		l.renewals++
		failed, left := l.renewals, time.Until(l.deadline)
		l.mu.Unlock()
		pause := min(backoff(l.box.claim), l.ttl/20) << min(failed, 4)
		// Not beyond the deadline: the server may be back long before that.
		pause = max(min(pause, left/2), l.ttl/100)
		l.box.keeper.schedule(&l.duty, time.Now().Add(pause))
	case err != nil:
		l.end(errors.Join(fmt.Errorf("%w: %q", ErrLeaseLost, l.resource.Name), err))
	case hold == ledger.Held || hold == ledger.Wanted:
		l.extend(sent)
		if hold == ledger.Wanted {
			l.want()
		}
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
	lag, told := max(time.Since(l.due), 0), l.told
	l.trouble, l.renewals = nil, 0
	// An answer that was overtaken by that to a later renewal takes nothing away.
	l.deadline = latest(l.deadline, sent.Add(l.ttl-margin(l.ttl)))
	l.timer.Reset(time.Until(l.deadline))
	l.due = latest(l.due, l.box.keeper.align(sent.Add(l.ttl/3), l.ttl/3))
	due := l.due
	l.mu.Unlock()
	l.box.keeper.schedule(&l.duty, due)
	if told {
		l.observe(Renewed, lag, nil)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// want closes the channel of Wanted, once.
func (l *Lease) want() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isWanted {
		l.isWanted = true
		close(l.wanted)
	}
}

// hear takes a message from the inbox. A grant that comes late, after the answer to a heartbeat, says nothing new.
func (l *Lease) hear(m message) {
	switch m.verb {
	case "force":
		l.end(fmt.Errorf("%w: %q", ErrForced, l.resource.Name))
	case "wanted":
		l.want()
	}
}

// shut releases the lease of a box that closes. The holder's own Release returns what became of it.
func (l *Lease) shut() {
	// The error is the holder's to see.
	_ = l.release(context.Background(), fmt.Errorf("%w: %q", ErrClosed, l.resource.Name))
}

// replicate waits until so many replicas have the grant, or the timeout is over. The server is asked for a second at a
// time, which no client takes for a failure.
func (l *Lease) replicate(ctx context.Context, replicas int, timeout time.Duration) error {
	for until := time.Now().Add(timeout); ; {
		sent := time.Now()
		hold, acknowledged, err := l.box.ledger.Replicate(
			ctx, l.resource, ledger.Renewal{ID: l.id, TTL: l.ttl, Cool: l.cool}, replicas, min(time.Until(until), time.Second))
		switch {
		case over(ctx) != nil:
			// The error is that of ctx, whatever becomes of the release.
			_ = l.Release(ctx)
			return ended(ctx, l.resource.Name)
		case err == nil:
			l.renewed(sent, hold, nil)
			l.mu.Lock()
			l.replicas = acknowledged
			l.mu.Unlock()
		}
		if l.Err() != nil {
			return fmt.Errorf("acquire %q: %w", l.resource.Name, l.Err())
		}
		if acknowledged >= replicas || !time.Now().Before(until) || (err != nil && !ledger.Retryable(err)) {
			return nil
		}
	}
}
