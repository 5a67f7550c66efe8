package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// batches takes note of the sizes of batches, and answers each job with the length of its address; one without an address
// fails.
func batches(w *queue.Worker, most int, linger time.Duration) func() []string {
	var r recorder
	sendMail.HandleBatch(w, most, linger, func(_ context.Context, jobs []*queue.Job[mail]) []queue.Outcome[receipt] {
		r.add(fmt.Sprint(len(jobs)))
		outcomes := make([]queue.Outcome[receipt], len(jobs))
		for i, j := range jobs {
			switch {
			case j.Args.To == "":
				outcomes[i].Err = queue.Fail(errors.New("no address"))
			case j.Args.To == "again" && j.Attempt == 1:
				outcomes[i].Err = errors.New("busy")
			default:
				outcomes[i].Result.Number = len(j.Args.To)
			}
		}
		return outcomes
	})
	return r.all
}

func sendAll(t *testing.T, q *queue.Queue, to ...string) []queue.Enqueued[receipt] {
	t.Helper()
	var requests []queue.Request
	for _, to := range to {
		requests = append(requests, sendMail.With(mail{to}))
	}
	outcomes, err := q.EnqueueMany(within(t), requests...)
	must(t, err)
	var jobs []queue.Enqueued[receipt]
	for _, o := range outcomes {
		must(t, o.Err)
		jobs = append(jobs, sendMail.Job(q, o.ID))
	}
	return jobs
}

// Each job of a batch has an end of its own.
func TestABatchHasAnOutcomeForEachJob(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w", queue.Slots(10))
		sizes := batches(w, 4, 20*time.Millisecond)
		jobs := sendAll(t, q, "a", "", "again", "four")
		start(t, w)
		for i, want := range []int{1, -1, 5, 4} {
			got, err := jobs[i].Wait(within(t))
			if want < 0 {
				wantErr(t, err, queue.ErrDead)
				continue
			}
			must(t, err)
			if got.Number != want {
				t.Errorf("job %d: %d, want %d", i, got.Number, want)
			}
		}
		if diff := cmp.Diff([]string{"4", "1"}, sizes()); diff != "" {
			t.Error(diff)
		}
	})
}

// A batch begins when it is full, when one of its jobs has waited long enough, and when the worker has no room for more.
func TestWhenABatchBegins(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w", queue.Slots(5))
		sizes := batches(w, 3, 20*time.Second)
		stop := start(t, w)
		begun := time.Now()
		jobs := sendAll(t, q, "a", "b", "c", "d", "e", "f", "g")
		for _, job := range jobs {
			_, err := job.Wait(within(t))
			must(t, err)
		}
		if took := time.Since(begun).Round(time.Second); took != 20*time.Second {
			t.Errorf("the last one waited for %v", took)
		}
		if diff := cmp.Diff([]string{"3", "3", "1"}, sizes()); diff != "" {
			t.Error(diff)
		}
		stop()

		small := q.Worker("small", queue.Slots(2))
		sizes = batches(small, 100, time.Hour)
		stop = start(t, small)
		begun = time.Now()
		jobs = sendAll(t, q, "a", "b", "c", "d", "e")
		_, err := jobs[3].Wait(within(t))
		must(t, err)
		if took := time.Since(begun).Round(time.Second); took != 0 {
			t.Errorf("what fills the worker waited for %v", took)
		}
		stop() // the fifth does not wait for company any more
		_, err = jobs[4].Wait(within(t))
		must(t, err)
		if diff := cmp.Diff([]string{"2", "2", "1"}, sizes()); diff != "" {
			t.Error(diff)
		}
	})
}

// One that is canceled leaves those that wait; what runs is canceled when all of it is.
func TestABatchIsCanceledJobByJob(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w", queue.Slots(10))
		begun := make(chan []*queue.Job[mail], 1)
		sendMail.HandleBatch(w, 3, 10*time.Second, func(ctx context.Context, jobs []*queue.Job[mail]) []queue.Outcome[receipt] {
			begun <- jobs
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), queue.ErrCanceled) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return slices.Repeat([]queue.Outcome[receipt]{{Err: ctx.Err()}}, len(jobs))
		})
		start(t, w)
		jobs := sendAll(t, q, "a", "b", "c")[:0:0]
		running := <-begun
		for _, j := range running {
			jobs = append(jobs, sendMail.Job(q, j.ID))
		}
		must(t, q.Cancel(within(t), "enough", jobs[0].ID(), jobs[1].ID()))
		synctest.Wait()
		if running[0].Context().Err() == nil || running[2].Context().Err() != nil {
			t.Error("not the contexts of those have ended that were canceled")
		}
		must(t, q.Cancel(within(t), "enough", jobs[2].ID()))
		for _, job := range jobs {
			_, err := job.Wait(within(t))
			wantErr(t, err, queue.ErrCanceled)
		}
		waiting := sendAll(t, q, "d", "e")
		synctest.Wait()
		must(t, q.Cancel(within(t), "enough", waiting[0].ID()))
		if got := <-begun; len(got) != 1 || got[0].ID != waiting[1].ID() {
			t.Errorf("%d jobs began", len(got))
		}
		must(t, q.Cancel(within(t), "enough", waiting[1].ID()))
	})
}

// A batch handler that misbehaves fails its jobs, and nothing else.
func TestABatchHandlerThatMisbehaves(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		for want, misbehave := range map[string]func() []queue.Outcome[receipt]{
			"returned 1 outcomes for 2 jobs": func() []queue.Outcome[receipt] { return make([]queue.Outcome[receipt], 1) },
			"panic: ouch":                    func() []queue.Outcome[receipt] { panic("ouch") },
			"runtime.Goexit":                 func() []queue.Outcome[receipt] { runtime.Goexit(); return nil },
		} {
			w := q.Worker("w", queue.Slots(2))
			sendMail.HandleBatch(w, 2, time.Second, func(context.Context, []*queue.Job[mail]) []queue.Outcome[receipt] { return misbehave() })
			stop := start(t, w)
			outcomes, err := q.EnqueueMany(within(t), sendMail.With(mail{"a"}, queue.MaxAttempts(1)), sendMail.With(mail{"b"}, queue.MaxAttempts(1)))
			must(t, err)
			for _, o := range outcomes {
				_, err := sendMail.Job(q, o.ID).Wait(within(t))
				wantErr(t, err, queue.ErrDead)
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
			stop()
		}
		w := q.Worker("w")
		sendMail.HandleBatch(w, 0, time.Second, nil)
		wantErr(t, w.Run(within(t)), queue.ErrInvalid)
	})
}
