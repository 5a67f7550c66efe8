// Package leaseclock is the time that leases live by, of locks and of the queue's workers: Go's monotonic clock, and the time
// for which the computer slept, during which that clock stands still while the server's goes on.
//
// No step of the wall clock moves it where the system tells how long it slept (sleep_linux.go). Elsewhere the wall clock is
// asked (sleep_other.go), and a step forward of it counts as sleep: leases end early then, never late.
package leaseclock

import (
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// Clock may be used by any number of goroutines.
type Clock struct {
	origin time.Time
	slept  func() time.Duration // since an origin of its own; it never goes back
	before time.Duration        // what that was at the origin
	asleep atomic.Int64         // since then, when Refresh was called last
}

// New returns a clock of this computer.
func New() *Clock { return NewWith(newSleep()) }

// NewWith returns a clock of a computer that says for how long it has slept: for tests, which cannot have theirs sleep.
func NewWith(slept func() time.Duration) *Clock {
	return &Clock{origin: time.Now().Add(-time.Second), slept: slept, before: slept()} // so that no moment is 0, which stands for never
}

// sleepGrain is what times of sleep are rounded down to: shorter ones are not told apart from the time that asking takes.
const sleepGrain = 20 * time.Millisecond

// Refresh asks the system for how long the computer has slept. Until then the clock is late by the last sleep, which lets
// nothing that began before it last longer.
func (c *Clock) Refresh() {
	c.asleep.Store(int64(max(c.slept()-c.before, 0).Truncate(sleepGrain)))
}

// Now is the time, as of the last Refresh.
func (c *Clock) Now() acquisition.Instant {
	return acquisition.Instant(int64(time.Since(c.origin)) + c.asleep.Load())
}

// Time is when an instant is, by the clock of package time.
func (c *Clock) Time(at acquisition.Instant) time.Time {
	return c.origin.Add(time.Duration(int64(at) - c.asleep.Load()))
}
