package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/queue/history"
)

// ErrNotEmpty: a queue was to be made from its history on a server that has jobs of it already, or results. Nothing was
// changed.
var ErrNotEmpty = errors.New("the queue is not empty")

// RebuildOption is an option of Rebuild.
type RebuildOption func(*rebuilding)

// Until makes the queue as it was at some time, by the server's clock then.
func Until(at time.Time) RebuildOption { return func(r *rebuilding) { r.until = at } }

// AsCopy makes a queue to look at, beside the one that is alive on another server: it keeps no history, and the sink stays
// the other one's.
func AsCopy() RebuildOption { return func(r *rebuilding) { r.asCopy = true } }

// OnRebuilding is called now and then while a queue is made. What is in r grows.
func OnRebuilding(progress func(r Rebuilt)) RebuildOption {
	return func(r *rebuilding) { r.progress = progress }
}

// Rebuilt is what was made.
type Rebuilt struct {
	Entries int       `json:"entries"` // of the history, that were read
	Events  int       `json:"events"`  // what those said: fields and members that were written
	Last    time.Time `json:"last"`    // when the last of them was written
	Jobs    int       `json:"jobs"`    // on the server again
	Again   int       `json:"again"`   // of those, how many ran: they are offered again
}

// rebuilding is one call of Rebuild.
type rebuilding struct {
	*Queue
	sink       history.Sink
	until      time.Time
	asCopy     bool
	progress   func(Rebuilt)
	made       Rebuilt
	lastID     string // of the history, whatever Until says
	wholeID    string // of the first entry behind Until at which it has said all that the queue had
	lastNumber int64
}

// Rebuild makes the queue from its history, on a server that has none of its jobs: every job in the state that it was in,
// those that ran waiting again; results, what producers were answered last, and settings, limits and schedules, which
// replace those that there are. Workers may be online meanwhile: they are refused, and go on when it is done. Then the
// history goes on behind what the sink has: start Record again.
//
// What the queue did after the last entry that the sink has is lost. A Rebuild that was stopped on its way leaves a queue
// that refuses all calls; call it again. It keeps all jobs in the memory of this process, and reads the whole history.
//
// It fails with ErrNotEmpty, and with history.ErrOtherQueue, ErrOtherVersion, ErrGap and ErrDamaged, before it has changed
// anything. Counters of Stats begin anew.
func (q *Queue) Rebuild(ctx context.Context, sink history.Sink, options ...RebuildOption) (*Rebuilt, error) {
	r := &rebuilding{Queue: q, sink: sink, progress: func(Rebuilt) {}}
	for _, option := range options {
		option(r)
	}
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.tasks.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(q.stopping, func() { cancel(ErrClosed) })()
	state, err := r.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("rebuild %q: %w", q.name, err)
	}
	var on store.Continue
	if !r.asCopy {
		on = store.Continue{Number: r.lastNumber + 1, Keep: max(state.Keep, 1000), After: r.lastID}
	}
	r.made.Again = len(state.Hashes["claims"])
	told, err := q.store.Restore(ctx, state, rand.Text(), on, func(jobs int) {
		r.made.Jobs = jobs
		r.progress(r.made)
	})
	var there *store.NotEmptyError
	if errors.As(err, &there) {
		return nil, fmt.Errorf("%w: %w; nothing was changed: for a copy use an empty server (--copy --url); if this queue is to be replaced, empty it first", ErrNotEmpty, err)
	}
	for len(told) > 0 && err == nil { // they were to be canceled while they ran
		some := told[:min(len(told), store.MostChanges)]
		told = told[len(some):]
		_, err = q.store.Change(ctx, "cancel", "canceled", "", some)
	}
	if err != nil {
		return nil, err
	}
	return &r.made, nil
}

// read goes through the history.
func (r *rebuilding) read(ctx context.Context) (*store.Replay, error) {
	kept, err := r.sink.Queue(ctx)
	switch {
	case err != nil:
		return nil, err
	case kept == "":
		return nil, fmt.Errorf("%w: the sink has no history", ErrInvalid)
	case kept != r.Name():
		return nil, fmt.Errorf("%w: the sink keeps that of %q: open the queue by that name", history.ErrOtherQueue, kept)
	}
	upto := ""
	if !r.until.IsZero() {
		upto = strconv.FormatInt(r.until.UnixMilli(), 10) + "-" + strconv.FormatUint(math.MaxUint64, 10)
	}
	state, err := r.replay(ctx, upto, true)
	switch {
	case err != nil:
		return nil, err
	case !state.Whole && r.wholeID != "":
		return nil, fmt.Errorf("%w: the history begins after %v: it has all of the queue from %v on", ErrInvalid,
			r.until.UTC().Format(time.RFC3339Nano), timeOf(r.wholeID).Format(time.RFC3339Nano))
	case !state.Whole:
		return nil, fmt.Errorf("%w: the queue had not said yet all that it had when its history began", history.ErrGap)
	}
	r.made.Last = timeOf(state.ID).Local()
	return state, nil
}

// replay returns the state after the entries up to an ID, "" for all. The outermost call reads the rest too, for where the
// history goes on.
func (r *rebuilding) replay(ctx context.Context, upto string, outermost bool) (*store.Replay, error) {
	state := store.NewReplay()
	for e, err := range r.sink.Read(ctx, "") {
		if err != nil {
			return nil, err
		}
		over := upto != "" && behind(e.ID, upto)
		if over && !outermost {
			break
		}
		came, version, err := store.Parse(e.Data)
		if err != nil || came == nil {
			return nil, unreadable(e.ID, version, err)
		}
		if outermost {
			r.lastID, r.lastNumber = e.ID, came.Number
			if over && r.wholeID == "" && came.BaseEnds() != "" {
				r.wholeID = e.ID
			}
		}
		if over {
			continue
		}
		if before := came.RebuiltAs(); before != "" { // what came between was undone
			was := state
			if state, err = r.replay(ctx, before, false); err != nil {
				return nil, err
			}
			state.ID, state.Last, state.Clock = was.ID, was.Last, max(was.Clock, state.Clock)
		}
		follows, err := state.Take(e.ID, came)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %s: %w", history.ErrDamaged, e.ID, err)
		}
		if !follows {
			return nil, fmt.Errorf("%w: entry %s does not follow %s", history.ErrGap, e.ID, cmp.Or(state.ID, "the beginning"))
		}
		r.made.Entries, r.made.Events = r.made.Entries+1, r.made.Events+came.Events()
		if r.made.Entries%10000 == 0 {
			r.progress(r.made)
		}
	}
	return state, nil
}

// idOf takes the ID of an entry apart.
func idOf(id string) (ms, seq uint64) {
	first, second, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(first, 10, 64) // a sink gives no other IDs
	seq, _ = strconv.ParseUint(second, 10, 64)
	return ms, seq
}

// timeOf is when the server wrote an entry.
func timeOf(id string) time.Time {
	ms, _ := idOf(id)
	return time.UnixMilli(int64(ms)).UTC() //nolint:gosec // milliseconds of a time
}

// behind says that an entry comes after another.
func behind(id, other string) bool {
	ms, seq := idOf(id)
	otherMs, otherSeq := idOf(other)
	return cmp.Or(cmp.Compare(ms, otherMs), cmp.Compare(seq, otherSeq)) > 0
}
