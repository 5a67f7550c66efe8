package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Seeing jobs. Everything here reads in steps that are bounded whatever the backlog, and changes nothing. What has come due
// since anybody last called the server, such as the end of the lease of the only worker, shows as it was.

// State is where a job is.
type State string

// The states of a job.
const (
	Pending  State = "waiting"  // it may run when its turn comes: Why says what it waits for
	Delayed  State = "delayed"  // until its time comes, the first or the next after it failed
	Held     State = "held"     // by other jobs that it waits for
	Offered  State = "offered"  // to a worker, which has not accepted it yet
	Running  State = "running"  // a worker has it
	Done     State = "done"     // its result is kept
	Dead     State = "dead"     // it failed for good
	Canceled State = "canceled" // by an operator, or with a job that it waited for
)

// letters are what the states are called on the server.
var letters = map[State]string{
	Pending: "w", Delayed: "l", Held: "h", Offered: "o", Running: "c", Done: "d", Dead: "x", Canceled: "k",
}

const (
	lettersAlive = "wlhoc"
	lettersEnded = "dxk"
)

func stateOf(letter string) State {
	for state, l := range letters {
		if l == letter {
			return state
		}
	}
	return State(letter)
}

// JobInfo is a job at one moment. Times are the server's.
type JobInfo struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Key       string          `json:"key,omitempty"`
	Tags      []string        `json:"tags,omitempty"` // that its worker has to have
	Cost      map[string]int  `json:"cost,omitempty"` // nothing is one slot
	State     State           `json:"state"`
	Attempts  int             `json:"attempts"` // how often it failed
	Crashes   int             `json:"crashes"`  // how many workers died over it
	Enqueued  time.Time       `json:"enqueued"`
	Since     time.Time       `json:"since,omitzero"`     // when a worker was given it, or when it ended
	Due       time.Time       `json:"due,omitzero"`       // of a delayed one
	Until     time.Time       `json:"until,omitzero"`     // of one that is offered
	For       string          `json:"for,omitempty"`      // the worker that it is reserved for
	Declined  []string        `json:"declined,omitempty"` // the workers that are not offered it for a while
	Parents   int             `json:"parents,omitempty"`  // of a held one: how many it still waits for
	Worker    string          `json:"worker,omitempty"`   // the id of the one that runs it
	By        string          `json:"by,omitempty"`       // who that is: name, host and process id
	Lost      bool            `json:"lost,omitempty"`     // that worker's lease is over, and nobody has come for the job yet
	Error     string          `json:"error,omitempty"`    // of its last attempt, or why it was canceled
	Codec     string          `json:"codec,omitempty"`    // of arguments and result, which are shown as base64; "" is JSON
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Progress  *Progress       `json:"progress,omitempty"` // what its handler has said, see Job.Progress
	Log       []LogLine       `json:"log,omitempty"`      // the end of it, see Job.Logf

	order   int64
	encoded []byte // arguments
}

// Look returns a job by its id. ErrUnknownJob if there is none, or none any more: see Retain.
func (q *Queue) Look(ctx context.Context, id string) (*JobInfo, error) {
	sight, err := q.sight(ctx, "look at", id)
	if err != nil {
		return nil, err
	}
	info := newJobInfo(sight)
	return &info, nil
}

func (q *Queue) sight(ctx context.Context, doing, id string) (*store.Sight, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.tasks.Done()
	sight, err := q.store.Look(ctx, id, "")
	if err == nil && sight == nil {
		err = fmt.Errorf("%s job %s of queue %q: %w: it may have ended, and not be kept (see Retain), or the server has lost its data", doing, idText(id), q.name, ErrUnknownJob)
	}
	return sight, err
}

func newJobInfo(s *store.Sight) JobInfo {
	r := &s.Record
	info := JobInfo{
		ID: s.ID, Kind: r.Lane.Kind, Key: r.Lane.Key, Tags: r.Lane.Tags, State: stateOf(s.State), Attempts: r.Attempts,
		Crashes: r.Crashes, Enqueued: r.Enqueued, Since: s.Since, Due: s.Due, Worker: s.Worker, By: whoIs(s.Info),
		Error: r.Error, order: r.Order,
	}
	if r.Lane.Cost != "" {
		info.Cost = costOf(r.Lane.Cost)
	}
	if env, err := parseEnvelope(r.Rest); err == nil { // one that does not decode fails when it runs
		var codec string
		info.encoded, codec = env.arguments()
		info.Codec, info.Arguments = env.Codec, shown(codec, info.encoded)
	}
	noted := parseNotes(r.Note)
	info.Progress, info.Log = noted.Progress, noted.Log
	if info.For = nameFromServer(r.For); len(r.Declined) > 0 {
		for _, name := range r.Declined {
			info.Declined = append(info.Declined, nameFromServer(name))
		}
	}
	switch info.State {
	case Offered:
		info.Until, info.Due = s.Due, time.Time{}
	case Running:
		info.Lost = !s.Lease.After(s.Now)
	case Held:
		f := strings.Fields(r.Error) // all 2 cancel; see settle in prelude.lua
		info.Error = ""
		if len(f) == 3 {
			info.Parents, _ = strconv.Atoi(f[1]) // 0 if somebody else wrote it
		} else {
			info.Error = "a job that it waited for did not succeed"
		}
	case Done, Dead, Canceled:
		info.end(info.State, s.Result)
	}
	return info
}

// end is what is told of a job that has ended: its result, or why.
func (j *JobInfo) end(state State, text string) {
	j.State = state
	switch {
	case text == "":
	case state == Done:
		j.Result = shown(cmp.Or(j.Codec, JSON.Name()), []byte(text))
	default:
		j.Error = text
	}
}

// whoIs is "mailer web1:42", from what a worker says of itself.
func whoIs(text string) string {
	var info workerInfo
	if json.Unmarshal([]byte(text), &info) != nil || info.Name == "" { // of a worker that is not known any more
		return ""
	}
	return fmt.Sprintf("%s %s:%d", info.Name, info.Host, info.PID)
}

// Filter says which jobs are meant: those for which everything holds that it says. The zero Filter means all.
type Filter struct {
	State State
	Kind  string
	Key   string
	Tag   string    // one that its worker has to have
	Error string    // a part of its error
	Since time.Time // enqueued then or later
	Until time.Time // enqueued before
}

func (f *Filter) check() error {
	if _, known := letters[f.State]; f.State != "" && !known {
		return fmt.Errorf("%w: there is no state %q: it is waiting, delayed, held, offered, running, done, dead or canceled", ErrInvalid, f.State)
	}
	return nil
}

func (f *Filter) sieve(brief bool) *store.Sieve {
	return &store.Sieve{
		States: letters[f.State], Kind: f.Kind, Key: f.Key, Tag: f.Tag, Error: f.Error, Since: f.Since, Until: f.Until, Brief: brief,
	}
}

// Jobs returns the jobs that a filter means, in no order. It goes through all jobs that there are (O(n), in steps of some
// 100, each one call), so a job that changes its state meanwhile is seen in one of the two or, if it is new, perhaps not at
// all; none is seen twice. After an error nothing more comes.
func (q *Queue) Jobs(ctx context.Context, f Filter) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		seen := map[string]bool{}
		err := q.scan(ctx, f, false, func(found []*store.Sight) (bool, error) {
			for _, s := range found {
				if seen[s.ID] {
					continue
				}
				seen[s.ID] = true
				if !yield(newJobInfo(s), nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(JobInfo{}, err)
		}
	}
}

// scan goes through the jobs that a filter means until do says that it is enough. A job may come twice.
func (q *Queue) scan(ctx context.Context, f Filter, brief bool, do func([]*store.Sight) (more bool, err error)) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("list the jobs of queue %q: %w", q.name, err)
	}
	if err := q.enter(); err != nil {
		return err
	}
	defer q.tasks.Done()
	for _, hasEnded := range []bool{false, true} {
		within := lettersAlive
		if hasEnded {
			within = lettersEnded
		}
		if !strings.Contains(within, letters[f.State]) {
			continue
		}
		for cursor := "0"; ; {
			found, next, err := q.store.Scan(ctx, hasEnded, cursor, f.sieve(brief))
			if err != nil {
				return err
			}
			if len(found) > 0 {
				if more, err := do(found); err != nil || !more {
					return err
				}
			}
			if next == "0" {
				break
			}
			cursor = next
		}
	}
	return nil
}

// Count returns how many jobs a filter means. It goes through all jobs, as Jobs does; Stats counts without that.
func (q *Queue) Count(ctx context.Context, f Filter) (int, error) {
	seen := map[string]bool{}
	err := q.scan(ctx, f, true, func(found []*store.Sight) (bool, error) {
		for _, s := range found {
			seen[s.ID] = true
		}
		return true, nil
	})
	return len(seen), err
}

// CancelAll cancels the jobs that a filter means and that have not ended, as Cancel does, and returns how many. Count says
// beforehand how many there are. Those told hear after each step how many it were so far.
func (q *Queue) CancelAll(ctx context.Context, cause string, f Filter, told ...func(canceled int)) (int, error) {
	return q.changeAll(ctx, "cancel", cause, f, lettersAlive, told)
}

// DeleteAll deletes the jobs that a filter means and that do not run, and returns how many.
func (q *Queue) DeleteAll(ctx context.Context, f Filter, told ...func(deleted int)) (int, error) {
	return q.changeAll(ctx, "delete", "deleted", f, "wlho"+lettersEnded, told)
}

// RetryAll runs those of a filter again that are dead or canceled, and at once those that are delayed or held; those that
// are done only if the filter names that state. It returns how many.
func (q *Queue) RetryAll(ctx context.Context, f Filter, told ...func(retried int)) (int, error) {
	states := "lhxk"
	if f.State == Done {
		states = "d"
	}
	return q.changeAll(ctx, "retry", "", f, states, told)
}

// changeAll changes the jobs that a filter means and that are in one of the states, when they are found and still when they
// are changed.
func (q *Queue) changeAll(
	ctx context.Context, verb, text string, f Filter, states string, hear []func(int),
) (changed int, err error) {
	if f.State != "" {
		if !strings.Contains(states, letters[f.State]) {
			if err := f.check(); err != nil || f.State != Running {
				return 0, err
			}
			return 0, fmt.Errorf("%s jobs of queue %q: %w: those that run cannot be: cancel them first", verb, q.name, ErrInvalid)
		}
		states = letters[f.State]
	}
	told := map[string]bool{} // one that runs and was told stays where it is, and may be found again
	err = q.scan(ctx, f, true, func(found []*store.Sight) (bool, error) {
		var ids []string
		for _, s := range found {
			if strings.Contains(states, s.State) && !told[s.ID] {
				told[s.ID] = true
				ids = append(ids, s.ID)
			}
		}
		n, err := q.change(ctx, verb, text, states, ids)
		changed += n
		for _, tell := range hear {
			if n > 0 {
				tell(changed)
			}
		}
		return true, err
	})
	return changed, err
}
