package ds

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkDictGrowth fills a Dict with ten million elements and reports the longest that
// one of them took, without the collector: what growing costs whoever comes at the wrong
// moment. It is the CPU time of the thread, so that a loaded machine does not show in it;
// page faults do.
func BenchmarkDictGrowth(b *testing.B) {
	const n = 10_000_000
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range b.N {
		d := NewDict[*int]()
		key := make([]byte, 0, 32)
		var longest [10]time.Duration
		last := threadTime(b)
		for i := range n {
			key = strconv.AppendInt(append(key[:0], "key:"...), int64(i), 10)
			d.SetBytes(key, nil)
			now := threadTime(b)
			took := now - last
			for j := range longest {
				if took > longest[j] {
					longest[j], took = took, longest[j]
				}
			}
			last = now
		}
		b.ReportMetric(float64(longest[0].Microseconds()), "longest-us")
		b.ReportMetric(float64(longest[9].Microseconds()), "tenth-longest-us")
		runtime.KeepAlive(d)
	}
}

func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
