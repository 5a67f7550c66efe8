package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/queue/history"
)

// A history leaves the server through Record, which copies it to a sink. The sink's position is the one truth about what was
// copied. On the server stays the last entry that every sink has: a reader begins with the entry that its sink ends with, so
// it notices whatever is missing in between, also when the server has lost everything and begun anew.

// DefaultHistoryKeep is how many entries the server keeps at most that a sink has not taken. A call of a producer or a worker
// that changes something makes one.
const DefaultHistoryKeep = 100_000

// awaitHistory is for how long one request waits for the next entry: no client stops waiting before that, and so long a
// Record takes to end. recordMost is how many entries are copied at once, gatherHistory for how long more of them may come after
// each step: so a busy queue has them copied, synced and acknowledged many at a time, and one entry after a pause goes at once.
const (
	awaitHistory  = time.Second
	gatherHistory = 10 * time.Millisecond
	recordMost    = 200
)

// RecordOption is an option of Record.
type RecordOption func(*recording) error

// SinkName tells the sinks of a queue apart, where there are several: the server keeps what one of them has not taken yet.
func SinkName(name string) RecordOption {
	return func(r *recording) error {
		r.name = name
		return store.CheckName("sink", name, 128)
	}
}

// HistoryKeep is how many entries the server keeps at most, from when a sink begins: older ones are removed, whether sinks have
// them or not, so that a sink that stands still does not fill the server. 1,000 to 100,000,000.
func HistoryKeep(entries int) RecordOption {
	return func(r *recording) error {
		if entries < 1000 || entries > 100_000_000 {
			return fmt.Errorf("%w: %d entries of history are not between 1,000 and 100,000,000", ErrInvalid, entries)
		}
		r.keep = int64(entries)
		return nil
	}
}

// UntilCaughtUp has Record return when the sink has all that there is.
func UntilCaughtUp() RecordOption {
	return func(r *recording) error {
		r.once = true
		return nil
	}
}

// OnRecorded is called after each step with the ID of the last entry that the sink has, and how many were copied.
func OnRecorded(recorded func(id string, entries int)) RecordOption {
	return func(r *recording) error {
		r.recorded = recorded
		return nil
	}
}

// OnRecordTrouble is called each time that Record waits, because the server or what the sink keeps entries in is out of reach.
func OnRecordTrouble(trouble func(error)) RecordOption {
	return func(r *recording) error {
		r.trouble = trouble
		return nil
	}
}

// recording is one call of Record.
type recording struct {
	*Queue
	sink     history.Sink
	name     string
	keep     int64
	once     bool
	recorded func(id string, entries int)
	trouble  func(error)
	last     string // the ID of the last entry that the sink has, or of the first that it is to have
	number   int64  // of the last one; 0: it is not known yet
	fresh    bool   // the sink has none
}

// Record copies the history of the queue to a sink until ctx ends, and each entry once: it may be stopped and begun again at
// any time. With the first sink the queue begins to keep a history; a sink that has nothing is told all that the queue
// has, while the queue goes on. A sink has one Record at a time.
//
// It waits while the server is out of reach, or a sink that was in reach is not any more (history.ErrUnavailable), and returns
// nil when ctx ends. It fails with history.ErrGap when the server has not what follows in the sink: because it has lost its data,
// then Rebuild makes the queue again and Record goes on behind that; or because the sink stood still for so long that entries
// were removed (HistoryKeep), then it needs a new sink. It fails with history.ErrOtherQueue and history.ErrOtherVersion, and with
// the errors of the sink.
func (q *Queue) Record(ctx context.Context, sink history.Sink, options ...RecordOption) error {
	r := &recording{Queue: q, sink: sink, name: "sink", keep: DefaultHistoryKeep, recorded: func(string, int) {}, trouble: func(error) {}}
	for _, option := range options {
		if err := option(r); err != nil {
			return fmt.Errorf("record %q: %w", q.name, err)
		}
	}
	if err := q.enter(); err != nil {
		return err
	}
	defer q.tasks.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.stopping, cancel)()
	err := r.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *recording) run(ctx context.Context) error {
	if err := r.find(ctx); err != nil {
		return err
	}
	for failures := 0; ; {
		err := r.step(ctx)
		if err == nil {
			failures = 0
			continue
		}
		if errors.Is(err, errCaughtUp) {
			return nil
		}
		if ctx.Err() != nil || !ledger.Retryable(err) && !errors.Is(err, history.ErrUnavailable) {
			return err
		}
		failures++
		r.trouble(err)
		select {
		case <-time.After(r.backoff(failures)):
		case <-ctx.Done():
		}
	}
}

// find reads where the sink is.
func (r *recording) find(ctx context.Context) error {
	kept, err := r.sink.Queue(ctx)
	if err == nil && kept != "" && kept != r.Name() {
		err = fmt.Errorf("%w: the sink keeps that of %q", history.ErrOtherQueue, kept)
	}
	if err == nil {
		r.last, err = r.sink.Position(ctx)
	}
	if err != nil {
		return fmt.Errorf("record %q: %w", r.Name(), err)
	}
	r.fresh = r.last == ""
	return nil
}

// step copies what there is, or waits for a while if there is nothing.
func (r *recording) step(ctx context.Context) error {
	if r.last == "" {
		first, err := r.store.BeginHistory(ctx, r.keep)
		if err != nil {
			return err
		}
		r.last = first
	}
	events, err := r.store.ReadHistory(ctx, r.last, recordMost)
	if err != nil {
		return err
	}
	entries, number, err := r.follow(events)
	if err != nil {
		return fmt.Errorf("record %q: %w", r.Name(), err)
	}
	if len(entries) == 0 {
		r.number = number
		if r.once {
			return errCaughtUp
		}
		return r.store.AwaitHistory(ctx, r.last, awaitHistory)
	}
	if err := r.sink.Append(ctx, r.Name(), entries); err != nil {
		return fmt.Errorf("record %q: %w", r.Name(), err)
	}
	r.last, r.number, r.fresh = entries[len(entries)-1].ID, number, false
	if err := r.store.TookHistory(ctx, r.name, r.last); err != nil {
		return err
	}
	r.recorded(r.last, len(entries))
	if len(events) < recordMost {
		select {
		case <-time.After(gatherHistory):
		case <-ctx.Done():
		}
	}
	return nil
}

// follow returns what the sink has not of what was read, and the number of the last entry. The first that was read is the one
// that the sink ends with.
func (r *recording) follow(events []store.Event) (entries []history.Entry, number int64, err error) {
	number = r.number
	for i, e := range events {
		came, version, err := store.Parse([]byte(e.Data))
		if err != nil || came == nil {
			return nil, 0, unreadable(e.ID, version, err)
		}
		switch {
		case i > 0 && came.Number != number+1:
			return nil, 0, fmt.Errorf("%w: behind %s there is %s, and %d entries are not", history.ErrGap, events[i-1].ID, e.ID, came.Number-number-1)
		case i == 0 && e.ID == r.last && (r.number == 0 || came.Number == number):
			if !r.fresh {
				number = came.Number
				continue
			}
		case i == 0 && came.Rebuilt(r.last):
		case i == 0:
			return nil, 0, r.lost()
		}
		number = came.Number
		entries = append(entries, history.Entry{ID: e.ID, Data: []byte(e.Data)})
	}
	if len(events) == 0 {
		return nil, 0, r.lost()
	}
	return entries, number, nil
}

func (r *recording) lost() error {
	return fmt.Errorf("%w: the server has not entry %s any more, with which the sink ends: if the server has lost its data, "+
		"make the queue again from the sink (signalbox queue rebuild); otherwise begin a new sink", history.ErrGap, r.last)
}

// unreadable is an entry of another version, or one that is damaged.
func unreadable(id string, version int64, err error) error {
	if err != nil {
		return fmt.Errorf("%w: entry %s: %w", history.ErrDamaged, id, err)
	}
	return fmt.Errorf("%w: entry %s has version %d: use the version of Signalbox that wrote it, or a newer one", history.ErrOtherVersion, id, version)
}

// HistoryInfo is what a server has of a queue's history.
type HistoryInfo struct {
	On      bool              `json:"on"`
	Entries int               `json:"entries"` // on the server: what some sink has not taken yet, and one more
	Keep    int               `json:"keep"`    // how many it keeps at most
	Sinks   map[string]string `json:"sinks"`   // by their names, the ID of the last entry that each has
}

// History says what the server has of the queue's history.
func (q *Queue) History(ctx context.Context) (*HistoryInfo, error) {
	s, err := q.store.HistoryState(ctx)
	if err != nil {
		return nil, err
	}
	return &HistoryInfo{s.On, int(s.Length), int(s.Keep), s.Sinks}, nil
}

// EndHistory has the queue keep no history any more. What sinks have stays theirs; to record again, begin new ones.
func (q *Queue) EndHistory(ctx context.Context) error { return q.store.EndHistory(ctx) }

// ForgetSink has the server keep nothing any more for a sink that is given up, by its SinkName ("sink" without one).
func (q *Queue) ForgetSink(ctx context.Context, name string) error {
	known, err := q.store.ForgetSink(ctx, name)
	if err == nil && !known {
		err = fmt.Errorf("queue %q: %w: it has no sink %q", q.name, ErrInvalid, name)
	}
	return err
}

// errCaughtUp ends a Record that was to end then.
var errCaughtUp = errors.New("the sink has all that there is")
