package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

// told are the events that a reader has not given yet, a line each.
func told(t *testing.T, r *queue.HistoryReader) (lines []string, events []queue.HistoryEvent) {
	t.Helper()
	for e, err := range r.Events(within(t)) {
		must(t, err)
		line := string(e.What)
		if e.Job != nil {
			line += fmt.Sprint(" ", e.Job.Kind, " ", e.Job.Attempt)
		}
		if e.Worker != nil {
			line += " " + e.Worker.Name
		}
		if e.Reason != "" {
			line += ": " + e.Reason
		}
		lines, events = append(lines, line), append(events, e)
	}
	return lines, events
}

func wantTold(t *testing.T, r *queue.HistoryReader, want ...string) []queue.HistoryEvent {
	t.Helper()
	lines, events := told(t, r)
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +told):\n%s", diff)
	}
	return events
}

// copied has a sink have all that there is.
func copied(t *testing.T, q *queue.Queue, sink history.Sink) {
	t.Helper()
	must(t, q.Record(within(t), sink, queue.UntilCaughtUp()))
}

func untilIs(t *testing.T, q *queue.Queue, name string, state queue.WorkerState) {
	t.Helper()
	for workers, err := q.Workers(within(t)); ; workers, err = q.Workers(within(t)) {
		must(t, err)
		for _, w := range workers {
			if w.Name == name && w.State == state {
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
}

var talk = queue.Define[string, queue.None]("chat", queue.Cost("chat", 1), queue.MaxAttempts(2))

// One agent's day: the history says when she came and went, what she could do, and what she ran.
func TestTheHistoryOfAWorkersDay(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q, sink := open(t, server), segments(t, t.TempDir())
		t.Cleanup(func() { must(t, sink.Close()) })
		_, err := talk.Enqueue(within(t), q, "from before", queue.In(time.Hour))
		must(t, err)
		copied(t, q, sink)
		r := queue.NewHistoryReader(sink)
		wantTold(t, r, "job known chat 1")

		rings, hangUp := make(chan struct{}), make(chan struct{})
		anna := q.Worker("anna", queue.With(queue.Capacity{"call": 1, "chat": 3}), queue.Tags("lang:de"))
		talk.Handle(anna, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			switch {
			case j.Args == "fails" && j.Attempt == 1:
				return queue.None{}, queue.Retry(errors.New("cut off"), 0)
			case j.Args == "long":
				rings <- struct{}{}
				<-hangUp
			case j.Args == "fails":
				return queue.None{}, errors.New("again")
			}
			return queue.None{}, nil
		})
		stop := start(t, anna)
		untilIs(t, q, "anna", queue.Online)
		converse := func(text string) queue.Enqueued[queue.None] {
			t.Helper()
			job, err := talk.Enqueue(within(t), q, text, queue.Retain(time.Hour)) // it may have ended before somebody waits
			must(t, err)
			return job
		}
		_, err = converse("one").Wait(within(t))
		must(t, err)
		must(t, anna.Away(within(t)))
		job := converse("two")
		must(t, anna.Online(within(t)))
		_, err = job.Wait(within(t))
		must(t, err)
		_, err = converse("fails").Wait(within(t))
		wantErr(t, err, queue.ErrDead)
		last := converse("long")
		<-rings
		drained := make(chan error, 1)
		go func() { drained <- anna.Drain(within(t)) }()
		untilIs(t, q, "anna", queue.Leaving)
		close(hangUp)
		_, err = last.Wait(within(t))
		must(t, errors.Join(err, <-drained))
		stop()
		copied(t, q, sink)
		events := wantTold(t, r,
			"logged in anna", "enqueued chat 1", "running chat 1 anna", "done chat 1 anna",
			"away anna", "enqueued chat 1", "online anna", "running chat 1 anna", "done chat 1 anna",
			"enqueued chat 1", "running chat 1 anna", "retried chat 1 anna: cut off", "running chat 2 anna", "dead chat 2 anna: again",
			"enqueued chat 1", "running chat 1 anna", "draining anna", "done chat 1 anna", "logged out anna",
		)
		w := *events[0].Worker
		w.ID, w.Host, w.PID = "", "", 0
		want := queue.HistoryWorker{
			Name: "anna", State: queue.Online, Kinds: []string{"chat"}, Tags: []string{"lang:de"}, Capacities: map[string]int{"call": 1, "chat": 3},
		}
		if diff := cmp.Diff(want, w); diff != "" {
			t.Errorf("who logged in (-want +told):\n%s", diff)
		}
		wantTold(t, r)
	})
}

// Who is lost is said to have been there until the lease ended. When the server is lost too, nobody is there until they come back;
// and the queue is made again without them, and with its jobs.
func TestTheHistoryOfWhoVanished(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q, sink := open(t, server), segments(t, folder)
		copied(t, q, sink)
		var cut atomic.Bool
		bens, err := queue.New(&deaf{server, &cut}, "app", queue.Lease(time.Second))
		must(t, err)
		began := make(chan struct{}, 1)
		handle := func(w *queue.Worker) {
			talk.Handle(w, func(ctx context.Context, _ *queue.Job[string]) (queue.None, error) {
				began <- struct{}{}
				<-ctx.Done()
				return queue.None{}, ctx.Err()
			})
		}
		ben, cleo := bens.Worker("ben", queue.With(queue.Capacity{"chat": 1}), queue.DrainTimeout(0)), q.Worker("cleo", queue.With(queue.Capacity{"chat": 1}), queue.DrainTimeout(0))
		handle(ben)
		handle(cleo)
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- ben.Run(ctx) }()
		untilIs(t, q, "ben", queue.Online)
		_, err = talk.Enqueue(within(t), q, "a long one")
		must(t, err)
		<-began
		stop := start(t, cleo)
		untilIs(t, q, "cleo", queue.Online)
		cut.Store(true)
		<-began // cleo has it
		copied(t, q, sink)
		r := queue.NewHistoryReader(sink)
		events := wantTold(t, r, "logged in ben", "enqueued chat 1", "running chat 1 ben", "logged in cleo",
			"crashed chat 1 ben", "running chat 1 cleo", "vanished ben")
		if last := events[len(events)-1]; last.At.After(events[len(events)-2].At) {
			t.Errorf("it vanished at %v, and what it ran went to another at %v", last.At, events[len(events)-2].At)
		}
		cut.Store(false)
		cancel()
		must(t, errors.Join(<-ended, bens.Close()))
		copied(t, q, sink)
		told(t, r) // what ben had to say when it was heard again
		before := inventory(t, q)

		must(t, server.FlushAll(within(t)).Err())
		stop()
		must(t, server.FlushAll(within(t)).Err()) // what she left
		_, err = q.Rebuild(within(t), sink)
		must(t, err)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Errorf("the queue before and after (-before +after):\n%s", diff)
		}
		workers, err := q.Workers(within(t))
		if must(t, err); len(workers) > 0 {
			t.Errorf("workers of the past were made again: %+v", workers)
		}
		copied(t, q, sink)
		wantTold(t, r, "returned chat 1 cleo", "vanished cleo")
		must(t, sink.Close())
	})
}

// Whoever stops reading in the middle of an entry goes on there; and a history of before workers were told is read.
func TestAReaderGoesOnWhereItStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q, sink := open(t, server), segments(t, folder)
		copied(t, q, sink)
		var items []queue.Request
		for range 5 {
			items = append(items, note.With("x"))
		}
		_, err := q.EnqueueMany(within(t), items...)
		must(t, err)
		copied(t, q, sink)
		must(t, sink.Close())
		reading, err := files.Open(folder, files.ReadOnly())
		must(t, err)
		defer func() { must(t, reading.Close()) }()
		r := queue.NewHistoryReader(reading)
		n := 0
		for range 10 {
			for e, err := range r.Events(within(t)) {
				must(t, err)
				if e.What != queue.JobEnqueued {
					t.Errorf("it tells %s", e.What)
				}
				n++
				break
			}
		}
		if n != 5 {
			t.Errorf("%d events of 5 jobs", n)
		}
	})
}

// The queue is as it was before what was undone, and so says the history.
func TestWhatWasUndoneIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q, sink := open(t, server), segments(t, t.TempDir())
		copied(t, q, sink)
		enqueue(t, q, "a")
		then := serverTime(t, server)
		time.Sleep(time.Second)
		enqueue(t, q, "b")
		run(t, q, 2)
		copied(t, q, sink)
		must(t, server.FlushAll(within(t)).Err())
		_, err := q.Rebuild(within(t), sink, queue.Until(then))
		must(t, err)
		copied(t, q, sink)
		lines, _ := told(t, queue.NewHistoryReader(sink))
		if got := strings.Join(lines[len(lines)-2:], ", "); got != "logged out w, enqueued note 1" {
			t.Errorf("it ends with %s", got)
		}
		must(t, sink.Close())
	})
}
