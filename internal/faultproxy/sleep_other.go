//go:build !linux

package faultproxy

import "time"

// sleepUntil sleeps as well as the runtime can here.
func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
