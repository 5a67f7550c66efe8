// Package queuetest helps with tests of programs that use a queue. It brings a queue on an engine of its own, in the process
// and in memory, and says what was enqueued:
//
//	func TestAnOrderSendsAMail(t *testing.T) {
//		q := queuetest.New(t)
//		shop.Order(t.Context(), q, "a book")
//		queuetest.RequireEnqueued(t, q, shop.SendMail, shop.Mail{To: "x@y"})
//	}
//
// Drain runs workers until nothing is left to do. Inside a testing/synctest bubble all of it is in virtual time: retries,
// delays, schedules and leases take as long as they say, and the test takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		q := queuetest.New(t)
//		…
//		w := q.Worker("w")
//		shop.SendMail.Handle(w, shop.Send)
//		queuetest.Drain(t, q, w) // hours of retries
//	})
package queuetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
)

// New returns a queue on an engine of its own. Both end with the test.
func New(t testing.TB, settings ...queue.Setting) *queue.Queue {
	t.Helper()
	box, err := embedded.Open("")
	if err != nil {
		t.Fatalf("queuetest: %v", err)
	}
	q, err := box.Queue("test", settings...)
	if err != nil {
		t.Fatalf("queuetest: %v", err)
	}
	t.Cleanup(func() {
		for _, end := range []func() error{q.Close, box.Close} {
			if err := end(); err != nil {
				t.Errorf("queuetest: %v", err)
			}
		}
	})
	return q
}

// RequireEnqueued fails the test unless there is a job of the kind with these arguments that has not ended, and returns the
// first of them. Arguments are the same if they encode to the same JSON.
func RequireEnqueued[A, R any](t testing.TB, q *queue.Queue, kind queue.Kind[A, R], args A) queue.JobInfo {
	t.Helper()
	var others []string
	for _, job := range alive(t, q, kind.Name()) {
		got, err := kind.Arguments(&job)
		if err != nil {
			t.Fatalf("queuetest: %v", err)
		}
		if same(got, args) {
			return job
		}
		others = append(others, fmt.Sprintf("%+v", got))
	}
	if len(others) == 0 {
		t.Fatalf("queuetest: no job of kind %q is enqueued", kind.Name())
	}
	t.Fatalf("queuetest: no job of kind %q is enqueued with %+v, but with\n\t%s", kind.Name(), args, strings.Join(others, "\n\t"))
	return queue.JobInfo{}
}

// RequireNoneEnqueued fails the test if there is a job of the kind that has not ended.
func RequireNoneEnqueued[A, R any](t testing.TB, q *queue.Queue, kind queue.Kind[A, R]) {
	t.Helper()
	for _, job := range alive(t, q, kind.Name()) {
		t.Fatalf("queuetest: a job of kind %q is enqueued: %s, it is %s, with %s", kind.Name(), job.ID, job.State, job.Arguments)
	}
}

// Enqueued returns the arguments of the jobs of a kind that have not ended, in the order in which they were enqueued.
func Enqueued[A, R any](t testing.TB, q *queue.Queue, kind queue.Kind[A, R]) []A {
	t.Helper()
	var all []A
	for _, job := range alive(t, q, kind.Name()) {
		args, err := kind.Arguments(&job)
		if err != nil {
			t.Fatalf("queuetest: %v", err)
		}
		all = append(all, args)
	}
	return all
}

// alive returns the jobs of a kind that have not ended, in the order in which they were enqueued.
func alive(t testing.TB, q *queue.Queue, kind string) (jobs []queue.JobInfo) {
	t.Helper()
	for job, err := range q.Jobs(t.Context(), queue.Filter{Kind: kind}) {
		if err != nil {
			t.Fatalf("queuetest: %v", err)
		}
		if !over(&job) {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, func(a, b queue.JobInfo) int {
		return cmp.Or(a.Enqueued.Compare(b.Enqueued), cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
	return jobs
}

func over(job *queue.JobInfo) bool {
	return job.State == queue.Done || job.State == queue.Dead || job.State == queue.Canceled
}

func same(got, want any) bool {
	if reflect.DeepEqual(got, want) {
		return true
	}
	x, errX := json.Marshal(got)
	y, errY := json.Marshal(want)
	return errX == nil && errY == nil && string(x) == string(y)
}

// Drain runs workers until every job has ended, and ends them. Without workers it waits for those that run already. Jobs that
// are delayed, or tried again, it waits for. It fails the test if a job is left that none of them can run, and says why.
func Drain(t testing.TB, q *queue.Queue, workers ...*queue.Worker) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan struct{}, len(workers))
	for _, w := range workers {
		go func() {
			if err := w.Run(ctx); err != nil {
				cancel(err)
			}
			ended <- struct{}{}
		}()
	}
	err := settle(ctx, q)
	cancel(nil)
	for range workers {
		<-ended
	}
	// What ended a worker is why the calls of settle were given up, whichever of them heard of it.
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = fmt.Errorf("drain: %w", cause)
	}
	if err != nil {
		t.Fatalf("queuetest: %v", err)
	}
}

// patience is for how long nothing may happen although nothing runs and no time has to come.
const patience = 5 * time.Second

// settle waits until every job has ended. The longer nothing happens the less it looks.
func settle(ctx context.Context, q *queue.Queue) error {
	was, since := "", time.Now()
	for {
		stats, err := q.Stats(ctx)
		if err != nil {
			return err
		}
		if stats.Waiting+stats.Running+stats.Later == 0 {
			return nil
		}
		stats.Now = time.Time{}
		if is := fmt.Sprintf("%+v", *stats); is != was {
			was, since = is, time.Now()
		}
		wait := min(max(time.Since(since)/10, time.Millisecond), time.Minute)
		if stats.Running == 0 && time.Since(since) > 10*time.Millisecond {
			next, stuck, err := held(ctx, q)
			switch {
			case err != nil:
				return err
			case !next.IsZero():
				wait = max(wait, time.Until(next))
				since = time.Now().Add(wait)
			case stuck != "" && time.Since(since) > patience:
				return fmt.Errorf("drain: %s", stuck)
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("drain: %w", context.Cause(ctx))
		}
	}
}

// held returns when the first of the jobs may begin that wait for a time, or why one of the others does not run.
func held(ctx context.Context, q *queue.Queue) (next time.Time, stuck string, err error) {
	for job, err := range q.Jobs(ctx, queue.Filter{}) {
		if err != nil {
			return next, "", err
		}
		if over(&job) {
			continue
		}
		at := job.Due
		if job.State != queue.Delayed {
			why, err := q.Why(ctx, job.ID)
			if err != nil {
				return time.Time{}, "", nil //nolint:nilerr // it has ended meanwhile
			}
			at = why.Until
			stuck = fmt.Sprintf("job %s of kind %q: %s", job.ID, job.Kind, why)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, stuck, nil
}
