package faultproxy

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil sleeps in the kernel, which is late by some 50 µs. It holds a thread meanwhile: for short times only.
func sleepUntil(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		wanted := unix.NsecToTimespec(left.Nanoseconds())
		_ = unix.Nanosleep(&wanted, nil) // a signal has cut it short, or it is over
	}
}
