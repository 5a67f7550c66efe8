package historydrill

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
)

// Prune has a sink's beginning removed, up to a base, and looks whether the same queue is made from it as before: as it was in the
// end, and at a time behind the base. Before the base it cannot be made any more.
func Prune(t *testing.T, sink history.Sink, prune func(upto string) error) {
	d := &drill{T: t, server: difftest.Redis(t)}
	q := d.queue()
	d.must(q.Configure(d.ctx(), queue.Limit(queue.EachKey, 2)))
	d.must(q.Schedule(d.ctx(), "daily", queue.Cron("5 1 * * *", "Europe/Berlin"), queue.RunLast, work.With(1)))
	d.enqueue(q, "first", 0)
	d.keep(q, sink)
	if upto, entries, err := queue.Prunable(d.ctx(), sink, time.Now()); err != nil || upto != "" || entries != 0 {
		t.Errorf("before there is a base: %q, %d, %v", upto, entries, err)
	}
	early := d.now()
	d.enqueue(q, "second", 0)
	d.must(q.Delete(d.ctx(), "first 3"))
	d.must(q.HistoryBase(d.ctx()))
	d.keep(q, sink)
	late := d.now()
	d.enqueue(q, "third", time.Hour)
	d.must(q.Cancel(d.ctx(), "no more", "second 5"))
	d.keep(q, sink)

	if upto, _, err := queue.Prunable(d.ctx(), sink, early); err != nil || upto != "" {
		t.Errorf("with a base that is too young: %q, %v", upto, err)
	}
	whole, then := d.made(sink), d.made(sink, queue.Until(late))
	upto, entries, err := queue.Prunable(d.ctx(), sink, late)
	d.must(err)
	if upto == "" || entries < 3 {
		t.Fatalf("nothing can be pruned: %q, %d", upto, entries)
	}
	all := d.count(sink)
	d.must(prune(upto))
	if left := d.count(sink); left != all-entries {
		t.Errorf("of %d entries %d were to go, and there are %d", all, entries, left)
	}
	d.same("in the end", whole, d.made(sink))
	d.same("at a time behind the base", then, d.made(sink, queue.Until(late)))
	_, err = d.empty().Rebuild(d.ctx(), sink, queue.AsCopy(), queue.Until(early))
	if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "the history begins after") {
		t.Errorf("at a time before the base: %v", err)
	}
	for e, err := range queue.NewHistoryReader(sink).Events(d.ctx()) {
		d.must(err)
		if e.Job != nil && strings.HasPrefix(e.Job.ID, "second") && e.What == queue.JobEnqueued {
			t.Errorf("%s was enqueued before what is left begins", e.Job.ID)
		}
	}

	d.enqueue(q, "fourth", 0)
	d.keep(q, sink) // the follower does not mind
	if before, _, err := queue.Prunable(d.ctx(), sink, time.Now()); err != nil || before != "" {
		t.Errorf("what was pruned is to be pruned again: %q, %v", before, err)
	}
}

// Gone has a sink's place go away in the middle of a Record, and come back.
func Gone(t *testing.T, sink history.Sink, goAway func(), comeBack func() error) {
	d := &drill{T: t, server: difftest.Redis(t)}
	q := d.queue()
	d.enqueue(q, "first", 0)
	d.keep(q, sink)
	ctx, cancel := context.WithCancel(d.ctx())
	ended, recorded, trouble := make(chan error, 1), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- q.Record(ctx, sink, queue.OnRecorded(func(string, int) {
			select {
			case recorded <- struct{}{}:
			default: // it was told
			}
		}), queue.OnRecordTrouble(func(err error) {
			select {
			case trouble <- err:
			default: // it was told
			}
		}))
	}()
	d.enqueue(q, "second", 0)
	select {
	case <-recorded:
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-d.ctx().Done():
		t.Fatal("it records nothing")
	}
	goAway()
	d.enqueue(q, "third", 0)
	select {
	case err := <-trouble:
		if !errors.Is(err, history.ErrUnavailable) {
			t.Errorf("it waits because of %v", err)
		}
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-d.ctx().Done():
		t.Fatal("it noticed nothing")
	}
	d.must(comeBack())
	d.until(func() bool {
		info, err := q.History(d.ctx())
		d.must(err)
		return info.Entries == 1
	})
	cancel()
	d.must(<-ended)
	d.same("in the end", d.inventory(q), d.made(sink))
}

func (d *drill) enqueue(q *queue.Queue, name string, in time.Duration) {
	d.Helper()
	for i := range 20 {
		id := name + " " + string(rune('0'+i%10))
		_, err := work.Enqueue(d.ctx(), q, i, queue.ID(id+strings.Repeat("0", i/10)), queue.Key(name), queue.In(in), queue.Retain(time.Hour))
		d.must(err)
	}
}

// keep has the sink keep all that there is.
func (d *drill) keep(q *queue.Queue, sink history.Sink) {
	d.Helper()
	d.must(q.Record(d.ctx(), sink, queue.UntilCaughtUp()))
}

// now is a time between two calls, by the server.
func (d *drill) now() time.Time {
	d.Helper()
	time.Sleep(2 * time.Millisecond) // what was before and what follows are of other milliseconds
	defer time.Sleep(2 * time.Millisecond)
	return time.Now() // it is of the same machine
}

func (d *drill) count(sink history.Sink) (n int) {
	d.Helper()
	for _, err := range sink.Read(d.ctx(), "") {
		d.must(err)
		n++
	}
	return n
}

// empty is the queue on a server that has nothing of it.
func (d *drill) empty() *queue.Queue {
	other := &drill{T: d.T, server: difftest.Redis(d.T)}
	return other.queue()
}

// made is what a queue has that is made from a sink.
func (d *drill) made(sink history.Sink, options ...queue.RebuildOption) []string {
	d.Helper()
	q := d.empty()
	_, err := q.Rebuild(d.ctx(), sink, append(options, queue.AsCopy())...)
	d.must(err)
	return d.inventory(q)
}

func (d *drill) inventory(q *queue.Queue) (lines []string) {
	d.Helper()
	add := func(what any) {
		text, err := json.Marshal(what)
		d.must(err)
		lines = append(lines, string(text))
	}
	for _, state := range []queue.State{queue.Pending, queue.Delayed, queue.Held, queue.Done, queue.Dead, queue.Canceled} {
		for j, err := range q.Jobs(d.ctx(), queue.Filter{State: state}) {
			d.must(err)
			add(j)
		}
	}
	schedules, err := q.Schedules(d.ctx())
	d.must(err)
	settings, err := q.Settings(d.ctx())
	d.must(err)
	add(schedules)
	add(settings)
	slices.Sort(lines)
	return lines
}

func (d *drill) same(when string, want, got []string) {
	d.Helper()
	if !slices.Equal(want, got) {
		d.Errorf("%s the queue has\n%s\nand had\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
