package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Why a job does not run is a look-up: what stands in the way of its queue, its kind and its key comes with the job in one
// call. Only if nothing does, the workers are asked for, in bounded steps.

// Reason is what stands in the way of a job.
type Reason string

// Reasons, in the order in which they are looked for.
const (
	NotWaiting Reason = "not waiting" // it is delayed, held, runs, or has ended: see the job's State
	Paused     Reason = "paused"      // the Scope is
	Limited    Reason = "limit"       // of the Scope: Used of Most
	Throttled  Reason = "rate"        // of the Scope, until Until
	Reserved   Reason = "reserved"    // for a worker that is not there or busy, until Until
	Nobody     Reason = "no worker"   // that is online could run it: Missing
	Busy       Reason = "busy"        // are all who could: Used of Most in Scope's place
	Queued     Reason = "in turn"     // others go first, or it is being handed over
)

// Explanation says why a job does not run. Its String is one sentence.
type Explanation struct {
	Job     JobInfo   `json:"job"`
	Reason  Reason    `json:"reason"`
	Scope   Scope     `json:"scope"`   // of what is paused, limited or throttled
	Used    int       `json:"used"`    // of a limit, or of the capacity that workers lack room of
	Most    int       `json:"most"`    // of the same
	Missing string    `json:"missing"` // what no worker has: a kind, a tag or a capacity; "" if there is no worker
	Until   time.Time `json:"until,omitzero"`
	Before  int       `json:"before"` // jobs before it in its lane: those with all the same terms, of the same key
	Ahead   int       `json:"ahead"`  // lanes like its own that go first; those do not count that may not go now, of the next thousand
	Text    string    `json:"text"`
}

// String is the explanation in one sentence.
func (e *Explanation) String() string { return e.Text }

// Why says why a job does not run. ErrUnknownJob if there is none.
func (q *Queue) Why(ctx context.Context, id string) (*Explanation, error) {
	sight, err := q.sight(ctx, "explain", id)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Job: newJobInfo(sight), Before: sight.Before, Ahead: sight.Ahead}
	if e.Job.State != Pending {
		e.Reason, e.Text = NotWaiting, e.elsewhere(sight.Now)
		return e, nil
	}
	if !e.heldUp(sight) {
		workers, err := q.Workers(ctx)
		if err != nil {
			return nil, err
		}
		e.seek(workers)
		e.bound(sight)
	}
	e.Text += e.place()
	return e, nil
}

// elsewhere tells of a job that does not wait for its turn.
func (e *Explanation) elsewhere(now time.Time) string {
	j := &e.Job
	switch j.State {
	case Running:
		by := j.By
		if by == "" {
			by = "a worker that the queue does not know any more"
		}
		text := fmt.Sprintf("it runs on %s, since %s", by, ago(now.Sub(j.Since)))
		if j.Lost {
			text += "; that worker is not heard of any more, and the job goes to the next one that comes"
		}
		return text
	case Offered:
		e.Until = j.Until
		return fmt.Sprintf("it is offered to %s, who may accept it until %s, %s", j.By, clock(j.Until), in(j.Until.Sub(now)))
	case Delayed:
		e.Until = j.Due
		text := "it waits for its time, which comes " + in(j.Due.Sub(now))
		if j.Attempts > 0 {
			text = fmt.Sprintf("it failed (%d so far) and is tried again %s: %s", j.Attempts, in(j.Due.Sub(now)), j.Error)
		}
		return text
	case Held:
		if j.Parents == 0 {
			return j.Error + ": it waits to be retried by hand"
		}
		return fmt.Sprintf("it waits for %s to end", several(j.Parents, "other job"))
	case Done:
		return "it is done, since " + ago(now.Sub(j.Since))
	}
	return fmt.Sprintf("it is %s, since %s: %s", j.State, ago(now.Sub(j.Since)), j.Error)
}

// heldUp looks for what stands in the way whoever the workers are.
func (e *Explanation) heldUp(s *store.Sight) bool {
	scopes := [3]Scope{WholeQueue, OfKind(e.Job.Kind), OfKey(e.Job.Key)}
	for i, of := range s.Scopes {
		if of.Paused {
			e.Reason, e.Scope, e.Text = Paused, scopes[i], fmt.Sprintf("%s is paused", the(scopes[i]))
			return true
		}
	}
	for i, of := range s.Scopes {
		if of.Limit >= 0 && of.Running >= of.Limit {
			e.Reason, e.Scope, e.Used, e.Most = Limited, scopes[i], of.Running, of.Limit
			e.Text = fmt.Sprintf("the limit of %s is used up: %d of %d run", the(scopes[i]), of.Running, of.Limit)
			return true
		}
	}
	for i, of := range s.Scopes {
		if !of.Until.IsZero() {
			e.Reason, e.Scope, e.Until = Throttled, scopes[i], of.Until
			e.Text = fmt.Sprintf("the rate of %s lets the next one start %s", the(scopes[i]), in(of.Until.Sub(s.Now)))
			return true
		}
	}
	return false
}

// need is one thing that a worker has to have.
type need struct {
	missing string
	has     func(w *WorkerInfo) bool
}

// seek looks for a worker that could run the job, and takes away in turn those that could not.
func (e *Explanation) seek(workers []WorkerInfo) {
	j := &e.Job
	cost := j.Cost
	if len(cost) == 0 {
		cost = map[string]int{"slot": 1}
	}
	needs := []need{
		{"", func(w *WorkerInfo) bool { return w.State == Online }},
		{"kind " + j.Kind, func(w *WorkerInfo) bool { return slices.Contains(w.Kinds, j.Kind) }},
	}
	for _, tag := range j.Tags {
		needs = append(needs, need{"tag " + tag, func(w *WorkerInfo) bool { return slices.Contains(w.Tags, tag) }})
	}
	if j.For != "" {
		needs = append(needs, need{"the name " + j.For, func(w *WorkerInfo) bool { return w.Name == j.For }})
	}
	if len(j.Declined) > 0 {
		needs = append(needs, need{"not declined it", func(w *WorkerInfo) bool { return !slices.Contains(j.Declined, w.Name) }})
	}
	names := slices.Sorted(maps.Keys(cost))
	for _, name := range names {
		missing := fmt.Sprintf("capacity %s=%d", name, cost[name])
		needs = append(needs, need{missing, func(w *WorkerInfo) bool { c, ok := w.Capacities[name]; return ok && c.Limit >= cost[name] }})
	}
	for i, n := range needs {
		left := slices.DeleteFunc(slices.Clone(workers), func(w WorkerInfo) bool { return !n.has(&w) })
		if len(left) == 0 {
			e.Reason, e.Missing, e.Text = Nobody, n.missing, lacking(len(workers), needs[:i], n.missing)
			return
		}
		workers = left
	}
	for _, name := range names {
		room, used, most := false, 0, 0
		for i := range workers {
			c := workers[i].Capacities[name]
			room = room || c.Limit-c.Used >= cost[name]
			used, most = used+c.Used, most+c.Limit
		}
		if !room {
			e.Reason, e.Used, e.Most = Busy, used, most
			e.Text = fmt.Sprintf("%s: %d of %s used", busy(len(workers)), used, several(most, name))
			return
		}
	}
	e.Reason, e.Text = Queued, "it is handed to a worker next"
	if e.Before+e.Ahead > 0 {
		e.Text = "others go first"
	}
}

// bound tells for whom a job is reserved, and who is not offered it.
func (e *Explanation) bound(s *store.Sight) {
	if e.Job.For != "" {
		if e.Reason == Nobody || e.Reason == Busy {
			e.Reason = Reserved
		}
		e.Until = s.Bound
		e.Text += fmt.Sprintf("; it is reserved for %s until %s, %s", e.Job.For, clock(s.Bound), in(s.Bound.Sub(s.Now)))
	}
	if len(e.Job.Declined) > 0 {
		e.Until = s.Bound
		e.Text += fmt.Sprintf("; not offered to %s until %s, %s", strings.Join(e.Job.Declined, ", "), clock(s.Bound), in(s.Bound.Sub(s.Now)))
	}
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05") + " UTC" }

// lacking says what the workers lack that have all that was looked at before.
func lacking(workers int, before []need, missing string) string {
	if missing == "" {
		return "no worker is online"
	}
	var have []string
	for _, n := range before[1:] {
		have = append(have, n.missing)
	}
	with := ""
	if len(have) > 0 {
		with = " with " + strings.Join(have, " and ")
	}
	return fmt.Sprintf("of %s online%s, none has %s", several(workers, "worker"), with, missing)
}

// place tells who goes first.
func (e *Explanation) place() string {
	var parts []string
	if e.Before > 0 {
		parts = append(parts, several(e.Before, "job")+" before it in its lane")
	}
	if e.Ahead > 0 {
		parts = append(parts, several(e.Ahead, "lane")+" ahead of its own")
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, ", ")
}

func the(s Scope) string {
	if s == WholeQueue {
		return "the queue"
	}
	return s.String()
}

func busy(workers int) string {
	if workers == 1 {
		return "the one worker that could run it is busy"
	}
	return fmt.Sprintf("the %d workers that could run it are busy", workers)
}

func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// coarse leaves of a duration what people want to know.
func coarse(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

func ago(d time.Duration) string { return coarse(max(d, 0)).String() }

func in(d time.Duration) string {
	if d <= 0 {
		return "now: whoever calls next sees to it"
	}
	return "in " + coarse(d).String()
}
