package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// A job waits for those before it alone: so none waits for itself, through others either.
func TestDependenciesHaveNoCycles(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		_, err := note.Enqueue(within(t), q, "itself", queue.ID("a"), queue.After(queue.CancelIt, "a"))
		wantErr(t, err, queue.ErrInvalid)
		outcomes, err := q.EnqueueMany(within(t),
			note.With("first", queue.ID("x"), queue.AfterAny(queue.RunIt, "z")), note.With("second", queue.ID("y"), queue.After(queue.HoldIt, "x")),
			note.With("third", queue.ID("z"), queue.After(queue.CancelIt, "y")))
		must(t, err)
		wantErr(t, outcomes[0].Err, queue.ErrInvalid)
		if text := outcomes[0].Err.Error(); !strings.Contains(text, `"z", which comes behind it`) {
			t.Error(text)
		}
		must(t, outcomes[1].Err) // its parent is not there, which counts as done
		must(t, outcomes[2].Err)
		becomes(t, q, "y", queue.Pending)
		becomes(t, q, "z", queue.Held)
	})
}

// Whoever cannot enqueue is told why while it is tried, and when he has waited long enough.
func TestAProducerHearsWhatIsWrong(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		var told atomic.Pointer[error]
		ctx, cancel := context.WithCancel(within(t))
		q := open(t, server, queue.Observer(func(e queue.Event) {
			if e.What == queue.Failing {
				told.Store(&e.Err)
				cancel()
			}
		}))
		enqueue(t, q, "before")
		must(t, server.ConfigSet(within(t), "maxmemory", "1").Err())
		_, err := note.Enqueue(ctx, q, "a")
		wantErr(t, err, context.Canceled)
		wantErr(t, err, queue.ErrUnavailable)
		for _, err := range []error{err, *told.Load()} {
			if !strings.Contains(err.Error(), `"app"`) || !strings.Contains(err.Error(), "memory is full") {
				t.Error(err)
			}
		}
		must(t, server.ConfigSet(within(t), "maxmemory", "0").Err())
		becomes(t, q, enqueue(t, q, "b"), queue.Pending)
	})
}

// An error is for people: it does not repeat what is too long to read.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		for what, request := range map[string]queue.Request{
			"kind": queue.Define[string, queue.None](long).With("a"), "key": note.With("a", queue.Key(long)), "tag": note.With("a", queue.Require(long)),
			"id": note.With("a", queue.ID(long)), "parent": note.With("a", queue.After(queue.CancelIt, long)), "capacity": note.With("a", queue.Cost(long, 1)),
			"fingerprint": note.With("a", queue.Unique(long, queue.Alive)), "arguments": note.With(long),
		} {
			outcomes, err := q.EnqueueMany(within(t), request)
			must(t, err)
			wantErr(t, outcomes[0].Err, queue.ErrInvalid)
			if text := outcomes[0].Err.Error(); len(text) > 400 {
				t.Errorf("%s: an error of %d bytes: %.200s", what, len(text), text)
			}
		}
		if _, err := queue.New(server, long); err == nil || len(err.Error()) > 400 {
			t.Errorf("queue: %.200v", err)
		}
		w := q.Worker(long)
		for what, err := range map[string]error{
			"worker":   w.Run(within(t)),
			"schedule": q.Schedule(within(t), long, queue.Every(time.Minute), queue.RunLast, note.With("a")),
		} {
			wantErr(t, err, queue.ErrInvalid)
			if len(err.Error()) > 400 {
				t.Errorf("%s: an error of %d bytes", what, len(err.Error()))
			}
		}
	})
}

// What a caller gives by mistake is refused with the name of the queue or the kind, before a server is asked, and nothing
// panics.
func TestMistakesAreRefused(t *testing.T) {
	nothing := func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil }
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		for what, request := range map[string]queue.Request{
			"no kind": queue.Define[string, queue.None]("").With("a"), "NUL": note.With("a", queue.Key("a\x00b")),
			"newline": note.With("a", queue.ID("a\nb")), "not UTF-8": note.With("a", queue.Require("a\xff")), "comma": note.With("a", queue.ID("a,b")),
			"timeout": note.With("a", queue.Timeout(-time.Second)), "priority": note.With("a", queue.Priority(-1<<30)),
			"attempts": note.With("a", queue.MaxAttempts(-1)), "cost": note.With("a", queue.Cost("call", -1)), "backoff": note.With("a", queue.Backoff(nil)),
			"payload": note.With(strings.Repeat("x", queue.MaxPayload)), "codec": queue.Define[string, queue.None]("k", queue.Encoding(nil)).With("a"),
			"arguments": queue.Define[chan int, queue.None]("k").With(nil), "parents": note.With("a", queue.After(queue.CancelIt)),
		} {
			outcomes, err := q.EnqueueMany(within(t), request)
			must(t, err)
			if err := outcomes[0].Err; !errors.Is(err, queue.ErrInvalid) || !strings.HasPrefix(err.Error(), "enqueue ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, make := range map[string]func(w *queue.Worker){
			"no handlers":      func(*queue.Worker) {},
			"handler":          func(w *queue.Worker) { note.Handle(w, nil) },
			"batch":            func(w *queue.Worker) { note.HandleBatch(w, 2, 0, nil) },
			"middleware":       func(w *queue.Worker) { queue.Use(nil)(w) },
			"observer":         func(w *queue.Worker) { queue.Observe(nil)(w) },
			"capacity":         func(w *queue.Worker) { queue.With(queue.Capacity{"call": -1})(w) },
			"huge capacity":    func(w *queue.Worker) { queue.Slots(1 << 40)(w) },
			"capacity's name":  func(w *queue.Worker) { queue.With(queue.Capacity{"a:b": 1})(w) },
			"tag":              func(w *queue.Worker) { queue.Tags("")(w) },
			"kind":             func(w *queue.Worker) { queue.Define[string, queue.None]("").Handle(w, nothing) },
			"backoff of kinds": func(w *queue.Worker) { queue.Define[string, queue.None]("k", queue.Backoff(nil)).Handle(w, nothing) },
		} {
			w := q.Worker("w")
			if make(w); what != "no handlers" {
				note.Handle(w, nothing)
			}
			if err := w.Run(within(t)); !errors.Is(err, queue.ErrInvalid) || !strings.HasPrefix(err.Error(), `worker "w" of queue "app": `) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, change := range map[string]queue.Change{
			"limit": queue.Limit(queue.WholeQueue, -1), "rate": queue.Rate(queue.WholeQueue, 0, 1), "slow rate": queue.Rate(queue.WholeQueue, 1<<60, 1),
			"burst": queue.Rate(queue.WholeQueue, time.Second, 0), "step": queue.Step(-1), "crashes": queue.Crashes(0), "key": queue.Limit(queue.OfKey("a\nb"), 1),
		} {
			if err := q.Configure(within(t), change); !errors.Is(err, queue.ErrInvalid) || !strings.HasPrefix(err.Error(), `configure "app": `) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, setting := range map[string]queue.Setting{
			"lease": queue.Lease(0), "observer": queue.Observer(nil), "middleware": queue.Wrap(nil),
		} {
			_, err := queue.New(server, "app", setting)
			if !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, timing := range []queue.Timing{
			queue.Cron("0 0 30 2 *", ""), queue.Cron("TZ=", ""), queue.Cron("CRON_TZ=UTC 0 9 * * *", ""), queue.Cron("* * * * *", "Nowhere/City"),
			queue.Cron("* * * * *", "Local"), queue.Cron("", ""), queue.Cron("@every x", ""), queue.Every(0), queue.Every(-time.Hour),
			{},
		} {
			err := q.Schedule(within(t), "s", timing, queue.RunLast, note.With("a"))
			if !errors.Is(err, queue.ErrInvalid) || !strings.HasPrefix(err.Error(), `schedule "s" of queue "app": `) {
				t.Errorf("%v: %v", timing, err)
			}
		}
		if keys := server.Keys(within(t), "*").Val(); len(keys) > 0 {
			t.Errorf("left: %q", keys)
		}
	})
}

// A kind whose Backoff panics has its jobs tried again like others, and the error says it.
func TestABackoffThatPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		kind := queue.Define[string, queue.None]("k", queue.Backoff(func(int) time.Duration { panic("no table") }))
		w := q.Worker("w")
		kind.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			if j.Attempt == 1 {
				return queue.None{}, errors.New("at first")
			}
			info, err := q.Look(j.Context(), j.ID)
			if err != nil || !strings.Contains(info.Error, "at first; and Backoff: panic: no table") {
				t.Errorf("%v: %+v", err, info)
			}
			return queue.None{}, nil
		})
		start(t, w)
		job, err := kind.Enqueue(within(t), q, "a", queue.Retain(time.Hour))
		must(t, err)
		_, err = job.Wait(within(t))
		must(t, err)
	})
}

// A timeout that is less than the queue can count is not none.
func TestAShortTimeoutIsOne(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w")
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			<-ctx.Done()
			return queue.None{}, queue.Fail(context.Cause(ctx))
		})
		start(t, w)
		job, err := note.Enqueue(within(t), q, "a", queue.Timeout(time.Nanosecond))
		must(t, err)
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrDead)
	})
}

// Whatever ends a wait, the error names the job and the queue.
func TestAWaitThatEndsNamesItsQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		id := enqueue(t, q, "a")
		for id, want := range map[string]error{id: context.DeadlineExceeded, "nobody": queue.ErrUnknownJob, "a\nb": queue.ErrUnknownJob, "": queue.ErrUnknownJob} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := note.Job(q, id).Wait(ctx)
			cancel()
			wantErr(t, err, want)
			if text := err.Error(); !strings.HasPrefix(text, "wait for job ") || !strings.Contains(text, ` of queue "app": `) || strings.Contains(text, "\n") {
				t.Error(text)
			}
		}
	})
}
