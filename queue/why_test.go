package queue_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// why asks until the answer begins so, as what a worker was told takes a moment to show.
func why(t *testing.T, q *queue.Queue, id string, reason queue.Reason, text string) *queue.Explanation {
	t.Helper()
	ctx := within(t)
	for {
		e, err := q.Why(ctx, id)
		must(t, err)
		if e.Reason == reason && strings.HasPrefix(e.String(), text) {
			return e
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("why: %s: %s, want %s: %s…", e.Reason, e, reason, text)
		}
	}
}

func TestWhyAJobDoesNotRun(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		set := func(changes ...queue.Change) { t.Helper(); must(t, q.Configure(within(t), changes...)) }
		a := enqueue(t, q, "a", queue.Key("k"), queue.Require("de"), queue.Cost("call", 2))
		why(t, q, a, queue.Nobody, "no worker is online")

		_, endFirst := newGate(t, q)
		why(t, q, a, queue.Nobody, "of 1 worker online with kind note, none has tag de")
		m, err := sendMail.Enqueue(within(t), q, mail{"x@y"})
		must(t, err)
		why(t, q, m.ID(), queue.Nobody, "of 1 worker online, none has kind mail.send")
		endFirst()
		why(t, q, a, queue.Nobody, "no worker is online")
		_, endSecond := newGate(t, q, queue.With(queue.Capacity{"call": 1}), queue.Tags("de"))
		e := why(t, q, a, queue.Nobody, "of 1 worker online with kind note and tag de, none has capacity call=2")
		if e.Missing != "capacity call=2" {
			t.Errorf("missing is %q", e.Missing)
		}
		endSecond()

		set(queue.Pause(queue.WholeQueue))
		why(t, q, a, queue.Paused, "the queue is paused")
		set(queue.Resume(queue.WholeQueue), queue.Pause(queue.OfKind("note")))
		why(t, q, a, queue.Paused, "kind note is paused")
		set(queue.Resume(queue.OfKind("note")), queue.Pause(queue.OfKey("k")))
		why(t, q, a, queue.Paused, "key k is paused")
		set(queue.Resume(queue.OfKey("k")), queue.Limit(queue.EachKey, 1), queue.Rate(queue.OfKind("note"), time.Hour, 2))

		g, _ := newGate(t, q, queue.With(queue.Capacity{"call": 2, "slot": 2}), queue.Tags("de"))
		g.next(t)
		why(t, q, a, queue.NotWaiting, "it runs on gate ")
		b := enqueue(t, q, "b", queue.Key("k"), queue.Require("de"), queue.Cost("call", 2))
		c := enqueue(t, q, "c", queue.Key("k"), queue.Require("de"), queue.Cost("call", 2))
		e = why(t, q, b, queue.Limited, "the limit of key k is used up: 1 of 1 run")
		if e.Used != 1 || e.Most != 1 || e.Scope != queue.OfKey("k") {
			t.Errorf("it is %+v", e)
		}
		why(t, q, c, queue.Limited, "the limit of key k is used up: 1 of 1 run; 1 job before it in its lane")
		d := enqueue(t, q, "d", queue.Key("l"), queue.Require("de"), queue.Cost("call", 2))
		why(t, q, d, queue.Busy, "the one worker that could run it is busy: 2 of 2 calls used")
		f := enqueue(t, q, "f", queue.Key("m"), queue.Require("de"), queue.Cost("call", 2))
		why(t, q, f, queue.Busy, "the one worker that could run it is busy: 2 of 2 calls used; 1 lane ahead of its own") // k is at its limit
		g.open <- nil
		if next := g.next(t); next != b {
			t.Errorf("%s runs next, want %s", next, b)
		}
		g.open <- queue.Fail(errors.New("no paper"))
		e = why(t, q, c, queue.Throttled, "the rate of kind note lets the next one start in ")
		if e.Until.IsZero() {
			t.Errorf("it is %+v", e)
		}
		why(t, q, b, queue.NotWaiting, "it is dead, since ")

		late := enqueue(t, q, "late", queue.In(time.Hour))
		why(t, q, late, queue.NotWaiting, "it waits for its time, which comes in ")
		child := enqueue(t, q, "child", queue.After(queue.HoldIt, c, d))
		why(t, q, child, queue.NotWaiting, "it waits for 2 other jobs to end")
		must(t, q.Cancel(within(t), "enough", c))
		why(t, q, child, queue.NotWaiting, "a job that it waited for did not succeed: it waits to be retried by hand")
		_, err = q.Why(within(t), "nobody")
		wantErr(t, err, queue.ErrUnknownJob)
	})
}

// What goes first is what can: a key that is paused, at its limit or out of rate lets others pass.
func TestWhyCountsAheadOnlyWhatCanGo(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		var last string
		for _, key := range []string{"paused", "none", "own", "last"} {
			last = enqueue(t, q, "a", queue.Key(key))
		}
		ahead := func(want int, changes ...queue.Change) {
			t.Helper()
			must(t, q.Configure(within(t), changes...))
			e, err := q.Why(within(t), last)
			must(t, err)
			if e.Ahead != want {
				t.Errorf("%d lanes ahead, want %d: %s", e.Ahead, want, e)
			}
		}
		ahead(3)
		ahead(2, queue.Pause(queue.OfKey("paused")))
		ahead(1, queue.Limit(queue.OfKey("none"), 0))
		ahead(3, queue.Resume(queue.OfKey("paused")), queue.NoLimit(queue.OfKey("none")))
	})
}
