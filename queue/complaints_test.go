package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// What users of other queues complain of, by the numbers of docs/queue/promises.md, where no other test shows it.

// 4: one tenant's backlog holds up the others. With turns it does not, and without them a limit is enough.
func TestComplaint4OneTenantHoldsUpNobody(t *testing.T) {
	for name, change := range map[string]queue.Change{"turns": queue.Turns(true), "limit": queue.Limit(queue.OfKey("large"), 0)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, server redis.UniversalClient) {
				q := open(t, server)
				must(t, q.Configure(within(t), change))
				for i := range 50 {
					enqueue(t, q, fmt.Sprint("large", i), queue.Key("large"))
				}
				enqueue(t, q, "small", queue.Key("small"))
				if ran := run(t, q, map[string]int{"turns": 51, "limit": 1}[name]); slices.Index(ran, "small") > 1 {
					t.Errorf("the small tenant's only job came after %d of the large one's", slices.Index(ran, "small"))
				}
			})
		})
	}
}

// 6: a job that takes many times as long as a lease runs once.
func TestComplaint6ALongJobRunsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server, queue.Lease(time.Second))
		var runs atomic.Int64
		for _, name := range []string{"a", "b"} {
			w := q.Worker(name)
			note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
				runs.Add(1)
				time.Sleep(time.Minute)
				return queue.None{}, ctx.Err()
			})
			start(t, w)
		}
		job, err := note.Enqueue(within(t), q, "", queue.Retain(time.Hour))
		must(t, err)
		time.Sleep(2 * time.Minute)
		_, err = job.Wait(within(t))
		must(t, err)
		if runs.Load() != 1 {
			t.Errorf("it ran %d times", runs.Load())
		}
	})
}

// 7: a job that kills its workers is put aside, and is no failure of the job until then.
func TestComplaint7AJobThatKillsItsWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		job, err := note.Enqueue(within(t), q, "", queue.MaxAttempts(1))
		must(t, err)
		for range 3 {
			var cut atomic.Bool
			doomed := open(t, &deaf{server, &cut}, queue.Lease(time.Second))
			began := make(chan struct{})
			w := doomed.Worker("doomed", queue.DrainTimeout(0))
			note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
				if j.Attempt != 1 {
					t.Errorf("a death counts as an attempt: it is number %d", j.Attempt)
				}
				close(began)
				<-ctx.Done()
				return queue.None{}, ctx.Err()
			})
			go func() { _ = w.Run(within(t)) }() // it is cut off: what it says of its end is of no interest
			<-began
			cut.Store(true)
			time.Sleep(5 * time.Second)
			go func() { _ = doomed.Close() }()
		}
		watch := q.Worker("watch")
		note.Handle(watch, func(context.Context, *queue.Job[string]) (queue.None, error) {
			t.Error("it runs a fourth time")
			return queue.None{}, nil
		})
		start(t, watch)
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrDead)
	})
}

// 10: a job that has failed for good blocks no fingerprint, and none is left by an error.
func TestComplaint10ADeadJobBlocksNoFingerprint(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w")
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
			return queue.None{}, queue.Fail(errors.New("no use"))
		})
		start(t, w)
		for range 2 {
			job, err := note.Enqueue(within(t), q, "", queue.Unique("u", queue.Alive))
			must(t, err)
			if job.Duplicate() {
				t.Fatal("it is a duplicate of one that has ended")
			}
			_, err = job.Wait(within(t))
			wantErr(t, err, queue.ErrDead)
		}
	})
}

// 11: an idle worker begins at once: in virtual time no moment passes.
func TestComplaint11AnIdleWorkerBeginsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		began := make(chan time.Time, 1)
		w := q.Worker("w")
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
			began <- time.Now()
			return queue.None{}, nil
		})
		start(t, w)
		for range 3 {
			time.Sleep(7 * time.Second)
			before := time.Now()
			enqueue(t, q, "")
			if after := (<-began).Sub(before); after > 0 {
				t.Errorf("it began after %v", after)
			}
		}
	})
}

// counting is a client that counts its calls.
type counting struct {
	redis.UniversalClient
	calls atomic.Int64
}

func (c *counting) Do(ctx context.Context, args ...any) *redis.Cmd {
	c.calls.Add(1)
	return c.UniversalClient.Do(ctx, args...)
}

func (c *counting) Process(ctx context.Context, cmd redis.Cmder) error {
	c.calls.Add(1)
	return c.UniversalClient.Process(ctx, cmd)
}

// 12: five hundred jobs are one call.
func TestComplaint12ManyJobsAreOneCall(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		c := &counting{UniversalClient: server}
		q := open(t, c)
		enqueue(t, q, "first") // the server learns the script
		before := c.calls.Load()
		var requests []queue.Request
		for range 500 {
			requests = append(requests, note.With(""))
		}
		_, err := q.EnqueueMany(within(t), requests...)
		must(t, err)
		if calls := c.calls.Load() - before; calls != 1 {
			t.Errorf("500 jobs were %d calls", calls)
		}
	})
}

// 14: a job that is tried again keeps its place, before whatever was enqueued after it.
func TestComplaint14ARetryKeepsItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		enqueue(t, q, "high", queue.Priority(1))
		enqueue(t, q, "second")
		enqueue(t, q, "third")
		var r recorder
		done := make(chan struct{})
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			if r.add(j.Args) == 4 {
				close(done)
			}
			if j.Args == "high" && j.Attempt == 1 {
				return queue.None{}, queue.Retry(errors.New("again"), 0)
			}
			return queue.None{}, nil
		})
		start(t, w)
		<-done
		if diff := cmp.Diff([]string{"high", "high", "second", "third"}, r.all()); diff != "" {
			t.Error(diff)
		}
	})
}
