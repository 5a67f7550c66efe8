package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// A computer that sleeps stops the clock of its timers. On waking the contexts of jobs end all the same, soon, and not only when the
// server is asked again: it has given them to others.
func TestJobsEndWhenTheComputerHasSleptBeyondTheLease(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server, queue.Lease(3*time.Second))
		sleep := queue.SleepOf(q)
		runs, causes := make(chan *queue.Job[string]), make(chan error, 1)
		w := q.Worker("w")
		note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
			runs <- j
			if j.Crashes == 0 {
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
			return queue.None{}, nil
		})
		start(t, w)
		id := enqueue(t, q, "a")
		<-runs
		sleep(time.Hour)
		wantErr(t, <-causes, queue.ErrLeaseLost)
		if j := <-runs; j.ID != id || j.Crashes != 1 {
			t.Errorf("%s runs after %d crashes", j.ID, j.Crashes)
		}
	})
}

// What an idle worker is handed at the moment at which the computer wakes is others' already.
func TestAWorkerThatHasSleptBeginsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q, producer := open(t, server), open(t, server)
		sleep := queue.SleepOf(q)
		runs := make(chan *queue.Job[string])
		w := q.Worker("w")
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			runs <- j
			return queue.None{}, nil
		})
		start(t, w)
		enqueue(t, producer, "before")
		<-runs
		time.Sleep(time.Second) // of virtual time: it is idle
		sleep(time.Hour)
		enqueue(t, producer, "after")
		if j := <-runs; j.Args != "after" || j.Crashes != 1 {
			t.Errorf("%q runs after %d crashes: it was handed to a worker that had slept", j.Args, j.Crashes)
		}
	})
}
