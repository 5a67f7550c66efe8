package benchmark

import (
	"context"
	"sync/atomic"
	"time"
)

// clock is the one that a client of the book's algorithms goes by: that of this machine, off by some time. It counts
// how often the client sleeps, which each of them does once after each try that fails.
type clock struct {
	ahead  time.Duration
	sleeps atomic.Int64
}

// Now is the time that the client believes it is.
func (c *clock) Now() time.Time { return time.Now().Add(c.ahead) }

// Sleep passes d, or returns why ctx has ended before.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.sleeps.Add(1)
	return pause(ctx, d)
}

// pause waits for d, or until ctx ends, and then returns why it did.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
