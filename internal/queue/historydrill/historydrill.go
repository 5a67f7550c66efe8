// Package historydrill kills a queue's server in the middle of its work, and has the queue made again from its history: for
// each kind of sink the same.
//
// Handlers write down what they run. What the history had of each job is read from the sink by itself, and the two are held
// against each other: what was done by then never runs again, all that was not runs once, and nothing else is there.
package historydrill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
)

// Queue is the name of the queue.
const Queue = "app"

const (
	jobs     = 3000
	patience = 2 * time.Minute
)

var work = queue.Define[int, queue.None]("work", queue.Backoff(func(int) time.Duration { return 50 * time.Millisecond }))

// drill is one server with its queue.
type drill struct {
	*testing.T
	server *difftest.Server
	open   func() (history.Sink, error)

	mu   sync.Mutex
	ran  map[string]int // how often each job's handler has ended since the server was started last
	some chan struct{}  // a job has ended
	kept atomic.Int64   // how often a sink has kept something
}

// Run is the drill. open opens the sink of Queue; one is closed before the next is opened.
func Run(t *testing.T, open func() (history.Sink, error)) {
	d := &drill{T: t, server: difftest.Redis(t), open: open, ran: map[string]int{}, some: make(chan struct{}, 1)}
	q := d.queue()
	for i := range 3 {
		d.worker(q, fmt.Sprint("w", i))
	}
	d.crash(q)
	before := d.replayed()
	d.mu.Lock()
	clear(d.ran)
	d.mu.Unlock()

	d.server.Restart()
	made := d.rebuild(q)
	d.Logf("%d of %d jobs were to be made again, of which %d ran: %+v", len(before.Hashes["jobs"]), jobs, made.Again, made)
	stop := d.record(q)
	d.until(func() bool { return len(d.ran) >= len(before.Hashes["jobs"]) && d.idle(q) })
	d.judge(before)
	stop()
	if after := d.replayed(); len(after.Hashes["jobs"]) > 0 {
		t.Errorf("in the end the history has %d jobs", len(after.Hashes["jobs"]))
	}
}

func (d *drill) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *drill) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	d.Cleanup(cancel)
	return ctx
}

func (d *drill) queue() *queue.Queue {
	q, err := queue.Open(d.ctx(), "redis://"+d.server.Addr, Queue, queue.Lease(2*time.Second))
	d.must(err)
	d.Cleanup(func() { d.must(q.Close()) })
	return q
}

// worker runs jobs until the test ends, whatever becomes of the server.
func (d *drill) worker(q *queue.Queue, name string) {
	w := q.Worker(name, queue.Slots(5))
	work.Handle(w, func(_ context.Context, j *queue.Job[int]) (queue.None, error) {
		if j.Args%7 == 0 && j.Attempt == 1 {
			return queue.None{}, errors.New("once more")
		}
		d.mu.Lock()
		d.ran[j.ID]++
		d.mu.Unlock()
		select {
		case d.some <- struct{}{}:
		default:
		}
		return queue.None{}, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	d.Cleanup(func() {
		cancel()
		d.must(<-ended)
	})
}

// record copies the history until it is stopped, and is ended and begun again now and then.
func (d *drill) record(q *queue.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = d.recordSome(ctx, q)
		}
		ended <- err
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			d.Error(err)
		}
		if ctx := d.ctx(); d.alive(q) {
			sink := d.sink()
			d.must(q.Record(ctx, sink, queue.UntilCaughtUp()))
			d.must(sink.Close())
		}
	}
}

func (d *drill) sink() history.Sink {
	sink, err := d.open()
	d.must(err)
	return sink
}

// recordSome ends after some steps, without having told the server of the last one.
func (d *drill) recordSome(ctx context.Context, q *queue.Queue) error {
	sink, err := d.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	steps := 0
	err = q.Record(ctx, &ending{sink, func() {
		d.kept.Add(1)
		if steps++; steps == 20 {
			cancel()
		}
	}})
	return errors.Join(err, sink.Close())
}

// ending is a sink that tells of each step before the follower does.
type ending struct {
	history.Sink
	step func()
}

func (e *ending) Append(ctx context.Context, of string, entries []history.Entry) error {
	err := e.Sink.Append(ctx, of, entries)
	if err == nil {
		e.step()
	}
	return err
}

// crash kills the server when about half of the jobs have run.
func (d *drill) crash(q *queue.Queue) {
	stop := d.record(q)
	d.until(func() bool { return d.kept.Load() > 0 })
	pushing, cancel := context.WithCancel(d.ctx())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for from := 0; from < jobs && pushing.Err() == nil; from += 50 {
			var batch []queue.Request
			for i := from; i < from+50; i++ {
				batch = append(batch, work.With(i, queue.ID(fmt.Sprint("job ", i)), queue.Key(fmt.Sprint(i%10))))
			}
			if _, err := q.EnqueueMany(pushing, batch...); err != nil {
				return // the server is gone
			}
		}
	}()
	d.until(func() bool { return len(d.ran) > jobs/2 })
	d.server.Kill()
	cancel()
	<-ended
	stop()
}

func (d *drill) until(holds func() bool) {
	d.Helper()
	for ctx := d.ctx(); ; {
		d.mu.Lock()
		is := holds()
		d.mu.Unlock()
		if is {
			return
		}
		select {
		case <-d.some:
		case <-time.After(20 * time.Millisecond): // the end of the last one is told to the server after this
		case <-ctx.Done():
			d.Fatalf("after %v, %d jobs have run", patience, len(d.ran))
		}
	}
}

func (d *drill) alive(q *queue.Queue) bool {
	_, err := q.History(d.ctx())
	return err == nil
}

func (d *drill) idle(q *queue.Queue) bool {
	s, err := q.Stats(d.ctx())
	d.must(err)
	return s.Waiting+s.Running+s.Later == 0
}

// rebuild makes the queue again: nothing but workers has come meanwhile.
func (d *drill) rebuild(q *queue.Queue) *queue.Rebuilt {
	sink := d.sink()
	made, err := q.Rebuild(d.ctx(), sink)
	d.must(err)
	d.must(sink.Close())
	_, err = q.Check(d.ctx(), false)
	d.must(err)
	return made
}

// replayed is what the sink has of the queue.
func (d *drill) replayed() *store.Replay {
	sink := d.sink()
	state := store.NewReplay()
	for e, err := range sink.Read(d.ctx(), "") {
		d.must(err)
		came, _, err := store.Parse(e.Data)
		d.must(err)
		follows, err := state.Take(e.ID, came)
		d.must(err)
		if !follows {
			d.Fatalf("entry %s does not follow", e.ID)
		}
	}
	d.must(sink.Close())
	return state
}

// judge compares what ran on the second server with what the history of the first one says.
func (d *drill) judge(before *store.Replay) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range before.Hashes["jobs"] {
		if d.ran[id] != 1 {
			d.Errorf("%s was not done, and ran %d times after that", id, d.ran[id])
		}
	}
	for id, n := range d.ran {
		if _, there := before.Hashes["jobs"][id]; !there {
			d.Errorf("%s ran %d times, and by the history it was done, or never there", id, n)
		}
	}
}
