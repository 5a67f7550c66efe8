package ledger

import (
	"context"
	"time"
)

// LimitRequest takes Cost units of a rate: one each Interval, after a burst. What would come later than Wait is refused.
type LimitRequest struct {
	Resource *Resource
	Interval time.Duration // in us
	Burst    int
	Cost     int
	Wait     time.Duration
}

// LimitAnswer says when the caller may go on, or how long it would have taken. Mark is for Refund.
type LimitAnswer struct {
	Taken bool
	Delay time.Duration
	Mark  int64
}

// The codes of limit.lua.
const (
	limitRefused = iota
	limitTaken
)

// Limit runs limit.lua once.
func (l *Ledger) Limit(ctx context.Context, r *LimitRequest) (LimitAnswer, error) {
	args := []any{r.Interval.Microseconds(), r.Burst, r.Cost, r.Wait.Microseconds()}
	reply, err := l.run(ctx, newCall(limitScript, r.Resource.beside("rate"), args...))
	if err != nil {
		return LimitAnswer{}, failure("limit", r.Resource.Name, err)
	}
	n := numbers(reply)
	switch {
	case len(n) == 3 && n[0] == limitTaken:
		return LimitAnswer{true, time.Duration(n[1]) * time.Microsecond, n[2]}, nil
	case len(n) == 2 && n[0] == limitRefused:
		return LimitAnswer{Delay: time.Duration(n[1]) * time.Microsecond}, nil
	}
	return LimitAnswer{}, unexpected("limit", r.Resource.Name, reply)
}

// Refund gives back what a request took, if nobody was promised a later time since. It reports whether it did.
func (l *Ledger) Refund(ctx context.Context, r *LimitRequest, mark int64) (bool, error) {
	args := []any{mark, r.Interval.Microseconds(), r.Cost}
	reply, err := l.run(ctx, newCall(refundScript, r.Resource.beside("rate"), args...))
	if err != nil {
		return false, failure("refund", r.Resource.Name, err)
	}
	return reply == int64(1), nil
}
