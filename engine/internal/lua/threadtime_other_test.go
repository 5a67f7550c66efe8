//go:build !linux

package lua

import "time"

var began = time.Now()

// threadTime is how long the test runs.
func threadTime() time.Duration { return time.Since(began) }
