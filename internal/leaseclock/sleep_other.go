//go:build !linux

package leaseclock

import (
	"sync/atomic"
	"time"
)

// newSleep returns a function that says for how long the wall clock has run ahead of the monotonic one.
func newSleep() func() time.Duration {
	var most atomic.Int64
	origin := time.Now()
	wall := origin.Round(0) // without the monotonic clock
	return func() time.Duration {
		now := time.Now()
		ahead := int64(now.Round(0).Sub(wall) - now.Sub(origin))
		for {
			known := most.Load()
			if ahead <= known || most.CompareAndSwap(known, ahead) {
				return time.Duration(max(ahead, known))
			}
		}
	}
}
