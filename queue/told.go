package queue

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/queue/history"
)

// A history says what was written. What happened follows from it: a job is looked at before and after each entry that
// writes about it, and the difference is the event. So nothing is told twice, and no transition knows of events. Only what became
// of workers is said as such, because no queue is made from it.

// HistoryEvent is something that happened to a job or to a worker, as the queue's history has it.
type HistoryEvent struct {
	Entry  string         `json:"entry"` // ID of the entry that says so
	At     time.Time      `json:"at"`    // by the server's clock, to the millisecond
	What   Told           `json:"what"`
	Worker *HistoryWorker `json:"worker,omitempty"` // whom it happened to; of a job's event who had the job or has it now
	Job    *HistoryJob    `json:"job,omitempty"`    // nil: it happened to a worker
	Reason string         `json:"reason,omitempty"` // of WorkerAway, JobRetried, JobDead and JobCanceled, if there is one
}

// Told is what a HistoryEvent tells.
type Told string

// What happens to workers. Of each that comes there is a WorkerLoggedIn or a WorkerKnown, and when it has gone a WorkerLoggedOut or
// a WorkerVanished.
const (
	WorkerKnown     Told = "known"      // it was there already when the history began
	WorkerLoggedIn  Told = "logged in"  // its State says how: online, away
	WorkerOnline    Told = "online"     // again
	WorkerAway      Told = "away"       // it takes nothing new; Reason says so if it has let an offer pass
	WorkerChanged   Told = "changed"    // it has other tags, or runs other kinds
	WorkerDraining  Told = "draining"   // it takes nothing new, and will end
	WorkerLoggedOut Told = "logged out" // it has ended
	// Its lease has ended, and At says when. The entry is that of the first call of anybody that has found it, which may come
	// later; or that of a Rebuild, and At its time: who was there has to come back.
	WorkerVanished Told = "vanished"
)

// What happens to jobs.
const (
	JobKnown    Told = "job known" // it was there already when the history began
	JobEnqueued Told = "enqueued"  // by a producer or a schedule, or run again after it had ended
	JobOffered  Told = "offered"   // to Worker
	JobRunning  Told = "running"   // on Worker, which was given it or has accepted it
	JobDone     Told = "done"      // also one that has ended otherwise and of which nothing is kept
	JobRetried  Told = "retried"   // it has failed, and waits for its next attempt
	JobDead     Told = "dead"      // it has failed for good
	JobCanceled Told = "canceled"
	JobDeleted  Told = "deleted"  // before it ran
	JobCrashed  Told = "crashed"  // Worker was lost over it; it waits, or is dead next
	JobReturned Told = "returned" // Worker has not done it: it waits again
)

// HistoryWorker is who a worker was.
type HistoryWorker struct {
	ID         string         `json:"id"` // another each time that it logs in
	Name       string         `json:"name,omitempty"`
	Host       string         `json:"host,omitempty"`
	PID        int            `json:"pid,omitempty"`
	State      WorkerState    `json:"state,omitempty"`
	Kinds      []string       `json:"kinds,omitempty"`
	Tags       []string       `json:"tags,omitempty"`
	Capacities map[string]int `json:"capacities,omitempty"` // as of the last change of its state
	OfferFor   time.Duration  `json:"offer_for_ns,omitempty"`
}

// HistoryJob is which job it was.
type HistoryJob struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Key     string `json:"key,omitempty"`
	Attempt int    `json:"attempt"` // 1 for the first
}

// HistoryReader reads in a sink what has happened. It goes through the history from its beginning, and keeps the jobs and the
// workers that there were in memory.
type HistoryReader struct {
	sink    history.Sink
	state   *store.Replay
	workers map[string]*HistoryWorker // who is there
	begun   time.Time                 // when the history began
	rest    []HistoryEvent            // of the last entry, if its reader has stopped
}

// NewHistoryReader reads a sink that Record fills, or has filled. One of files may be filled meanwhile (files.ReadOnly).
func NewHistoryReader(sink history.Sink) *HistoryReader {
	return &HistoryReader{sink: sink, state: store.NewReplay(), workers: map[string]*HistoryWorker{}}
}

// Events gives what has happened in the order in which the server has written it, up to what the sink has now. Called again it goes
// on behind the last event that it gave: so a follower calls it now and then. A HistoryReader is used by one goroutine at a time.
//
// It ends with the first error: those of the sink, history.ErrGap, ErrDamaged and ErrOtherVersion. A history of before workers
// were in it is read as well: its jobs have workers of which only the ID is known.
func (r *HistoryReader) Events(ctx context.Context) iter.Seq2[HistoryEvent, error] {
	return func(yield func(HistoryEvent, error) bool) {
		if !r.give(yield) {
			return
		}
		for e, err := range r.sink.Read(ctx, r.state.ID) {
			if err == nil {
				err = r.take(ctx, e)
			}
			if err != nil {
				yield(HistoryEvent{}, fmt.Errorf("read a history: %w", err))
				return
			}
			if !r.give(yield) {
				return
			}
		}
	}
}

func (r *HistoryReader) give(yield func(HistoryEvent, error) bool) bool {
	for len(r.rest) > 0 {
		event := r.rest[0]
		r.rest = r.rest[1:]
		if !yield(event, nil) {
			return false
		}
	}
	return true
}

// seen is a job at one moment.
type seen struct {
	*store.Sight
	token string
}

func (r *HistoryReader) see(ids []string) []seen {
	all := make([]seen, len(ids))
	for i, id := range ids {
		all[i].Sight, all[i].token = r.state.Sight(id)
	}
	return all
}

func (r *HistoryReader) take(ctx context.Context, entry history.Entry) error {
	came, version, err := store.Parse(entry.Data)
	if err != nil || came == nil {
		return unreadable(entry.ID, version, err)
	}
	ms, _ := idOf(entry.ID)
	at := time.UnixMilli(int64(ms)) //nolint:gosec // milliseconds of a time
	if r.state.Begins(came) {
		clear(r.workers)
		r.begun = at
	}
	ids := came.Jobs()
	if came.Rebuilds() {
		ids = slices.Sorted(maps.Keys(r.state.Hashes["claims"]))
	}
	state := r.state
	if upto := came.RebuiltAs(); upto != "" { // what came between was undone
		if state, err = (&rebuilding{sink: r.sink, progress: func(Rebuilt) {}}).replay(ctx, upto, false); err != nil {
			return err
		}
		ids = r.differing(state)
		state.ID, state.Last, state.Clock = r.state.ID, r.state.Last, max(r.state.Clock, state.Clock)
	}
	before, whole := r.see(ids), r.state.Whole
	r.state = state
	follows, err := state.Take(entry.ID, came)
	if err != nil {
		return fmt.Errorf("%w: entry %s: %w", history.ErrDamaged, entry.ID, err)
	}
	if !follows {
		return fmt.Errorf("%w: entry %s does not follow %s", history.ErrGap, entry.ID, cmp.Or(state.ID, "the beginning"))
	}
	t := telling{r, HistoryEvent{Entry: entry.ID, At: at}, whole}
	for i := range came.Workers {
		t.came(&came.Workers[i])
	}
	for i, after := range r.see(ids) {
		t.job(ids[i], before[i], after)
	}
	for i := range came.Workers {
		t.left(&came.Workers[i])
	}
	if came.Rebuilds() {
		t.allLeft()
	}
	return nil
}

// differing are the jobs that there are in this or in another state.
func (r *HistoryReader) differing(other *store.Replay) []string {
	all := map[string]bool{}
	for _, state := range []*store.Replay{r.state, other} {
		for _, name := range []string{"jobs", "ended"} {
			for id := range state.Hashes[name] {
				all[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// telling makes events of one entry.
type telling struct {
	*HistoryReader
	HistoryEvent
	whole bool // the history has said all that there was before it
}

func (t *telling) tell(what Told, w *HistoryWorker, job *HistoryJob, reason string) {
	e := t.HistoryEvent
	e.What, e.Worker, e.Job, e.Reason = what, w, job, reason
	t.rest = append(t.rest, e)
}

// came tells who has come, or is at something else from now on.
func (t *telling) came(m *store.WorkerMark) {
	if !m.Vanished.IsZero() || m.State == "gone" {
		return
	}
	was, there := t.workers[m.ID]
	seen := newWorkerInfo(&m.WorkerSight)
	w := &HistoryWorker{
		ID: m.ID, Name: seen.Name, Host: seen.Host, PID: seen.PID, State: presenceOf(&m.WorkerSight), Kinds: m.Kinds, Tags: m.Tags,
		Capacities: map[string]int{}, OfferFor: m.OfferFor,
	}
	for _, room := range m.Room {
		w.Capacities[room.Name] = room.Limit
	}
	t.workers[m.ID] = w
	switch {
	case !there && m.Here:
		t.tell(WorkerKnown, w, nil, "")
	case !there:
		t.tell(WorkerLoggedIn, w, nil, "")
	case was.State == w.State && slices.Equal(was.Kinds, w.Kinds) && slices.Equal(was.Tags, w.Tags):
	case was.State == w.State:
		t.tell(WorkerChanged, w, nil, "")
	case w.State == Online:
		t.tell(WorkerOnline, w, nil, "")
	case w.State == Leaving:
		t.tell(WorkerDraining, w, nil, "")
	case m.State == "missed":
		t.tell(WorkerAway, w, nil, "it has let an offer pass")
	default:
		t.tell(WorkerAway, w, nil, "")
	}
}

// left tells who has gone.
func (t *telling) left(m *store.WorkerMark) {
	w := t.workers[m.ID]
	if w == nil || m.Vanished.IsZero() && m.State != "gone" {
		return
	}
	delete(t.workers, m.ID)
	if m.Vanished.IsZero() {
		t.tell(WorkerLoggedOut, w, nil, "")
		return
	}
	at := t.At
	t.At = m.Vanished
	t.tell(WorkerVanished, w, nil, "")
	t.At = at
}

// allLeft: the server has lost its data, and knows nobody.
func (t *telling) allLeft() {
	for _, id := range slices.Sorted(maps.Keys(t.workers)) {
		t.tell(WorkerVanished, t.workers[id], nil, "")
	}
	clear(t.workers)
}

func (t *telling) job(id string, was, is seen) {
	if was.Sight == nil && is.Sight == nil || was.Sight != nil && is.Sight == nil && ended(was.State) {
		return // what was kept of it is over
	}
	now := is.Sight
	if now == nil {
		now = was.Sight
	}
	job := &HistoryJob{ID: id, Kind: now.Record.Lane.Kind, Key: now.Record.Lane.Key, Attempt: now.Record.Attempts + 1}
	switch {
	case was.Sight == nil && !t.whole && !is.Record.Enqueued.After(t.begun):
		t.tell(JobKnown, nil, job, "")
		was = seen{&store.Sight{State: is.State}, ""}
	case was.Sight == nil, ended(was.State) && is.Sight != nil && !ended(is.State):
		t.tell(JobEnqueued, nil, job, "")
	}
	switch {
	case was.token != "" && was.token != is.token:
		job.Attempt = was.Record.Attempts + 1
		t.over(job, was, is)
	case is.Sight == nil:
		t.tell(JobDeleted, nil, job, "")
	case ended(is.State) && (was.Sight == nil || was.State != is.State):
		t.tell(endOf(is.State), nil, job, reasonOf(is.Sight))
	}
	if is.token == "" || is.token == was.token && is.State == was.State {
		return
	}
	next := *job
	next.Attempt = is.Record.Attempts + 1
	if is.State == "o" {
		t.tell(JobOffered, t.worker(is.Worker), &next, "")
	} else {
		t.tell(JobRunning, t.worker(is.Worker), &next, "")
	}
}

// over tells what became of a job that a worker had.
func (t *telling) over(job *HistoryJob, was, is seen) {
	w := t.worker(was.Worker)
	if is.Sight == nil {
		what := JobDone
		if was.State == "o" {
			what = JobDeleted
		}
		t.tell(what, w, job, "")
		return
	}
	if is.Record.Crashes > was.Record.Crashes {
		t.tell(JobCrashed, w, job, "")
	}
	switch {
	case ended(is.State):
		t.tell(endOf(is.State), w, job, reasonOf(is.Sight))
	case is.Record.Attempts > was.Record.Attempts:
		t.tell(JobRetried, w, job, is.Record.Error)
	case is.Record.Crashes == was.Record.Crashes:
		t.tell(JobReturned, w, job, "")
	}
}

func (t *telling) worker(id string) *HistoryWorker {
	if w := t.workers[id]; w != nil {
		return w
	}
	return &HistoryWorker{ID: id}
}

func ended(state string) bool { return state == "d" || state == "x" || state == "k" }

func endOf(state string) Told {
	switch state {
	case "x":
		return JobDead
	case "k":
		return JobCanceled
	}
	return JobDone
}

// reasonOf is why a job has failed or was canceled. Of one that is done this is its result, and no reason.
func reasonOf(s *store.Sight) string {
	if s.State == "d" {
		return ""
	}
	return s.Result
}
