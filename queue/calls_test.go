package queue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// gated is a client whose scripts are counted, and wait until the gate is opened.
type gated struct {
	redis.UniversalClient
	gate  chan struct{}
	calls atomic.Int64
}

func (g *gated) Process(ctx context.Context, cmd redis.Cmder) error {
	if cmd.Name() == "evalsha" {
		g.calls.Add(1)
		select {
		case <-g.gate:
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
	}
	return g.UniversalClient.Process(ctx, cmd)
}

// loggingIn starts workers of one program all at once, until the gate keeps them from going on. Fails says how they end.
func loggingIn(t *testing.T, g *gated, n int, fails bool) (q *queue.Queue, ran chan string, ended *sync.WaitGroup) {
	t.Helper()
	q, ran, ended = open(t, g), make(chan string, n), new(sync.WaitGroup)
	for i := range n {
		w := q.Worker(fmt.Sprint("w", i), queue.Slots(1))
		note.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
			ran <- fmt.Sprint("w", i)
			<-ctx.Done()
			return queue.None{}, nil
		})
		ended.Go(func() {
			if err := w.Run(t.Context()); (err != nil) != fails {
				t.Error(err)
			}
		})
	}
	time.Sleep(time.Millisecond)
	return q, ran, ended
}

// Thousands may log in at the same moment: what they have to say goes together, and each of them is handed jobs.
func TestWorkersThatWaitShareCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		const workers = 500
		g := &gated{UniversalClient: server, gate: make(chan struct{})}
		q, ran, ended := loggingIn(t, g, workers, false)
		if n := g.calls.Load(); n != 16 {
			t.Errorf("%d calls are under way", n)
		}
		close(g.gate)
		time.Sleep(time.Millisecond)
		if n := g.calls.Load(); n > workers {
			t.Errorf("%d calls, where each of %d workers has made two", n, workers)
		}
		for i := range workers {
			enqueue(t, q, fmt.Sprint(i))
		}
		busy := map[string]bool{}
		for range workers {
			busy[<-ran] = true
		}
		if len(busy) != workers {
			t.Errorf("%d workers of one slot have %d jobs", len(busy), workers)
		}
		must(t, q.Close())
		ended.Wait()
	})
}

// Whoever waits for others' calls is not held up by them when it is to end.
func TestCloseWhileCallsHang(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q, _, ended := loggingIn(t, &gated{UniversalClient: server, gate: make(chan struct{})}, 100, true)
		must(t, q.Close())
		ended.Wait()
	})
}
