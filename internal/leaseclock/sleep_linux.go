package leaseclock

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// newSleep returns a function that says for how long the computer has slept since it was started: what the clock that goes
// on meanwhile is ahead of the one that does not. They cannot be read at once, so each reading may be too small, by as much
// as the process was held up between them, and the largest counts.
func newSleep() func() time.Duration {
	var most atomic.Int64
	read := func() time.Duration {
		var goesOn, standsStill unix.Timespec
		if unix.ClockGettime(unix.CLOCK_BOOTTIME, &goesOn) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &standsStill) != nil {
			return 0 // a system without these clocks does not sleep
		}
		for slept := goesOn.Nano() - standsStill.Nano(); ; {
			known := most.Load()
			if slept <= known || most.CompareAndSwap(known, slept) {
				return time.Duration(max(slept, known))
			}
		}
	}
	for range 10 {
		read()
	}
	return read
}
