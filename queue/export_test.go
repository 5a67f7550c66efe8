package queue

import (
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/internal/leaseclock"
)

// SleepOf returns what has the computer sleep, as far as a queue can tell. It is called before the queue is used.
func SleepOf(q *Queue) (sleep func(time.Duration)) {
	var asleep atomic.Int64
	q.clock = leaseclock.NewWith(func() time.Duration { return time.Duration(asleep.Load()) })
	return func(d time.Duration) { asleep.Add(int64(d)) }
}
