package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

type mail struct {
	To string `json:"to"`
}

type receipt struct {
	Number int `json:"number"`
}

var (
	sendMail = queue.Define[mail, receipt]("mail.send", queue.Backoff(func(int) time.Duration { return 10 * time.Millisecond }))
	note     = queue.Define[string, queue.None]("note", queue.Backoff(func(int) time.Duration { return 10 * time.Millisecond }))
)

func TestAJobRunsAndItsResultComesBack(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w", queue.Slots(2))
		sendMail.Handle(w, func(_ context.Context, j *queue.Job[mail]) (receipt, error) {
			if j.Args.To != "x@y" || j.Attempt != 1 || j.Key != "tenant:42" || j.Token == 0 {
				t.Errorf("the handler was given %+v", j)
			}
			return receipt{7}, nil
		})
		start(t, w)
		for range 3 { // to a worker that has just begun, and to one that is idle
			job, err := sendMail.Enqueue(within(t), q, mail{"x@y"}, queue.Key("tenant:42"))
			must(t, err)
			got, err := job.Wait(within(t))
			must(t, err)
			if got.Number != 7 {
				t.Errorf("the result is %+v", got)
			}
		}
	})
}

// recorder takes note of the order in which jobs run.
type recorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *recorder) add(s string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, s)
	return len(r.seen)
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// run has a worker of one slot run what there is, and returns it in order.
func run(t *testing.T, q *queue.Queue, n int, options ...queue.WorkerOption) []string {
	t.Helper()
	var r recorder
	done := make(chan struct{})
	w := q.Worker("w", append([]queue.WorkerOption{queue.Slots(1)}, options...)...)
	note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		if r.add(j.Args) == n {
			close(done)
		}
		return queue.None{}, nil
	})
	stop := start(t, w)
	select {
	case <-done:
	case <-within(t).Done():
		t.Errorf("only these ran: %q", r.all())
	}
	stop()
	return r.all()
}

func enqueue(t *testing.T, q *queue.Queue, text string, options ...queue.Option) string {
	t.Helper()
	job, err := note.Enqueue(within(t), q, text, options...)
	must(t, err)
	return job.ID()
}

func TestOrderIsByAgeAndPriority(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		enqueue(t, q, "a")
		enqueue(t, q, "b", queue.Key("k"))
		enqueue(t, q, "low", queue.Priority(-1))
		enqueue(t, q, "c")
		enqueue(t, q, "high", queue.Priority(2), queue.Key("l"))
		enqueue(t, q, "higher", queue.Priority(3))
		want := []string{"higher", "high", "a", "b", "c", "low"}
		if diff := cmp.Diff(want, run(t, q, len(want))); diff != "" {
			t.Error(diff)
		}
	})
}

// Q6: a priority is worth so many steps of waiting, and no more.
func TestPriorityAges(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		enqueue(t, q, "old")
		time.Sleep(2*time.Minute + time.Second)
		enqueue(t, q, "priority 2", queue.Priority(2))
		enqueue(t, q, "priority 3", queue.Priority(3))
		want := []string{"priority 3", "old", "priority 2"}
		if diff := cmp.Diff(want, run(t, q, len(want))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDelayedJobsRunWhenTheyAreDue(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		begun := time.Now()
		var after []time.Duration
		var mu sync.Mutex
		w := q.Worker("w")
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
			mu.Lock()
			defer mu.Unlock()
			after = append(after, time.Since(begun).Round(10*time.Millisecond))
			return queue.None{}, nil
		})
		start(t, w)
		enqueue(t, q, "later", queue.In(7*time.Second))
		enqueue(t, q, "sooner", queue.In(1100*time.Millisecond))
		enqueue(t, q, "now")
		enqueue(t, q, "at", queue.At(begun.Add(time.Hour)))
		time.Sleep(2 * time.Hour)
		want := []time.Duration{0, 1100 * time.Millisecond, 7 * time.Second, time.Hour}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, after); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFailuresAreRetriedAndThenDead(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		var tried atomic.Int32
		w := q.Worker("w")
		sendMail.Handle(w, func(_ context.Context, j *queue.Job[mail]) (receipt, error) {
			tried.Add(1)
			switch {
			case j.Args.To == "panics":
				panic("ouch")
			case j.Args.To == "recovers" && j.Attempt == 3:
				return receipt{3}, nil
			case j.Args.To == "fails":
				return receipt{}, queue.Fail(errors.New("no such address"))
			}
			return receipt{}, errors.New("try again")
		})
		start(t, w)
		for _, c := range []struct {
			to    string
			most  int
			tries int32
			want  error
		}{
			{"recovers", 4, 3, nil},
			{"fails", 4, 1, queue.ErrDead},
			{"never", 4, 4, queue.ErrDead},
			{"panics", 4, 4, queue.ErrDead},
			{"as often as jobs that say nothing", queue.DefaultAttempts, queue.DefaultAttempts, queue.ErrDead},
		} {
			tried.Store(0)
			job, err := sendMail.Enqueue(within(t), q, mail{c.to}, queue.MaxAttempts(c.most))
			must(t, err)
			got, err := job.Wait(within(t))
			wantErr(t, err, c.want)
			if tried.Load() != c.tries || err == nil && got.Number != 3 {
				t.Errorf("%s: tried %d times, result %+v", c.to, tried.Load(), got)
			}
		}
	})
}

// Q4: what runs under a limit never exceeds it, whatever limits there are besides.
func TestLimitsHold(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		must(t, q.Configure(within(t), queue.Limit(queue.EachKey, 2), queue.Limit(queue.OfKind("note"), 7)))
		const jobs, keys = 200, 10
		var requests []queue.Request
		for i := range jobs {
			requests = append(requests, note.With("", queue.Key(fmt.Sprint(i%keys))))
		}
		var mu sync.Mutex
		running, ran, most := map[string]int{}, 0, 0
		done := make(chan struct{})
		handle := func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			mu.Lock()
			running[j.Key]++
			running[""]++
			most = max(most, running[""])
			if running[j.Key] > 2 || running[""] > 7 {
				t.Errorf("Q4: %d of key %s and %d in all run at once", running[j.Key], j.Key, running[""])
			}
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			running[j.Key]--
			running[""]--
			if ran++; ran == jobs {
				close(done)
			}
			return queue.None{}, nil
		}
		for i := range 3 {
			w := q.Worker(fmt.Sprint(i), queue.Slots(5))
			note.Handle(w, handle)
			start(t, w)
		}
		_, err := q.EnqueueMany(within(t), requests...)
		must(t, err)
		select {
		case <-done:
		case <-within(t).Done():
			mu.Lock()
			t.Errorf("Q7: %d of %d jobs ran", ran, jobs)
			mu.Unlock()
		}
		if most < 2 {
			t.Errorf("never more than %d ran at once", most)
		}
	})
}

// A worker is handed what it has capacity and tags for, and nothing that it has not stands in its way.
func TestCapacitiesAndTags(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		enqueue(t, q, "chess", queue.Cost("board", 1))
		enqueue(t, q, "german", queue.Require("lang:de"))
		enqueue(t, q, "big", queue.Cost("chat", 4))
		enqueue(t, q, "chat", queue.Cost("chat", 3))
		enqueue(t, q, "french vip", queue.Require("vip", "lang:fr"))
		want := []string{"chat", "french vip"}
		got := run(t, q, len(want), queue.With(queue.Capacity{"chat": 3, "call": 1}), queue.Tags("lang:fr", "vip", "x"))
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestUniqueJobs(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		unique := func(while queue.States) queue.Enqueued[queue.None] {
			job, err := note.Enqueue(within(t), q, "x", queue.Unique("report", while))
			must(t, err)
			return job
		}
		first := unique(queue.Alive)
		if first.Duplicate() {
			t.Error("the first is a duplicate")
		}
		if second := unique(queue.Alive); !second.Duplicate() || second.ID() != first.ID() {
			t.Errorf("the second is %+v", second)
		}
		run(t, q, 1)
		if third := unique(queue.Alive); third.Duplicate() {
			t.Error("the third is a duplicate of one that was done")
		}
		for i, want := range []bool{false, true} {
			job, err := note.Enqueue(within(t), q, "y", queue.ID("mine"))
			must(t, err)
			if job.Duplicate() != want || job.ID() != "mine" {
				t.Errorf("enqueue %d with an id: %+v", i, job)
			}
		}
	})
}

func TestJobsWaitForOthers(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		a, b := enqueue(t, q, "a", queue.Priority(-1)), enqueue(t, q, "b")
		c := enqueue(t, q, "c", queue.After(queue.CancelIt, a, b))
		enqueue(t, q, "d", queue.After(queue.CancelIt, c))
		enqueue(t, q, "e", queue.AfterAny(queue.CancelIt, a, b))
		want := []string{"b", "e", "a", "c", "d"}
		if diff := cmp.Diff(want, run(t, q, len(want))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAFailedParentCancelsItsChildren(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		parent, err := note.Enqueue(within(t), q, "fails", queue.In(10*time.Millisecond))
		must(t, err)
		child, err := note.Enqueue(within(t), q, "child", queue.After(queue.CancelIt, parent.ID()))
		must(t, err)
		grandchild, err := note.Enqueue(within(t), q, "grandchild", queue.After(queue.CancelIt, child.ID()))
		must(t, err)
		nephew, err := note.Enqueue(within(t), q, "nephew", queue.After(queue.RunIt, child.ID()))
		must(t, err)
		w := q.Worker("w")
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			if j.Args == "fails" {
				return queue.None{}, queue.Fail(errors.New("no"))
			}
			return queue.None{}, nil
		})
		errs := make(chan error, 4)
		for _, job := range []queue.Enqueued[queue.None]{child, grandchild} {
			go func() {
				_, err := job.Wait(within(t))
				errs <- err
			}()
		}
		go func() {
			if _, err := nephew.Wait(within(t)); err != nil && !errors.Is(err, queue.ErrUnknownJob) {
				t.Error(err) // it may be over before anybody looks
			}
			errs <- queue.ErrCanceled
		}()
		start(t, w)
		for range 3 {
			wantErr(t, <-errs, queue.ErrCanceled)
		}
	})
}

func TestARunningJobIsCanceled(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w")
		begun, causes := make(chan struct{}), make(chan error, 1)
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			close(begun)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return queue.None{}, ctx.Err()
		})
		start(t, w)
		job, err := note.Enqueue(within(t), q, "x", queue.Retain(time.Minute))
		must(t, err)
		<-begun
		must(t, q.Cancel(within(t), "not needed any more", job.ID()))
		wantErr(t, <-causes, queue.ErrCanceled)
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrCanceled)
	})
}

// Q5: what a worker ran that died runs again, before what came after it.
func TestAWorkerThatDiesIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		var cut atomic.Bool // of the worker that dies: from then on the server hears nothing of it
		q2, err := queue.New(&deaf{server, &cut}, "app")
		must(t, err)
		enqueue(t, q, "first", queue.Priority(1))
		dies, begun, end := q2.Worker("dies", queue.DrainTimeout(0), queue.Slots(1)), make(chan struct{}), make(chan error, 1)
		note.Handle(dies, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			close(begun)
			<-ctx.Done()
			end <- context.Cause(ctx)
			return queue.None{}, nil
		})
		stop := start(t, dies)
		<-begun
		cut.Store(true)
		enqueue(t, q, "second")
		was := time.Now()
		if diff := cmp.Diff([]string{"second", "first"}, run(t, q, 2)); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(was); took > queue.DefaultLease+queue.DefaultLease/3 {
			t.Errorf("Q5: it took %v", took)
		}
		wantErr(t, <-end, queue.ErrLeaseLost)
		cut.Store(false)
		stop()
		must(t, q2.Close())
	})
}

// Q8: what is idle leaves nothing behind.
func TestAnIdleQueueLeavesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		enqueue(t, q, "a", queue.Key("k"), queue.Unique("u", queue.Alive), queue.Retain(time.Minute))
		enqueue(t, q, "b", queue.Require("x"), queue.In(time.Second))
		must(t, q.Configure(within(t), queue.Rate(queue.EachKey, time.Second, 1)))
		run(t, q, 2, queue.Tags("x"))
		must(t, q.Configure(within(t), queue.Unlimited(queue.EachKey)))
		must(t, q.Close())
		time.Sleep(20 * time.Minute)
		keys, err := server.Keys(within(t), "*").Result()
		must(t, err)
		for _, key := range keys {
			if left := server.PTTL(within(t), key).Val(); left <= 0 || left > 24*time.Hour {
				t.Errorf("Q8: %s expires in %v", key, left)
			}
		}
		if len(keys) > 2 { // clock and stats
			t.Errorf("Q8: these keys are left: %q", keys)
		}
	})
}
