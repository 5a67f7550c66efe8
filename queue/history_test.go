package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

func segments(t *testing.T, folder string) *files.Sink {
	t.Helper()
	sink, err := files.Open(folder)
	must(t, err)
	return sink
}

// record copies the history until stop is called, which has the sink have all of it, and closes it.
func record(t *testing.T, q *queue.Queue, sink history.Sink, options ...queue.RecordOption) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- q.Record(ctx, sink, options...) }()
	return func() {
		t.Helper()
		cancel()
		must(t, <-ended)
		must(t, q.Record(within(t), sink, append(options, queue.UntilCaughtUp())...))
		must(t, sink.Close())
	}
}

// inventory is all that a queue has, with those that run as waiting.
func inventory(t *testing.T, q *queue.Queue) (lines []string) {
	t.Helper()
	for _, state := range []queue.State{queue.Pending, queue.Delayed, queue.Held, queue.Offered, queue.Running, queue.Done, queue.Dead, queue.Canceled} {
		for j, err := range q.Jobs(within(t), queue.Filter{State: state}) {
			must(t, err)
			if j.State == queue.Running || j.State == queue.Offered {
				j.State, j.Since, j.Until = queue.Pending, time.Time{}, time.Time{}
			}
			lines = append(lines, fmt.Sprint(j.ID, j.State, j.Kind, j.Key, j.Attempts, j.Crashes, j.Enqueued, j.Since, j.Due, j.For, j.Parents,
				j.Error, string(j.Arguments), string(j.Result), j.Progress, j.Log))
		}
	}
	schedules, err := q.Schedules(within(t))
	must(t, err)
	settings, err := q.Settings(within(t))
	must(t, err)
	slices.Sort(lines)
	for _, other := range []any{schedules, settings} {
		text, err := json.Marshal(other)
		must(t, err)
		lines = append(lines, string(text))
	}
	return lines
}

// crowd fills a queue with something of everything. Two jobs run until release is called.
func crowd(t *testing.T, q *queue.Queue) (release func()) {
	t.Helper()
	must(t, q.Configure(within(t), queue.Limit(queue.OfKey("tenant"), 1), queue.Rate(queue.OfKind("mail.send"), time.Hour, 3)))
	must(t, q.Schedule(within(t), "daily", queue.Cron("5 1 * * *", "Europe/Berlin"), queue.RunLast, note.With("daily")))
	w := q.Worker("w", queue.Slots(2))
	goOn, running := make(chan struct{}), make(chan struct{}, 2)
	note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
		switch j.Args {
		case "runs":
			running <- struct{}{}
			<-goOn
		case "fails":
			return queue.None{}, queue.Fail(errors.New("no"))
		case "again":
			return queue.None{}, queue.Retry(errors.New("busy"), time.Hour)
		}
		return queue.None{}, ctx.Err()
	})
	sendMail.Handle(w, func(context.Context, *queue.Job[mail]) (receipt, error) { return receipt{7}, nil })
	stop := start(t, w)
	job, err := sendMail.Enqueue(within(t), q, mail{"x@y"}, queue.Retain(time.Hour))
	must(t, err)
	_, err = job.Wait(within(t))
	must(t, err)
	dead, err := note.Enqueue(within(t), q, "fails", queue.Retain(time.Hour))
	must(t, err)
	_, err = dead.Wait(within(t))
	wantErr(t, err, queue.ErrDead)
	again := enqueue(t, q, "again")
	for info, err := q.Look(within(t), again); info == nil || info.State != queue.Delayed; info, err = q.Look(within(t), again) {
		must(t, err)
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		enqueue(t, q, "runs")
		<-running
	}
	parent := enqueue(t, q, "parent", queue.Priority(3))
	enqueue(t, q, "child", queue.After(queue.CancelIt, parent))
	enqueue(t, q, "later", queue.In(time.Hour), queue.Priority(-2))
	enqueue(t, q, "unique", queue.Unique("u", queue.Alive))
	for i := range 20 {
		enqueue(t, q, fmt.Sprint("tenant's ", i), queue.Key("tenant"))
	}
	return func() {
		close(goOn)
		stop()
	}
}

// A server that has lost everything has each job again in the state that it was in, and the queue goes on: those that ran are
// offered again, nothing that was done is done again, and the history has it all in one.
func TestAQueueIsMadeAgainFromItsHistory(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q := open(t, server)
		release := crowd(t, q) // before there is a history
		stop := record(t, q, segments(t, folder))
		enqueue(t, q, "with a history")
		stop()
		before := inventory(t, q)
		must(t, server.FlushAll(within(t)).Err())
		release()

		sink := segments(t, folder)
		must(t, server.FlushAll(within(t)).Err()) // what the worker left
		made, err := q.Rebuild(within(t), sink)
		must(t, err)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Errorf("the queue before and after (-before +after):\n%s", diff)
		}
		if made.Jobs != 28 || made.Again != 2 || made.Entries == 0 || made.Events == 0 {
			t.Errorf("made is %+v", made)
		}
		found, err := q.Check(within(t), false)
		must(t, err)
		if len(found) > 0 {
			t.Errorf("there is %v", found)
		}
		_, err = q.Rebuild(within(t), sink)
		wantErr(t, err, queue.ErrNotEmpty)

		stop = record(t, q, sink)
		want := []string{"parent", "runs", "runs", "child", "unique"}
		for i := range 20 {
			want = append(want, fmt.Sprint("tenant's ", i))
		}
		if diff := cmp.Diff(append(want, "with a history"), run(t, q, len(want)+1)); diff != "" {
			t.Errorf("these ran:\n%s", diff)
		}
		stop()
		before = inventory(t, q)
		must(t, server.FlushAll(within(t)).Err())
		_, err = q.Rebuild(within(t), segments(t, folder))
		must(t, err)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Errorf("the queue after a second time (-before +after):\n%s", diff)
		}
	})
}

// flaky fails every other call of Append, before or after it has kept what it was given.
type flaky struct {
	*files.Sink
	calls int
}

var errFlaky = errors.New("the disk is gone")

func (f *flaky) Append(ctx context.Context, of string, entries []history.Entry) error {
	f.calls++
	if f.calls%4 == 1 {
		return errFlaky
	}
	if err := f.Sink.Append(ctx, of, entries[:min(len(entries), 3)]); err != nil {
		return err
	}
	if f.calls%4 == 3 || len(entries) > 3 {
		return errFlaky
	}
	return nil
}

// Whatever a follower dies of, the sink has each entry once: it can be read from its beginning to its end.
func TestARecordIsExact(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q := open(t, server)
		ctx, cancel := context.WithCancel(within(t))
		var tasks sync.WaitGroup
		tasks.Go(func() {
			defer cancel()
			for n := 0; ; n++ {
				sink := &flaky{segments(t, folder), n}
				err := q.Record(ctx, sink)
				must(t, sink.Close())
				if err == nil {
					return
				}
				if !errors.Is(err, errFlaky) {
					t.Error(err)
					return
				}
			}
		})
		for i := range 100 {
			enqueue(t, q, fmt.Sprint(i))
		}
		run(t, q, 60)
		cancel()
		tasks.Wait()
		record(t, q, segments(t, folder))()
		before := inventory(t, q)
		must(t, server.FlushAll(within(t)).Err())
		_, err := q.Rebuild(within(t), segments(t, folder))
		must(t, err)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Error(diff)
		}
	})
}

// As it was at some time; and what was done after that is in the history all the same.
func TestAQueueIsMadeAsItWas(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q := open(t, server)
		record(t, q, segments(t, folder))()
		stop := record(t, q, segments(t, folder))
		enqueue(t, q, "a")
		enqueue(t, q, "b")
		before := inventory(t, q)
		then := serverTime(t, server)
		time.Sleep(2 * time.Millisecond) // what follows is of a later millisecond
		enqueue(t, q, "c")
		run(t, q, 3)
		stop()
		rebuild := func(options ...queue.RebuildOption) {
			t.Helper()
			must(t, server.FlushAll(within(t)).Err())
			sink := segments(t, folder)
			_, err := q.Rebuild(within(t), sink, options...)
			must(t, err)
			must(t, sink.Close())
			if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		}
		rebuild(queue.Until(then), queue.AsCopy())
		rebuild(queue.Until(then))
		stop = record(t, q, segments(t, folder))
		enqueue(t, q, "d")
		stop()
		before = inventory(t, q)
		rebuild()

		must(t, server.FlushAll(within(t)).Err())
		_, err := q.Rebuild(within(t), segments(t, folder), queue.Until(then.Add(-time.Hour)))
		wantErr(t, err, queue.ErrInvalid)
	})
}

func serverTime(t *testing.T, server redis.UniversalClient) time.Time {
	t.Helper()
	now, err := server.Time(within(t)).Result()
	must(t, err)
	return now
}

// A Rebuild that was stopped leaves nothing that could be taken for a queue, and can be made again.
func TestARebuildThatWasStopped(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q := open(t, server)
		stop := record(t, q, segments(t, folder))
		for i := range 10 {
			enqueue(t, q, fmt.Sprint(i))
		}
		stop()
		before := inventory(t, q)
		must(t, server.FlushAll(within(t)).Err())
		sink := segments(t, folder)
		ctx, cancel := context.WithCancel(within(t))
		_, err := q.Rebuild(ctx, sink, queue.OnRebuilding(func(r queue.Rebuilt) {
			if r.Jobs > 0 {
				cancel()
			}
		}))
		wantErr(t, err, context.Canceled)
		_, err = q.Stats(within(t))
		wantErr(t, err, queue.ErrUnavailable)
		if !strings.Contains(err.Error(), "signalbox queue rebuild") {
			t.Errorf("the error says nothing of what to do: %v", err)
		}
		_, err = q.Rebuild(within(t), sink)
		must(t, err)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Error(diff)
		}
	})
}

// edited is a history of which something is wrong.
type edited struct {
	*files.Sink
	edit func(i int, e history.Entry) []history.Entry
}

func (e *edited) Read(ctx context.Context, after string) iter.Seq2[history.Entry, error] {
	return func(yield func(history.Entry, error) bool) {
		i := 0
		for entry, err := range e.Sink.Read(ctx, after) {
			for _, one := range e.edit(i, entry) {
				if !yield(one, err) {
					return
				}
			}
			i++
		}
	}
}

func TestWhatIsWrongWithAHistoryIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q := open(t, server)
		sink := segments(t, folder)
		_, err := q.Rebuild(within(t), sink)
		wantErr(t, err, queue.ErrInvalid) // it has none
		stop := record(t, q, sink)
		for i := range 5 {
			enqueue(t, q, fmt.Sprint(i))
		}
		stop()
		before := inventory(t, q)
		sink = segments(t, folder)

		other, err := queue.New(server, "other")
		must(t, err)
		_, err = other.Rebuild(within(t), sink)
		wantErr(t, err, history.ErrOtherQueue)
		wantErr(t, other.Record(within(t), sink), history.ErrOtherQueue)
		must(t, other.Close())
		_, err = q.Rebuild(within(t), sink)
		wantErr(t, err, queue.ErrNotEmpty)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Errorf("it was changed: %s", diff)
		}

		must(t, server.FlushAll(within(t)).Err())
		for name, c := range map[string]struct {
			edit func(i int, e history.Entry) []history.Entry
			want error
		}{
			"with a hole": {func(i int, e history.Entry) []history.Entry { return []history.Entry{e}[:min(1, (i-3)*(i-3))] }, history.ErrGap},
			"of another version": {func(_ int, e history.Entry) []history.Entry {
				e.Data = slices.Clone(e.Data)
				e.Data[1] = 2
				return []history.Entry{e}
			}, history.ErrOtherVersion},
			"cut": {func(_ int, e history.Entry) []history.Entry {
				e.Data = e.Data[:len(e.Data)-1]
				return []history.Entry{e}
			}, history.ErrDamaged},
			"that is not whole": {func(i int, e history.Entry) []history.Entry { return []history.Entry{e}[:max(1-i, 0)] }, history.ErrGap},
		} {
			_, err := q.Rebuild(within(t), &edited{sink, c.edit})
			if !errors.Is(err, c.want) {
				t.Errorf("a history %s: %v", name, err)
			}
			if n := server.DBSize(within(t)).Val(); n != 0 {
				t.Errorf("a history %s has left %d keys", name, n)
			}
		}
		wantErr(t, q.Record(within(t), sink), history.ErrGap) // the server has lost what the sink ends with
	})
}

// The server keeps what some sink has not taken yet, until it is forgotten.
func TestSeveralSinks(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		enqueue(t, q, "a")
		record(t, q, segments(t, t.TempDir()), queue.SinkName("first"))()
		folder := t.TempDir()
		ctx, cancel := context.WithCancel(within(t))
		must(t, q.Record(ctx, segments(t, folder), queue.SinkName("second"), queue.OnRecorded(func(string, int) { cancel() })))
		enqueue(t, q, "b")
		info, err := q.History(within(t))
		must(t, err)
		if len(info.Sinks) != 2 || info.Entries < 3 || info.Keep != queue.DefaultHistoryKeep {
			t.Errorf("the history is %+v", info)
		}
		must(t, q.ForgetSink(within(t), "first"))
		wantErr(t, q.ForgetSink(within(t), "first"), queue.ErrInvalid)
		must(t, q.EndHistory(within(t)))
		info, err = q.History(within(t))
		must(t, err)
		if info.On || info.Entries != 0 {
			t.Errorf("the history is %+v", info)
		}
	})
}

// Who waits for a job that the server has lost is told so, and can wait again: while the queue is made, and after that.
func TestWhoWaitsForAJobThatTheServerHasLost(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		sink := segments(t, t.TempDir())
		job, err := note.Enqueue(within(t), q, "a", queue.Retain(time.Hour))
		must(t, err)
		must(t, q.Record(within(t), sink, queue.UntilCaughtUp()))
		must(t, server.FlushAll(within(t)).Err())
		_, err = job.Wait(within(t))
		wantErr(t, err, queue.ErrUnknownJob)
		if !strings.Contains(err.Error(), "signalbox queue rebuild") {
			t.Errorf("the error says nothing of what to do: %v", err)
		}

		ctx, cancel := context.WithCancel(within(t))
		_, err = q.Rebuild(ctx, sink, queue.OnRebuilding(func(r queue.Rebuilt) {
			if r.Jobs > 0 {
				cancel()
			}
		}))
		wantErr(t, err, context.Canceled)
		waited := make(chan error, 1)
		go func() {
			_, err := job.Wait(within(t))
			waited <- err
		}()
		_, err = q.Rebuild(within(t), sink)
		must(t, err)
		run(t, q, 1)
		must(t, <-waited)
		must(t, sink.Close())
	})
}

// A queue without a history gets no base.
func TestABaseOfNoHistory(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		err := q.HistoryBase(within(t))
		wantErr(t, err, queue.ErrInvalid)
		if info, err := q.History(within(t)); err != nil || info.On {
			t.Errorf("it has one now: %+v, %v", info, err)
		}
	})
}

// What a queue was made from, as it was at some time, is never pruned: the history goes on from there.
func TestPruningKeepsWhatTheQueueWasMadeFrom(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		folder := t.TempDir()
		q := open(t, server)
		stop := record(t, q, segments(t, folder))
		enqueue(t, q, "a")
		stop()
		then := serverTime(t, server)
		time.Sleep(2 * time.Millisecond) // what follows is of a later millisecond
		stop = record(t, q, segments(t, folder))
		enqueue(t, q, "b")
		must(t, q.HistoryBase(within(t)))
		stop()
		sink := segments(t, folder)
		upto, _, err := queue.Prunable(within(t), sink, time.Now().Add(time.Hour))
		must(t, err)
		if upto == "" {
			t.Fatal("nothing can be pruned")
		}
		must(t, server.FlushAll(within(t)).Err())
		_, err = q.Rebuild(within(t), sink, queue.Until(then))
		must(t, err)
		must(t, q.Record(within(t), sink, queue.UntilCaughtUp()))
		upto, _, err = queue.Prunable(within(t), sink, time.Now().Add(time.Hour))
		must(t, err)
		if upto != "" {
			t.Errorf("the queue was made from what is before %s, which is to be pruned", upto)
		}
		must(t, q.HistoryBase(within(t)))
		must(t, q.Record(within(t), sink, queue.UntilCaughtUp()))
		before := inventory(t, q)
		upto, _, err = queue.Prunable(within(t), sink, time.Now().Add(time.Hour))
		must(t, err)
		must(t, files.Prune(folder, upto))
		must(t, server.FlushAll(within(t)).Err())
		_, err = q.Rebuild(within(t), sink)
		must(t, err)
		if diff := cmp.Diff(before, inventory(t, q)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		must(t, sink.Close())
	})
}
