package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// gate is a worker whose jobs run until they are let go on.
type gate struct {
	began chan string
	open  chan error // what the next one ends with
}

func newGate(t *testing.T, q *queue.Queue, options ...queue.WorkerOption) (*gate, func()) {
	t.Helper()
	g := &gate{make(chan string, 100), make(chan error)}
	w := q.Worker("gate", append(options, queue.DrainTimeout(0))...) // what waits at the gate is not waited for
	note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
		g.began <- j.ID
		select {
		case err := <-g.open:
			return queue.None{}, err
		case <-ctx.Done():
			return queue.None{}, ctx.Err()
		}
	})
	return g, start(t, w)
}

func (g *gate) next(t *testing.T) string {
	t.Helper()
	select {
	case id := <-g.began:
		return id
	case <-within(t).Done():
		t.Fatal("nothing begins")
		return ""
	}
}

// becomes looks until a job is in a state.
func becomes(t *testing.T, q *queue.Queue, id string, state queue.State) *queue.JobInfo {
	t.Helper()
	ctx := within(t)
	for {
		info, err := q.Look(ctx, id)
		must(t, err)
		if info.State == state {
			return info
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("it is %s, not %s", info.State, state)
		}
	}
}

func TestAJobIsSeenInEachState(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		id := enqueue(t, q, "a", queue.Key("k"), queue.Require("x", "y"), queue.Cost("call", 2), queue.Retain(time.Hour))
		got, err := q.Look(within(t), id)
		must(t, err)
		want := &queue.JobInfo{
			ID: id, Kind: "note", Key: "k", Tags: []string{"x", "y"}, Cost: map[string]int{"call": 2}, State: queue.Pending,
			Arguments: []byte(`"a"`),
		}
		unordered := cmpopts.IgnoreUnexported(queue.JobInfo{})
		if diff := cmp.Diff(want, got, unordered, cmpopts.IgnoreFields(queue.JobInfo{}, "Enqueued")); diff != "" {
			t.Error(diff)
		}
		if since := time.Since(got.Enqueued); since < -time.Minute || since > time.Minute {
			t.Errorf("it was enqueued %v ago", since)
		}
		child := enqueue(t, q, "b", queue.After(queue.CancelIt, id))
		if got := becomes(t, q, child, queue.Held); got.Parents != 1 || got.Error != "" {
			t.Errorf("the child is %+v", got)
		}
		later := enqueue(t, q, "c", queue.In(time.Hour))
		if got := becomes(t, q, later, queue.Delayed); got.Due.Sub(got.Enqueued) != time.Hour {
			t.Errorf("it is due %v, enqueued %v", got.Due, got.Enqueued)
		}

		g, _ := newGate(t, q, queue.With(queue.Capacity{"call": 2}), queue.Tags("x", "y"))
		g.next(t)
		if got := becomes(t, q, id, queue.Running); !strings.HasPrefix(got.By, "gate ") || got.Worker == "" || got.Since.IsZero() || got.Lost {
			t.Errorf("what runs is %+v", got)
		}
		g.open <- errors.New("out of ink")
		g.next(t)
		if got := becomes(t, q, id, queue.Running); got.Attempts != 1 || got.Error != "out of ink" {
			t.Errorf("what runs again is %+v", got)
		}
		g.open <- queue.Fail(errors.New("no paper"))
		if got := becomes(t, q, id, queue.Dead); got.Error != "no paper" || got.Attempts != 2 || string(got.Arguments) != `"a"` {
			t.Errorf("the dead one is %+v", got)
		}
		if got := becomes(t, q, child, queue.Canceled); !strings.Contains(got.Error, id) {
			t.Errorf("its child is %+v", got)
		}
		_, err = q.Look(within(t), "nobody")
		wantErr(t, err, queue.ErrUnknownJob)
	})
}

func TestAResultIsSeen(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		w := q.Worker("w")
		sendMail.Handle(w, func(context.Context, *queue.Job[mail]) (receipt, error) { return receipt{7}, nil })
		start(t, w)
		job, err := sendMail.Enqueue(within(t), q, mail{"x@y"})
		must(t, err)
		if got := becomes(t, q, job.ID(), queue.Done); string(got.Result) != `{"number":7}` {
			t.Errorf("the result is %s", got.Result)
		}
	})
}

func idsOf(t *testing.T, q *queue.Queue, f queue.Filter) []string {
	t.Helper()
	ids := []string{}
	for job, err := range q.Jobs(within(t), f) {
		must(t, err)
		ids = append(ids, job.ID)
	}
	slices.Sort(ids)
	n, err := q.Count(within(t), f)
	must(t, err)
	if n != len(ids) {
		t.Errorf("%+v counts %d, and lists %d", f, n, len(ids))
	}
	return ids
}

func TestAFilterFindsWhatItSays(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		add := func(id string, options ...queue.Option) { enqueue(t, q, id, append(options, queue.ID(id))...) }
		add("a", queue.Key("k"))
		add("b", queue.Key("l"), queue.Require("x"))
		add("c", queue.In(time.Hour), queue.Key("k"))
		add("d", queue.After(queue.RunIt, "a"))
		must(t, q.Cancel(within(t), "not needed", "b"))
		_, err := sendMail.Enqueue(within(t), q, mail{"x@y"}, queue.ID("e"))
		must(t, err)
		now := time.Now()
		for _, c := range []struct {
			filter queue.Filter
			want   string
		}{
			{queue.Filter{}, "a b c d e"},
			{queue.Filter{State: queue.Pending}, "a e"},
			{queue.Filter{State: queue.Delayed}, "c"},
			{queue.Filter{State: queue.Held}, "d"},
			{queue.Filter{State: queue.Canceled}, "b"},
			{queue.Filter{State: queue.Running}, ""},
			{queue.Filter{Kind: "mail.send"}, "e"},
			{queue.Filter{Key: "k"}, "a c"},
			{queue.Filter{Key: "k", State: queue.Pending}, "a"},
			{queue.Filter{Tag: "x"}, "b"},
			{queue.Filter{Error: "needed"}, "b"},
			{queue.Filter{Error: "need.d"}, ""},
			{queue.Filter{Since: now.Add(-time.Hour), Until: now.Add(time.Hour)}, "a b c d e"},
			{queue.Filter{Since: now.Add(time.Hour)}, ""},
			{queue.Filter{Until: now.Add(-time.Hour)}, ""},
		} {
			if got := strings.Join(idsOf(t, q, c.filter), " "); got != c.want {
				t.Errorf("%+v finds %q, want %q", c.filter, got, c.want)
			}
		}
		for _, err := range q.Jobs(within(t), queue.Filter{State: "asleep"}) {
			wantErr(t, err, queue.ErrInvalid)
		}
	})
}

func TestManyJobsAreFoundOnce(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		var requests []queue.Request
		for i := range 1500 {
			requests = append(requests, note.With("x", queue.Key(fmt.Sprint(i%3))))
		}
		_, err := q.EnqueueMany(within(t), requests...)
		must(t, err)
		if n := len(idsOf(t, q, queue.Filter{Key: "1"})); n != 500 {
			t.Errorf("%d are found, want 500", n)
		}
		n := 0
		for _, err := range q.Jobs(within(t), queue.Filter{}) { // who has seen enough goes
			must(t, err)
			if n++; n == 10 {
				break
			}
		}
		n, err = q.CancelAll(within(t), "enough", queue.Filter{Key: "1"})
		must(t, err)
		if n != 500 {
			t.Errorf("%d were canceled, want 500", n)
		}
		n, err = q.DeleteAll(within(t), queue.Filter{Kind: "note"})
		must(t, err)
		left, err := q.Count(within(t), queue.Filter{})
		must(t, err)
		if n < 1000 || left != 0 { // canceled ones of a kind without results are not kept
			t.Errorf("%d were deleted, and %d are left", n, left)
		}
	})
}

func TestAFilterChangesWhatItMeans(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		g, _ := newGate(t, q, queue.Slots(2))
		for _, id := range []string{"a", "b"} {
			enqueue(t, q, id, queue.ID(id))
		}
		g.next(t)
		g.next(t)
		g.open <- queue.Fail(errors.New("no paper"))
		g.open <- queue.Fail(errors.New("no paper"))
		becomes(t, q, "a", queue.Dead)
		becomes(t, q, "b", queue.Dead)
		n, err := q.RetryAll(within(t), queue.Filter{Error: "ink"})
		if n != 0 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		n, err = q.RetryAll(within(t), queue.Filter{Error: "paper"})
		if n != 2 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		g.next(t)
		g.next(t)
		_, err = q.DeleteAll(within(t), queue.Filter{State: queue.Running})
		wantErr(t, err, queue.ErrInvalid)
		n, err = q.DeleteAll(within(t), queue.Filter{})
		if n != 0 || err != nil {
			t.Errorf("what runs was deleted: %d %v", n, err)
		}
		n, err = q.CancelAll(within(t), "enough", queue.Filter{State: queue.Running})
		if n != 2 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		if got := becomes(t, q, "a", queue.Canceled); !strings.Contains(got.Error, "enough") {
			t.Errorf("it is %+v", got)
		}
		becomes(t, q, "b", queue.Canceled)
	})
}

func TestStatsAndWorkersAndSettings(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		g, _ := newGate(t, q, queue.With(queue.Capacity{"slot": 1, "call": 3}), queue.Tags("de"))
		for i := range 3 {
			enqueue(t, q, "x", queue.ID(fmt.Sprint(i)))
		}
		enqueue(t, q, "x", queue.In(time.Hour))
		g.next(t)
		g.open <- errors.New("once more")
		g.next(t)
		g.open <- queue.Fail(errors.New("no"))
		g.next(t)
		s, err := q.Stats(within(t))
		must(t, err)
		if len(s.Kinds) != 1 || s.Running != 1 || s.Waiting+s.Later != 2 || s.Kept != 1 {
			t.Fatalf("stats are %+v", s)
		}
		k := s.Kinds[0]
		if k.Kind != "note" || k.Running != 1 || k.Waiting != s.Waiting || k.Enqueued != 4 || k.Retried != 1 || k.Dead != 1 || k.Done != 0 {
			t.Errorf("stats are %+v", k)
		}
		if k.Waiting > 0 == k.Oldest.IsZero() {
			t.Errorf("%d wait, the oldest since %v", k.Waiting, k.Oldest)
		}
		workers, err := q.Workers(within(t))
		must(t, err)
		if len(workers) != 1 {
			t.Fatalf("workers are %+v", workers)
		}
		w := workers[0]
		if w.Name != "gate" || w.State != queue.Online || w.Capacities["slot"] != (queue.Occupied{Used: 1, Limit: 1}) ||
			w.Capacities["call"] != (queue.Occupied{Limit: 3}) || !slices.Equal(w.Kinds, []string{"note"}) ||
			!slices.Equal(w.Tags, []string{"de"}) || w.Now.Sub(w.Heard) > time.Minute || w.PID == 0 {
			t.Errorf("the worker is %+v", w)
		}

		must(t, q.Configure(within(t), queue.Limit(queue.EachKey, 2), queue.Rate(queue.OfKind("note"), time.Second, 5),
			queue.Pause(queue.OfKey("a b")), queue.Pause(queue.WholeQueue), queue.Turns(true), queue.Step(time.Second)))
		set, err := q.Settings(within(t))
		must(t, err)
		two := 2
		want := &queue.Settings{Turns: true, Step: time.Second, Crashes: 3, Scopes: []queue.ScopeSetting{
			{Scope: queue.WholeQueue, Paused: true},
			{Scope: queue.EachKey, Limit: &two},
			{Scope: queue.OfKind("note"), Every: time.Second, Burst: 5},
			{Scope: queue.OfKey("a b"), Paused: true},
		}}
		if diff := cmp.Diff(want, set, cmp.Comparer(func(a, b queue.Scope) bool { return a == b })); diff != "" {
			t.Error(diff)
		}
		must(t, q.Configure(within(t), queue.NoLimit(queue.EachKey), queue.NoRate(queue.OfKind("note"))))
		set, err = q.Settings(within(t))
		must(t, err)
		if len(set.Scopes) != 2 {
			t.Errorf("settings are %+v", set)
		}
	})
}
