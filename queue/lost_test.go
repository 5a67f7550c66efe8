package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// The server loses everything while producers and workers are at work. What it had is gone, and who waits for that is told;
// whatever comes then goes on, without anybody's beginning anew.
func TestTheQueueGoesOnWhenTheServerHasLostEverything(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server, queue.Lease(3*time.Second))
		begun, causes := make(chan string, 100), make(chan error, 1)
		w := q.Worker("w", queue.Slots(5))
		note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
			begun <- j.Args
			if j.Args == "runs" {
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
			return queue.None{}, nil
		})
		start(t, w)
		runs := func(want string) {
			t.Helper()
			for {
				select {
				case got := <-begun:
					if got == want {
						return
					}
				case <-within(t).Done():
					t.Fatalf("Q7: %s does not run", want)
				}
			}
		}
		call := func(number int64) {
			t.Helper()
			id := fmt.Sprint("call", number)
			outcomes, err := q.EnqueueNumbered(within(t), "sequence", number, note.With(id, queue.ID(id)))
			must(t, err)
			if outcomes[0].Duplicate {
				t.Errorf("%s is known", id)
			}
			runs(id)
		}
		settle := func() (once string) {
			t.Helper()
			must(t, q.Configure(within(t), queue.Pause(queue.OfKey("paused"))))
			must(t, q.Schedule(within(t), "tick", queue.Every(time.Second), queue.RunLast, note.With("tick")))
			runs("tick")
			for i, duplicate := range []bool{false, true} {
				m, err := sendMail.Enqueue(within(t), q, mail{"x@y"}, queue.Unique("x@y", queue.Alive)) // nobody sends it
				must(t, err)
				if m.Duplicate() != duplicate {
					t.Errorf("Q10: %d: it is a duplicate: %v", i, m.Duplicate())
				}
				once = m.ID()
			}
			why(t, q, enqueue(t, q, "no", queue.Key("paused")), queue.Paused, "key paused is paused")
			return once
		}

		once := settle()
		call(1)
		enqueue(t, q, "runs")
		runs("runs")
		waited := make(chan error, 1)
		go func() {
			_, err := sendMail.Job(q, once).Wait(context.Background())
			waited <- err
		}()
		must(t, server.FlushAll(within(t)).Err())
		wantErr(t, <-causes, queue.ErrLeaseLost)
		call(2)
		must(t, server.Do(within(t), "client", "kill", "type", "pubsub").Err()) // as by a restart; who waits looks each half minute else
		says(t, <-waited, queue.ErrUnknownJob, once, `"app"`, "lost its data")
		call(3)
		if next := settle(); next == once {
			t.Error("it was not lost")
		}
		workers, err := q.Workers(within(t))
		must(t, err)
		findings, err := q.Check(within(t), false)
		must(t, err)
		if len(workers) != 1 || len(findings) > 0 {
			t.Errorf("%d workers, findings: %v", len(workers), findings)
		}
	})
}
