package signalbox

import (
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// clock is the time that leases live by: Go's monotonic clock, and the time for which the computer slept, during which that
// clock stands still while the server's goes on. No step of the wall clock moves it where the system tells how long it
// slept; elsewhere the wall clock is asked, and a step forward of it counts as sleep: leases end early then, never late.
type clock struct {
	origin time.Time
	slept  func() time.Duration // since an origin of its own; it never goes back
	before time.Duration        // what that was at the origin
	asleep atomic.Int64         // since then, when refresh was called last
}

func newClock() *clock {
	c := &clock{origin: time.Now().Add(-time.Second), slept: newSleep()} // so that no moment is 0, which stands for never
	c.before = c.slept()
	return c
}

// sleepGrain is what times of sleep are rounded down to: shorter ones are not told apart from the time that asking takes.
const sleepGrain = 20 * time.Millisecond

// refresh asks the system for how long the computer has slept. Until then the clock is late by the last sleep, which lets
// nothing that began before it last longer.
func (c *clock) refresh() {
	c.asleep.Store(int64(max(c.slept()-c.before, 0).Truncate(sleepGrain)))
}

func (c *clock) now() acquisition.Instant {
	return acquisition.Instant(int64(time.Since(c.origin)) + c.asleep.Load())
}

// time is when an instant is, by the clock of package time.
func (c *clock) time(at acquisition.Instant) time.Time {
	return c.origin.Add(time.Duration(int64(at) - c.asleep.Load()))
}
