package classic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// worker runs tasks named "send" and writes down their arguments.
func worker(a *actor, did *[]string, queues ...string) classic.Worker {
	return classic.Worker{Client: a.Client, Queues: queues, Wait: time.Second, Callbacks: map[string]classic.Callback{
		"send": func(_ context.Context, args []json.RawMessage) error {
			*did = append(*did, fmt.Sprintf("%s", args))
			return nil
		},
		"fail": func(context.Context, []json.RawMessage) error { return errNoPatience },
	}}
}

func queue(a *actor, name string) classic.Queue { return classic.Queue{Client: a.Client, Name: name} }

func TestQueueRunsTasksInOrderAndByPriority(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		must(t, queue(a, "low").Push(t.Context(), "send", "slow", 1))
		must(t, queue(a, "low").Push(t.Context(), "send"))
		must(t, queue(a, "high").Push(t.Context(), "send", map[string]int{"n": 2}))
		// As any language writes it.
		must(t, s.admin.RPush(t.Context(), "queue:high", `["send", ["x@y"]]`).Err())
		var did []string
		w := worker(a, &did, "high", "low")
		for range 4 {
			if !get(w.RunOne(t.Context()))(t) {
				t.Fatal("no task came")
			}
		}
		if want := []string{`[{"n":2}]`, `["x@y"]`, `["slow" 1]`, `[]`}; !slices.Equal(did, want) {
			t.Fatalf("ran %q, want %q", did, want)
		}
		if get(w.RunOne(t.Context()))(t) {
			t.Fatal("a task came from empty queues")
		}
		s.wantNoKeys(t)
	})
}

func TestQueueLosesATaskThatCannotBeRun(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		must(t, queue(a, "q").Push(t.Context(), "fail"))
		must(t, queue(a, "q").Push(t.Context(), "no such"))
		for _, text := range []string{"", "null", "[]", "[1, []]", `["send", {}]`, `["send", [], 1]`, `["", "q", "send", []]`, `["", []]`} {
			must(t, s.admin.RPush(t.Context(), "queue:q", text).Err())
		}
		must(t, queue(a, "q").Push(t.Context(), "send", "last"))
		var did []string
		var errs []error
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		w := worker(a, &did, "q")
		w.Callbacks["send"] = func(context.Context, []json.RawMessage) error { stop(); return nil }
		err := w.Run(ctx, func(err *classic.TaskError) { errs = append(errs, err) })
		wantErr(t, err, context.Canceled)
		if len(errs) != 10 {
			t.Fatalf("%d tasks failed, want 10: %v", len(errs), errs)
		}
		wantErr(t, errs[0], errNoPatience)
		wantErr(t, errs[1], classic.ErrUnknownTask)
		s.wantNoKeys(t)
	})
}

func TestQueueLosesATaskWhenItsWorkerCrashes(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		must(t, queue(b, "q").Push(t.Context(), "send", 1))
		var did []string
		var ran bool
		a.begin(t, into(&ran, func() (bool, error) { return worker(a, &did, "q").RunOne(t.Context()) })).loseReply("blpop")
		if len(did) != 0 {
			t.Fatal("the task has run")
		}
		s.wantNoKeys(t) // and it is nowhere
	})
}

func TestQueueRunsATaskTwiceThatWasPushedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		a.begin(t, func() error { return queue(a, "q").Push(t.Context(), "send", 1) }).loseReply("rpush")
		must(t, queue(b, "q").Push(t.Context(), "send", 1)) // to be sure
		var did []string
		for range 2 {
			get(worker(b, &did, "q").RunOne(t.Context()))(t)
		}
		if len(did) != 2 {
			t.Fatalf("ran %q, want it twice", did)
		}
	})
}

func TestQueueStarvesTheLastWhileTheFirstHasWork(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		must(t, queue(a, "low").Push(t.Context(), "send", "old"))
		var did []string
		for range 5 {
			must(t, queue(a, "high").Push(t.Context(), "send", "new"))
			get(worker(a, &did, "high", "low").RunOne(t.Context()))(t)
		}
		if slices.Contains(did, `["old"]`) {
			t.Fatalf("ran %q: the old one has had its turn", did)
		}
	})
}

func TestDelayedTaskRunsWhenItIsDue(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		mover := classic.Mover{Client: a.Client}
		get(queue(a, "q").PushLater(t.Context(), time.Minute, "send", "later"))(t)
		get(queue(a, "q").PushLater(t.Context(), 0, "send", "now"))(t)
		var did []string
		get(worker(a, &did, "q").RunOne(t.Context()))(t)
		if get(mover.MoveOne(t.Context()))(t) {
			t.Fatal("a task is due after no time")
		}
		a.clock.sleeps = 6001 // of 10 ms: a little more than a minute
		wantErr(t, mover.Run(t.Context()), errNoPatience)
		get(worker(a, &did, "q").RunOne(t.Context()))(t)
		if want := []string{`["now"]`, `["later"]`}; !slices.Equal(did, want) {
			t.Fatalf("ran %q, want %q", did, want)
		}
		s.wantNoKeys(t)
	})
}

// delayed is an actor's task that is due for all.
func delayed(t *testing.T, a *actor, name string) {
	t.Helper()
	get(queue(a, "q").PushLater(t.Context(), time.Second, "send", name))(t)
	a.clock.advance(time.Second)
}

func TestTwoMoversMoveATaskOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		delayed(t, a, "x")
		b.clock.advance(time.Hour)
		var byA bool
		moving := a.begin(t, into(&byA, func() (bool, error) { return classic.Mover{Client: a.Client}.MoveOne(t.Context()) })).
			step("zrange")
		if !get(classic.Mover{Client: b.Client}.MoveOne(t.Context()))(t) {
			t.Fatal("b found nothing due")
		}
		must(t, moving.finish())
		if n := s.admin.LLen(t.Context(), "queue:q").Val(); n != 1 {
			t.Fatalf("the task is in its queue %d times", n)
		}
		s.wantNoKeys(t, "queue:q")
	})
}

func TestDelayedTaskIsLostBetweenZREMAndRPUSH(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		delayed(t, a, "x")
		var moved bool
		a.begin(t, into(&moved, func() (bool, error) { return classic.Mover{Client: a.Client}.MoveOne(t.Context()) })).
			step("zrange", "setnx", "zrem").crash("rpush")
		s.wantNoKeys(t, "lock:a-1") // neither delayed nor in its queue
	})
}

func TestDelayedCrashUnderTheLockStopsAllMovers(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		delayed(t, a, "x")
		delayed(t, a, "y")
		var moved bool
		a.begin(t, into(&moved, func() (bool, error) { return classic.Mover{Client: a.Client}.MoveOne(t.Context()) })).
			step("zrange", "setnx").crash("zrem")
		b.clock.advance(time.Hour)
		for range 2 {
			_, err := classic.Mover{Client: b.Client}.MoveOne(t.Context())
			wantErr(t, err, classic.ErrBusy)
		}
		if n := s.admin.ZCard(t.Context(), "delayed:").Val(); n != 2 {
			t.Fatalf("%d tasks are delayed, want both, although both are due", n)
		}
	})
}

func TestDelayedTextThatIsNoTaskStopsAllMovers(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a := s.actor(t, "a")
		must(t, s.admin.Do(t.Context(), "ZADD", "delayed:", 1, `["send", []]`).Err())
		delayed(t, a, "x")
		var task *classic.TaskError
		for range 2 {
			if err := (classic.Mover{Client: a.Client}).Run(t.Context()); !errors.As(err, &task) {
				t.Fatalf("got %v, want a TaskError", err)
			}
		}
		s.wantNoKeys(t, "delayed:")
	})
}

func TestDelayedTaskComesEarlyByAFastClock(t *testing.T) {
	onEach(t, func(t *testing.T, s *server) {
		a, b := s.actor(t, "a"), s.actor(t, "b")
		b.clock.advance(time.Hour)
		get(queue(a, "q").PushLater(t.Context(), time.Hour, "send"))(t)
		if !get(classic.Mover{Client: b.Client}.MoveOne(t.Context()))(t) {
			t.Fatal("b waited for the hour that its clock is ahead")
		}
	})
}
