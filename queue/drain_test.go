package queue_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/queue"
)

func workerStates(t *testing.T, q *queue.Queue) string {
	t.Helper()
	workers, err := q.Workers(within(t))
	must(t, err)
	var states []string
	for i := range workers {
		states = append(states, fmt.Sprint(workers[i].Name, " ", workers[i].State))
	}
	return fmt.Sprint(states)
}

// A worker that is told to drain finishes what it runs, leaves the rest to others, and ends.
func TestWorkersAreDrainedFromOutside(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q, operator := open(t, server), open(t, server)
		begun, goOn := make(chan string, 10), make(chan struct{})
		ended := make(chan error, 1)
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			begun <- j.Args
			<-goOn
			return queue.None{}, nil
		})
		go func() { ended <- w.Run(context.Background()) }()
		enqueue(t, q, "first")
		second := enqueue(t, q, "second")
		<-begun
		workers, err := operator.Workers(within(t))
		must(t, err)
		must(t, operator.Drain(within(t), workers[0].ID))
		for ctx := within(t); workerStates(t, operator) != "[w draining]"; {
			must(t, ctx.Err())
			time.Sleep(5 * time.Millisecond)
		}
		findings, err := operator.Check(within(t), false)
		if must(t, err); len(findings) > 0 {
			t.Error(findings)
		}
		goOn <- struct{}{}
		must(t, <-ended)
		if got := workerStates(t, operator); got != "[]" {
			t.Errorf("there are %s", got)
		}
		becomes(t, operator, second, queue.Pending)
		wantErr(t, operator.Drain(within(t), workers[0].ID), queue.ErrInvalid)
	})
}

// A worker that loses its lease before it has heard that it is to drain hears it when it is back.
func TestAWorkerThatLosesItsLeaseIsDrainedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, e.Close()) })
		var cut atomic.Bool
		server := connect(t, &redis.Options{Addr: "engine", PoolSize: 50, Dialer: func(context.Context, string, string) (net.Conn, error) {
			if cut.Load() {
				return nil, io.EOF
			}
			return e.Dial()
		}})
		q, operator := open(t, &deaf{server, &cut}), open(t, connect(t, &redis.Options{
			Addr: "engine", Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
		}))
		w := q.Worker("w")
		note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
		ended := make(chan error, 1)
		go func() { ended <- w.Run(context.Background()) }()
		synctest.Wait()
		workers, err := operator.Workers(within(t))
		must(t, err)
		cut.Store(true)
		_, err = e.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub")
		must(t, err)
		synctest.Wait()
		must(t, operator.Drain(within(t), workers[0].ID))
		time.Sleep(time.Minute)
		left := enqueue(t, operator, "left")
		if got := workerStates(t, operator); got != "[]" {
			t.Errorf("after its lease there are %s", got)
		}
		findings, err := operator.Check(within(t), false)
		if must(t, err); len(findings) > 0 {
			t.Error(findings)
		}
		cut.Store(false)
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(time.Minute):
			t.Fatalf("it works on: %s", workerStates(t, operator))
		}
		becomes(t, operator, left, queue.Pending)
	})
}

// A worker that is away is handed nothing, does not hold up the time, and comes back.
func TestAWorkerThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		client := &counting{UniversalClient: server}
		q, err := queue.New(client, "app")
		must(t, err)
		var r recorder
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			r.add(j.Args)
			return queue.None{}, nil
		})
		stop := start(t, w)
		synctest.Wait()
		must(t, w.Away(within(t)))
		synctest.Wait()
		if got := workerStates(t, q); got != "[w away]" {
			t.Errorf("there are %s", got)
		}
		enqueue(t, q, "a")
		must(t, q.Schedule(within(t), "s", queue.Every(time.Minute), queue.RunLast, note.With("tick")))
		was := client.calls.Load()
		time.Sleep(90 * time.Second)
		if n := client.calls.Load() - was; n > 40 || len(r.all()) > 0 {
			t.Errorf("%d commands in 90 seconds, and %q ran", n, r.all())
		}
		must(t, w.Online(within(t)))
		synctest.Wait()
		if got := fmt.Sprint(r.all()); got != "[a tick]" {
			t.Errorf("there ran %s", got)
		}
		stop()
		must(t, q.Close())
	})
}
