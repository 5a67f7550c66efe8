package signalbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// MinInterval is the shortest time between two units of a Rate.
const MinInterval = time.Microsecond

// MaxBurst is the largest burst, and the largest cost. Neither may be more than a rate gives in a hundred years.
const MaxBurst = 1_000_000

// maxSpan is the longest time that a burst may stand for: with it and the server's clock, scripts stay below 2^53 us, up
// to which their numbers are exact.
const maxSpan = 100 * MaxTTL

// Rate is how fast units of something come.
type Rate struct{ interval time.Duration }

// Every is the rate of one unit each d: MinInterval to MaxTTL.
func Every(d time.Duration) Rate { return Rate{d} }

// PerSecond is the rate of n units a second, rounded down to whole microseconds between two of them.
func PerSecond(n float64) Rate {
	interval := math.Ceil(1e6 / n)
	if !(interval > 0 && interval < math.MaxInt64/1e3) {
		return Rate{}
	}
	return Rate{time.Duration(interval) * time.Microsecond}
}

func (r Rate) valid() bool { return r.interval >= MinInterval && r.interval <= MaxTTL }

// gives says whether the rate gives n units within maxSpan.
func (r Rate) gives(n int) bool { return time.Duration(n) <= maxSpan/r.interval }

// Limiter lets units pass at a rate, shared by all who use its name, by the generic cell rate algorithm (ITU-T I.371),
// timed by the server's clock. Its whole state is one key that expires when it is idle. A Limiter holds no state: any
// number of goroutines may use one value.
type Limiter struct {
	box      *Box
	resource *ledger.Resource
	name     string
	err      error
	rate     Rate
	burst    int
}

// LimiterOption changes a Limiter.
type LimiterOption func(*Limiter)

// Burst sets how many units may pass at once after a pause; the default is 1.
func Burst(n int) LimiterOption {
	return func(l *Limiter) { l.burst = n }
}

// Limiter returns the limiter of a name. Those who state different rates for one name share its state, and each is held
// to his own. A bad name, rate or burst is reported by the first call.
func (b *Box) Limiter(name string, rate Rate, options ...LimiterOption) *Limiter {
	l := &Limiter{box: b, name: name, rate: rate, burst: 1}
	for _, option := range options {
		option(l)
	}
	l.resource, l.err = ledger.NewResource(name)
	switch {
	case l.err != nil:
	case !rate.valid():
		l.err = fmt.Errorf("%w: limiter %q: a unit every %v, must be %v to %v",
			ErrInvalid, name, rate.interval, MinInterval, MaxTTL)
	case l.burst < 1 || l.burst > MaxBurst:
		l.err = fmt.Errorf("%w: limiter %q: burst %d, must be 1 to %d", ErrInvalid, name, l.burst, MaxBurst)
	case !rate.gives(l.burst):
		l.err = fmt.Errorf("%w: limiter %q: a burst of %d, a unit every %v, must be earned within %v",
			ErrInvalid, name, l.burst, rate.interval, maxSpan)
	}
	return l
}

// RateError says that Allow was refused. errors.Is(err, ErrBusy) matches it.
type RateError struct {
	Resource   string
	RetryAfter time.Duration // until it would be allowed, if nobody takes it before
}

func (e *RateError) Error() string {
	return fmt.Sprintf("limiter %q: busy: it would be allowed in %v", e.Resource, e.RetryAfter)
}

// Is makes errors.Is(err, ErrBusy) hold.
func (e *RateError) Is(target error) bool { return target == ErrBusy }

// Allow takes a number of units if they may pass now; otherwise the error is a *RateError that says when they might.
// More units than the burst are refused with ErrTooHeavy. One round trip. If the answer is lost the units may be taken.
func (l *Limiter) Allow(ctx context.Context, cost int) error {
	_, _, err := l.take(ctx, cost, 0)
	return err
}

// Wait takes a number of units and returns when they may pass: in the order of asking, without polling. If that would be
// after the deadline of ctx, it takes nothing and returns at once, with an error that wraps ctx's DeadlineExceeded. When
// ctx is cancelled meanwhile, what was taken is given back, unless others were promised a time behind it. More units than
// come in a hundred years are refused with ErrTooHeavy.
func (l *Limiter) Wait(ctx context.Context, cost int) error {
	longest := MaxTTL
	if deadline, ok := ctx.Deadline(); ok {
		longest = max(time.Until(deadline), 0)
	}
	request, answer, err := l.take(ctx, cost, longest)
	var late *RateError
	if errors.As(err, &late) {
		return fmt.Errorf("limiter %q: %w: its turn would come in %v", l.name, context.DeadlineExceeded, late.RetryAfter)
	}
	if err != nil {
		return err
	}
	pause := time.NewTimer(answer.Delay)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		err = ended(ctx, l.doing())
	case <-l.box.closing:
		err = fmt.Errorf("limiter %q: %w", l.name, ErrClosed)
	}
	l.refund(ctx, request, answer.Mark)
	return err
}

func (l *Limiter) doing() string { return fmt.Sprintf("limiter %q", l.name) }

func (l *Limiter) take(
	ctx context.Context, cost int, wait time.Duration,
) (*ledger.LimitRequest, ledger.LimitAnswer, error) {
	fail := func(err error) (*ledger.LimitRequest, ledger.LimitAnswer, error) {
		return nil, ledger.LimitAnswer{}, err
	}
	switch {
	case l.err != nil:
		return fail(fmt.Errorf("limit: %w", l.err))
	case cost < 1 || cost > MaxBurst:
		return fail(fmt.Errorf("limiter %q: %w: cost %d, must be 1 to %d", l.name, ErrInvalid, cost, MaxBurst))
	case endOf(ctx) != nil:
		return fail(ended(ctx, l.doing()))
	case cost > l.burst && (wait == 0 || !l.rate.gives(cost)):
		return fail(fmt.Errorf("limiter %q: %w: cost %d of burst %d", l.name, ErrTooHeavy, cost, l.burst))
	}
	if err := l.box.ready(ctx); err != nil {
		return fail(fmt.Errorf("limiter %q: %w", l.name, err))
	}
	interval := l.rate.interval
	if rest := interval % time.Microsecond; rest > 0 { // never faster than stated
		interval += time.Microsecond - rest
	}
	request := &ledger.LimitRequest{Resource: l.resource, Interval: interval, Burst: l.burst, Cost: cost, Wait: wait}
	patience := l.box.claim
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(min(patience, time.Until(deadline)), time.Millisecond)
	}
	// A cancel on the way would leave it unknown whether the units are taken.
	answer, err := l.box.ledger.Within(patience).Limit(context.WithoutCancel(ctx), request)
	switch {
	case err != nil && endOf(ctx) != nil:
		err = ended(ctx, l.doing())
	case err == nil && !answer.Taken:
		err = &RateError{l.name, answer.Delay}
	}
	return request, answer, err
}

// refund gives back in the background, and waits for that a moment.
func (l *Limiter) refund(ctx context.Context, request *ledger.LimitRequest, mark int64) {
	if l.box.enter() != nil {
		return
	}
	given := make(chan struct{})
	go func() {
		defer l.box.tasks.Done()
		defer close(given)
		// What is not given back is a unit nobody uses: the rate is kept all the same.
		_, _ = l.box.background.Refund(context.WithoutCancel(ctx), request, mark)
	}()
	patience := time.NewTimer(cancelPatience)
	defer patience.Stop()
	select {
	case <-given:
	case <-patience.C:
	}
}
