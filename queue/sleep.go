package queue

import (
	"maps"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// A computer that sleeps stops the timers of its programs, and the server goes on: so a worker's lease is measured by a clock that
// knows of sleep, and looked at often enough after it.

// naps is how often in a lease it is looked whether the computer has slept beyond its end.
const naps = 15

// now is the time by the clock that leases live by.
func (q *Queue) now() acquisition.Instant {
	q.clock.Refresh()
	return q.clock.Now()
}

// watchSleep has the jobs of workers ended whose leases have ended in the computer's sleep, whatever the workers are waiting for. It
// is done by one goroutine, until the queue is closed.
func (q *Queue) watchSleep() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.watching || q.closed {
		return
	}
	q.watching = true
	q.tasks.Go(func() {
		ticker := time.NewTicker(q.lease / naps)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-q.stopping.Done():
				return
			}
			q.mu.Lock()
			workers := slices.Collect(maps.Values(q.workers))
			q.mu.Unlock()
			for _, w := range workers {
				w.wake()
			}
		}
	})
}

// wake ends what runs if the lease has ended. The loop, which may be waiting for an answer, does what else there is to do.
func (w *Worker) wake() {
	w.mu.Lock()
	over := w.lapsed()
	if over {
		w.disownAll()
	}
	w.mu.Unlock()
	if over {
		w.tellOffers()
		w.ring()
	}
}
