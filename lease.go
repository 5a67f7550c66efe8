package signalbox

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Lease is permits that are held. It renews itself until it is released. Its context ends when it does: on Release,
// and when it is lost, then before the server can give the permits to somebody else.
//
// The clock that decides is this machine's own, which no step of the time of day moves and which goes on while the computer
// sleeps, counted from the moment the last renewal that was answered had been sent. A process that is paused cannot see
// that; what must hold even then checks Token.
type Lease struct {
	*permit
	box    *Box
	since  time.Time // by this machine's clock
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Under the box's mu.
	life     *life // which goes on when LocalHandoff passes it to another Lease
	token    int64
	deadline acquisition.Instant // once it has ended
	relay    *relay              // nil but with LocalHandoff
	handoffs int                 // left to the relay
	holds    int                 // acquisitions by Reentrant that are not released yet
	ended    bool
	why      acquisition.Action // it ended
	cause    error              // the same in words; the context hears of it a moment later
	told     bool               // observers know that it was granted
	isWanted bool               // somebody waits
	wanted   chan struct{}      // made by who asks for it, closed then
	passed   bool               // to another Lease
	replicas int
}

// newLease makes the lease of a life. Called with the box's mu held.
func newLease(b *Box, l *life, p *permit, token int64) *Lease {
	lease := &Lease{
		permit: p, box: b, since: time.Now(), life: l, token: token,
	}
	lease.ctx, lease.cancel = context.WithCancelCause(lease.carry(context.WithoutCancel(p.parent)))
	return lease
}

// Resource is the name of what is held.
func (l *Lease) Resource() string { return l.resource.Name }

// ID names the lease on the server, for Box.Inspect and Box.Force.
func (l *Lease) ID() string { return l.id }

// Token is the fencing token: larger than that of every lease granted on the resource before. RWMutex.Upgrade changes
// it.
func (l *Lease) Token() int64 {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	return l.token
}

// Weight is how many permits are held: the smaller number, while a change of it has not been answered.
func (l *Lease) Weight() int {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	return l.life.machine.Weight()
}

// Wanted is closed when somebody waits for the resource: a holder that can finish early may do so. It is heard at once
// if the lease was acquired with NoticeWaiters, and otherwise with the next renewal. It stays closed.
func (l *Lease) Wanted() <-chan struct{} {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	if l.wanted == nil {
		l.wanted = make(chan struct{})
		if l.isWanted {
			close(l.wanted)
		}
	}
	return l.wanted
}

// Replicas is how many replicas had the grant when Acquire returned, if it was asked for by WithReplicas; otherwise 0.
func (l *Lease) Replicas() int {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	return l.replicas
}

// Context ends with the lease; context.Cause says why. It carries the values of the context that acquired, not its end.
func (l *Lease) Context() context.Context { return l.ctx }

// Done is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err is nil while the lease is held; then it wraps ErrReleased, ErrLeaseLost, ErrForced or ErrClosed. It looks at the
// clock: where a busy machine lets timers, and with them Done, come late, or the computer has slept, it ends a lease whose
// Deadline has passed itself.
func (l *Lease) Err() error {
	b := l.box
	b.clock.Refresh()
	var out outbox
	b.mu.Lock()
	if now := b.clock.Now(); !l.ended && now >= l.life.machine.Deadline() {
		b.step(l.life, now, acquisition.Event{What: acquisition.Tick}, &out)
	}
	cause := l.cause
	b.mu.Unlock()
	b.perform(&out)
	return cause
}

// Deadline is when the lease ends if no renewal succeeds until then.
func (l *Lease) Deadline() time.Time {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	if l.ended {
		return l.box.clock.Time(l.deadline)
	}
	return l.box.clock.Time(l.life.machine.Deadline())
}

// Release gives the permits back; those who wait are granted theirs before it returns. A ctx that has ended already
// makes no difference; one that ends meanwhile ends the call with its error, and the server is told in the background.
// That is tried until the lease would expire by itself. Other errors wrap ErrLeaseLost or ErrForced if the lease was not
// held any more, or ErrUnavailable. Calling it again returns the same.
func (l *Lease) Release(ctx context.Context) error {
	b := l.box
	var out outbox
	b.mu.Lock()
	if l.holds > 0 && !l.ended {
		l.holds--
		b.mu.Unlock()
		return nil
	}
	if !l.ended && !l.pass(&out) {
		b.step(l.life, b.clock.Now(), acquisition.Event{What: acquisition.Release}, &out)
	}
	b.mu.Unlock()
	b.follow(ctx, &out)
	return l.released(ctx)
}

// released waits until the server has been told, and says what it answered.
func (l *Lease) released(ctx context.Context) error {
	b, life, name := l.box, l.life, l.Resource()
	abandon := ctx.Done()
	if ctx.Err() != nil { // it had ended before: then nobody can give up any more
		abandon = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case l.passed:
		return nil
	case l.why.Why != acquisition.WasReleased && l.why.Why != acquisition.WasClosed:
		return l.explain("release", &l.why)
	}
	for !life.over {
		if life.gone == nil {
			life.gone = make(chan struct{})
		}
		gone := life.gone
		b.mu.Unlock()
		select {
		case <-gone:
			b.mu.Lock()
		case <-abandon:
			b.mu.Lock()
			return fmt.Errorf("release %q: %w; it goes on in the background", name, ctx.Err())
		}
	}
	if life.verdict.Why == acquisition.Failure {
		return fmt.Errorf("%w; the server ends the lease when its ttl of %v is over", life.verdict.Err, l.ttl)
	}
	return l.explain("release", &life.verdict)
}

// end ends the lease on this side, once. Called with the box's mu held.
func (l *Lease) end(why *acquisition.Action, out *outbox) {
	if l == nil || l.ended {
		return
	}
	l.ended, l.why, l.cause = true, *why, l.explain("hold", why)
	l.deadline = l.life.machine.Deadline()
	out.cancel(l)
	if l.told { // otherwise observed does, if the lease reaches its caller
		out.notes = append(out.notes, note{lease: l, ended: true})
	}
	if l.relay != nil && !l.passed {
		l.relay.vacate()
	}
}

// want closes the channel of Wanted, once. Called with the box's mu held.
func (l *Lease) want() {
	if l != nil && !l.isWanted {
		l.isWanted = true
		if l.wanted != nil {
			close(l.wanted)
		}
	}
}

// reweigh changes the weight, and waits for the answer. A change that was not answered goes on being asked for; a larger
// weight is taken back if nobody waits for it any more.
func (l *Lease) reweigh(ctx context.Context, verb string, weight int) error {
	b, life, name := l.box, l.life, l.Resource()
	if err := l.Err(); err != nil {
		return fmt.Errorf("%s %q: %w", verb, name, err)
	}
	b.mu.Lock()
	if life.turn == nil {
		life.turn = make(chan struct{}, 1)
	}
	turn := life.turn
	b.mu.Unlock()
	select {
	case turn <- struct{}{}: // one at a time
		defer func() { <-turn }()
	case <-ctx.Done():
		return ended(ctx, fmt.Sprintf("%s %q", verb, name))
	}
	var out outbox
	result := make(chan acquisition.Action, 1)
	b.mu.Lock()
	if l.ended {
		b.mu.Unlock()
		return l.explain(verb, &l.why)
	}
	b.step(life, b.clock.Now(), acquisition.Event{What: acquisition.Reweigh, Weight: weight}, &out)
	life.result, life.expects = result, life.machine.Change()
	b.mu.Unlock()
	b.follow(ctx, &out)
	select {
	case a := <-result:
		if a.Why == acquisition.InDoubt && endOf(ctx) != nil {
			return ended(ctx, fmt.Sprintf("%s %q", verb, name))
		}
		return l.explain(verb, &a)
	case <-l.ctx.Done():
		return fmt.Errorf("%s %q: %w", verb, name, l.Err())
	case <-ctx.Done():
		var out outbox
		b.mu.Lock()
		if life.result == nil { // it was answered in this very moment
			b.mu.Unlock()
			a := <-result
			return l.explain(verb, &a)
		}
		life.result = nil
		b.step(life, b.clock.Now(), acquisition.Event{What: acquisition.Unreweigh}, &out)
		b.mu.Unlock()
		b.perform(&out)
		return ended(ctx, fmt.Sprintf("%s %q", verb, name))
	}
}

// reweighed tells the holder what became of a change of weight. Called with the box's mu held.
func (l *life) reweighed(a *acquisition.Action) {
	if l.lease != nil && a.Why == acquisition.Well {
		l.lease.token = l.machine.Token()
	}
	if l.result != nil && a.Number >= l.expects {
		l.result <- *a
		l.result = nil
	}
}

// replicate waits until so many replicas have the grant, or the timeout is over. The server is asked for a second at a
// time, which no client takes for a failure.
func (l *Lease) replicate(ctx context.Context, replicas int, timeout time.Duration) error {
	b := l.box
	for until := time.Now().Add(timeout); ; {
		sent := b.clock.Now()
		hold, acknowledged, err := b.ledger.Replicate(
			ctx, l.resource, l.renewal(), replicas, min(time.Until(until), time.Second))
		switch {
		case endOf(ctx) != nil:
			// The error is that of ctx, whatever becomes of the release.
			_ = l.Release(ctx)
			return ended(ctx, l.doing())
		case err == nil:
			r := held(hold, nil)
			var out outbox
			b.mu.Lock()
			b.answered(&sending{life: l.life, call: acquisition.CallRenew}, sent, &r, &out)
			l.replicas = acknowledged
			b.mu.Unlock()
			b.perform(&out)
		}
		if l.Err() != nil {
			return fmt.Errorf("%s: %w", l.doing(), l.Err())
		}
		if acknowledged >= replicas || !time.Now().Before(until) || (err != nil && !ledger.Retryable(err)) {
			return nil
		}
	}
}
