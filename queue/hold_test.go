package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// many enqueues n jobs in one go.
func many(t *testing.T, q *queue.Queue, n int) {
	t.Helper()
	var requests []queue.Request
	for i := range n {
		requests = append(requests, note.With(fmt.Sprint(i)))
	}
	_, err := q.EnqueueMany(within(t), requests...)
	must(t, err)
}

// Q7: a worker with more room than a call brings asks again at once.
func TestALargeWorkerIsFilled(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		many(t, q, 300)
		var begun atomic.Int32
		end := make(chan struct{})
		w := q.Worker("w", queue.Slots(300))
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
			begun.Add(1)
			<-end
			return queue.None{}, nil
		})
		stop := start(t, w)
		time.Sleep(time.Second)
		if got := begun.Load(); got != 300 {
			t.Errorf("Q7: %d of 300 jobs run after a second", got)
		}
		close(end)
		stop()
	})
}

// Q2: whoever ends says all that it has done, however much that is.
func TestManyJobsEndWithTheWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		const jobs = 1200
		for range jobs / 400 {
			many(t, q, 400)
		}
		var ran atomic.Int32
		var begun atomic.Int32
		end := make(chan struct{})
		worker := func(n int) *queue.Worker {
			w := q.Worker("w", queue.Slots(n))
			note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
				begun.Add(1)
				<-end
				ran.Add(1)
				return queue.None{}, nil
			})
			return w
		}
		stop := start(t, worker(jobs))
		for begun.Load() < jobs {
			time.Sleep(time.Second)
		}
		time.AfterFunc(time.Second, func() { close(end) })
		stop()
		start(t, worker(jobs))
		time.Sleep(time.Minute)
		if got := ran.Load(); got != jobs {
			t.Errorf("Q2: %d jobs have ended %d times", jobs, got)
		}
	})
}

// A queue that is closed gives back what its workers ran.
func TestClosingGivesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		other, err := queue.New(server, "app")
		must(t, err)
		w := other.Worker("w")
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			<-ctx.Done()
			return queue.None{}, ctx.Err()
		})
		start(t, w)
		enqueue(t, q, "a")
		synctest.Wait()
		must(t, other.Close())
		was := time.Now()
		run(t, q, 1)
		if took := time.Since(was); took > time.Second {
			t.Errorf("it took %v until another worker had it", took)
		}
	})
}

// A handler that ends its goroutine has failed, and does not run for ever.
func TestAHandlerThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w")
		sendMail.Handle(w, func(context.Context, *queue.Job[mail]) (receipt, error) {
			runtime.Goexit()
			return receipt{}, nil
		})
		start(t, w)
		job, err := sendMail.Enqueue(within(t), q, mail{})
		must(t, err)
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrDead)
	})
}

// A result that is too long fails its job, and not the worker.
func TestAResultThatIsTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		long := queue.Define[string, string]("long")
		w := q.Worker("w")
		long.Handle(w, func(context.Context, *queue.Job[string]) (string, error) {
			return strings.Repeat("x", queue.MaxPayload), nil
		})
		start(t, w)
		job, err := long.Enqueue(within(t), q, "")
		must(t, err)
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrDead)
	})
}

// slow is a client whose answers do not come while it is cut off.
type slow struct {
	redis.UniversalClient
	cut *atomic.Bool
}

func (s *slow) Process(ctx context.Context, cmd redis.Cmder) error {
	if s.cut.Load() {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		<-limited.Done()
		cmd.SetErr(limited.Err())
		return limited.Err()
	}
	return s.UniversalClient.Process(ctx, cmd)
}

func (s *slow) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	_ = s.Process(ctx, cmd) // the command has it too
	return cmd
}

// Q4: jobs end with the lease, also while a call is on its way.
func TestJobsEndWithTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var cut atomic.Bool
		q, err := queue.New(&slow{server, &cut}, "app", queue.Lease(2*time.Second))
		must(t, err)
		ended := make(chan time.Time, 1)
		w := q.Worker("w")
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			<-ctx.Done()
			ended <- time.Now()
			return queue.None{}, ctx.Err()
		})
		stop := start(t, w)
		enqueue(t, q, "a")
		time.Sleep(100 * time.Millisecond)
		cut.Store(true)
		was := time.Now()
		if took := (<-ended).Sub(was); took > 2*time.Second {
			t.Errorf("Q4: the job went on for %v after the server heard of its worker last", took)
		}
		cut.Store(false)
		stop()
		must(t, q.Close())
	})
}

// A context that never ends, as a program's first one, is not one that has ended.
func TestAWorkerWithAContextThatNeverEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q, err := queue.New(server, "app")
		must(t, err)
		w := q.Worker("w")
		sendMail.Handle(w, func(context.Context, *queue.Job[mail]) (receipt, error) { return receipt{}, nil })
		ended := make(chan error, 1)
		go func() { ended <- w.Run(context.Background()) }()
		job, err := sendMail.Enqueue(within(t), q, mail{})
		must(t, err)
		_, err = job.Wait(within(t))
		must(t, err)
		must(t, q.Close())
		must(t, <-ended)
	})
}

// A job waits for its own parents: not for those of one that had its id before, and was deleted.
func TestAJobDoesNotWaitForTheParentsOfAnother(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		first, second := enqueue(t, q, "first"), enqueue(t, q, "second")
		enqueue(t, q, "x", queue.ID("x"), queue.After(queue.RunIt, first))
		must(t, q.Delete(within(t), "x"))
		enqueue(t, q, "x", queue.ID("x"), queue.After(queue.RunIt, second))
		must(t, q.Cancel(within(t), "", first))
		if x := becomes(t, q, "x", queue.Held); x.Parents != 1 {
			t.Errorf("it waits for %d", x.Parents)
		}
		must(t, q.Cancel(within(t), "", second))
		becomes(t, q, "x", queue.Pending)
		findings, err := q.Check(within(t), false)
		must(t, err)
		if len(findings) > 0 {
			t.Errorf("check: %v", findings)
		}
	})
}
