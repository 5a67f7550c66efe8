package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// Who waits stops when he is told to, also while the server is out of reach.
func TestAWaitEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var cut atomic.Bool
		q, err := queue.New(&deaf{server, &cut}, "app")
		must(t, err)
		id := enqueue(t, q, "a")
		cut.Store(true)
		for _, patience := range []time.Duration{time.Second, 10 * time.Second, 40 * time.Second} {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, err := note.Job(q, id).Wait(ctx)
			wantErr(t, err, context.DeadlineExceeded)
			if took := time.Since(begun); took > patience+100*time.Millisecond {
				t.Errorf("it took %v, not %v", took, patience)
			}
			cancel()
		}
		must(t, q.Close())
	})
}

// measuring takes note of the longest answer.
type measuring struct {
	redis.UniversalClient
	longest atomic.Int64
}

func (m *measuring) Process(ctx context.Context, cmd redis.Cmder) error {
	err := m.UniversalClient.Process(ctx, cmd)
	if c, ok := cmd.(interface{ Val() any }); ok {
		m.longest.Store(max(m.longest.Load(), size(c.Val())))
	}
	return err
}

func size(value any) (sum int64) {
	switch v := value.(type) {
	case string:
		return int64(len(v))
	case []any:
		for _, of := range v {
			sum += size(of)
		}
	}
	return sum
}

// Q9: an answer is bounded by bytes, too, and what it leaves out comes at once.
func TestLargeJobsDoNotComeAllAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		client := &measuring{UniversalClient: server}
		q := open(t, client)
		const jobs = 25
		for i := range jobs {
			enqueue(t, q, fmt.Sprint(i, strings.Repeat("x", 1_000_000)))
		}
		var running atomic.Int32
		end := make(chan struct{})
		w := q.Worker("w", queue.Slots(100))
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
			if running.Add(1) == jobs {
				close(end)
			}
			<-end
			return queue.None{}, nil
		})
		start(t, w)
		select {
		case <-end:
		case <-within(t).Done():
			t.Fatalf("Q7: %d of %d jobs run", running.Load(), jobs)
		}
		if got := client.longest.Load(); got < 1<<20 || got > 5<<20 {
			t.Errorf("the longest answer has %d bytes", got)
		}
	})
}

// A key may be called as it likes.
func TestAKeyThatIsAStar(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		must(t, q.Configure(within(t), queue.Limit(queue.OfKey("*"), 0)))
		star := enqueue(t, q, "star", queue.Key("*"))
		enqueue(t, q, "other", queue.Key("k"))
		if got := run(t, q, 1); got[0] != "other" {
			t.Errorf("there ran %q", got)
		}
		why, err := q.Why(within(t), star)
		must(t, err)
		if why.Reason != queue.Limited || why.Scope != queue.OfKey("*") || why.Scope.String() != "key *" {
			t.Errorf("it says %+v", why)
		}
		must(t, q.Configure(within(t), queue.Unlimited(queue.OfKey("*")), queue.Limit(queue.EachKey, 0)))
		settings, err := q.Settings(within(t))
		must(t, err)
		if len(settings.Scopes) != 1 || settings.Scopes[0].Scope != queue.EachKey || settings.Scopes[0].Scope.String() != "each key" {
			t.Errorf("there is %+v", settings.Scopes)
		}
		for _, scope := range []queue.Scope{queue.OfKey(""), queue.OfKind("a\tb")} {
			wantErr(t, q.Configure(within(t), queue.Limit(scope, 1)), queue.ErrInvalid)
		}
	})
}

// A handler that ignores its context keeps its slot, also when its job is others' by now, and that is told.
func TestAHandlerThatIgnoresItsContextKeepsItsSlot(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var cut atomic.Bool
		q, err := queue.New(&deaf{server, &cut}, "app", queue.Lease(2*time.Second))
		must(t, err)
		healthy := open(t, server)
		goOn := make(chan struct{})
		var running, ran, ignoring atomic.Int32
		w := q.Worker("w", queue.Slots(2), queue.Observe(func(e queue.Event) {
			if e.What == queue.Ignoring {
				ignoring.Add(1)
			}
		}))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			if n := running.Add(1); n > 2 {
				t.Errorf("%d handlers run in two slots", n)
			}
			defer running.Add(-1)
			if j.Args == "stubborn" && j.Crashes == 0 {
				<-goOn
			}
			ran.Add(1)
			return queue.None{}, nil
		})
		stop := start(t, w)
		enqueue(t, healthy, "stubborn")
		enqueue(t, healthy, "stubborn")
		for running.Load() < 2 {
			time.Sleep(time.Millisecond)
		}
		cut.Store(true)
		time.Sleep(4 * time.Second) // the lease is over, and others would have the jobs
		cut.Store(false)
		time.Sleep(20 * time.Second)
		if ran.Load() != 0 || ignoring.Load() != 2 {
			t.Errorf("%d handlers have ended, %d were told of", ran.Load(), ignoring.Load())
		}
		goOn <- struct{}{}
		time.Sleep(time.Second)
		if ran.Load() != 3 {
			t.Errorf("%d handlers have ended, when one slot is free", ran.Load())
		}
		goOn <- struct{}{}
		stop()
		must(t, q.Close())
	})
}
