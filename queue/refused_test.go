package queue_test

import (
	"context"
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
