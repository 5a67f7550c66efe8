package simtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox"
)

// In no window do more units pass than the burst and what the rate gives in that time. When a unit passed by the server's
// clock is known between the call and its return only, so the units counted for a window are those whose calls lie in it
// as a whole.

const (
	rateEvery = 100 * time.Millisecond
	rateBurst = 3
)

type passing struct {
	called, passed time.Time
	units          int
}

type ratio struct {
	world  *world
	passed []passing
}

func rates(w *world) workload {
	r := &ratio{world: w}
	return workload{turn: r.take}
}

func (r *ratio) take(a *actor) {
	limiter := a.box.Limiter("limiter", signalbox.Every(rateEvery), signalbox.Burst(rateBurst))
	units, called := 1+a.random.IntN(rateBurst), time.Now()
	ctx, cancel := a.context()
	defer cancel()
	var err error
	if a.oneIn(3) {
		err = limiter.Allow(ctx, units)
	} else {
		err = limiter.Wait(ctx, units)
	}
	r.world.trace.note("%s takes %d: %v", a.label(), units, err)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // its turn would come too late
		if _, timed := ctx.Deadline(); !timed {
			r.world.check.broken("limiter: %s has no deadline, and got %v", a.label(), err)
		}
	case errors.Is(err, signalbox.ErrBusy):
	case err != nil:
		a.reasonable(ctx, called, true, err)
	default:
		r.pass(passing{called, time.Now(), units})
	}
}

func (r *ratio) pass(last passing) {
	c := r.world.check
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants++
	// A server that has lost its data lets a burst in anew, beside those who were promised their time before.
	r.passed = slices.DeleteFunc(append(r.passed, last), func(p passing) bool {
		return c.newServer(p.called.Add(c.plan.Claim))
	})
	for _, from := range r.passed {
		units := 0
		for _, p := range r.passed {
			if !p.called.Before(from.called) {
				units += p.units
			}
		}
		// A unit of a burst is free, the others are earned; a us is the grain of the server's clock.
		span := last.passed.Sub(from.called) + time.Microsecond
		if earned := time.Duration(units-rateBurst) * rateEvery; earned > span {
			c.violated("limiter: %d units within %v", units, span)
		}
	}
	if len(r.passed) > 200 {
		r.passed = r.passed[50:]
	}
}
