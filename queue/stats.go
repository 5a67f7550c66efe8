package queue

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Stats is what there is in a queue, counted in one call whose work does not grow with the backlog.
type Stats struct {
	Now     time.Time   `json:"now"`
	Waiting int         `json:"waiting"`
	Running int         `json:"running"`
	Offered int         `json:"offered"` // to workers that have not accepted yet
	Later   int         `json:"later"`   // delayed, or held by other jobs
	Kept    int         `json:"kept"`    // ended: dead, canceled, or done with a result that is kept
	Kinds   []KindStats `json:"kinds"`   // by name, at most 1,000
}

// KindStats are those of one kind. The totals count since the queue was last quiet for a day.
type KindStats struct {
	Kind     string    `json:"kind"`
	Waiting  int       `json:"waiting"`
	Running  int       `json:"running"`
	Oldest   time.Time `json:"oldest,omitzero"` // when the job was enqueued that is next; zero if none may run
	Enqueued int       `json:"enqueued"`
	Done     int       `json:"done"`
	Retried  int       `json:"retried"` // failed, to be tried again
	Dead     int       `json:"dead"`
	Canceled int       `json:"canceled"`
	Crashed  int       `json:"crashed"` // returned by the death of a worker
	Replayed int       `json:"replayed"`

	// What became of offers, see OfferFor.
	Offered   int `json:"offered,omitempty"`
	Accepted  int `json:"accepted,omitempty"`
	Declined  int `json:"declined,omitempty"`
	Missed    int `json:"missed,omitempty"`    // their time was over
	Withdrawn int `json:"withdrawn,omitempty"` // the worker left, or the job was canceled
}

// Stats counts.
func (q *Queue) Stats(ctx context.Context) (*Stats, error) {
	s, err := q.stats(ctx)
	if err != nil {
		return nil, err
	}
	out := &Stats{
		Now: s.Now, Waiting: s.Waiting, Running: max(s.Running-s.Offered, 0), Offered: s.Offered, Later: max(s.Jobs-s.Waiting-s.Running, 0), Kept: s.Kept,
		Kinds: []KindStats{},
	}
	for _, k := range s.Kinds {
		total := func(what string) int {
			n, err := strconv.Atoi(s.Counters[what+"\t"+k.Kind])
			if err != nil {
				return 0 // there was none
			}
			return n
		}
		out.Kinds = append(out.Kinds, KindStats{
			Kind: k.Kind, Waiting: k.Waiting, Running: k.Running, Oldest: k.Next, Enqueued: total("enqueued"), Done: total("done"),
			Retried: total("retried"), Dead: total("dead"), Canceled: total("cancelled"), Crashed: total("crashed"),
			Replayed: total("replayed"), Offered: total("offered"), Accepted: total("accepted"), Declined: total("declined"),
			Missed: total("missed"), Withdrawn: total("withdrawn"),
		})
	}
	slices.SortFunc(out.Kinds, func(a, b KindStats) int { return strings.Compare(a.Kind, b.Kind) })
	return out, nil
}

// add makes s the sum of both.
func (s *Stats) add(other *Stats) {
	s.Now = other.Now
	s.Waiting += other.Waiting
	s.Running += other.Running
	s.Offered += other.Offered
	s.Later += other.Later
	s.Kept += other.Kept
	for _, k := range other.Kinds {
		at, known := slices.BinarySearchFunc(s.Kinds, k.Kind, func(mine KindStats, kind string) int { return strings.Compare(mine.Kind, kind) })
		if known {
			s.Kinds[at].add(&k)
		} else {
			s.Kinds = slices.Insert(s.Kinds, at, k)
		}
	}
}

func (k *KindStats) add(other *KindStats) {
	if k.Oldest.IsZero() || !other.Oldest.IsZero() && other.Oldest.Before(k.Oldest) {
		k.Oldest = other.Oldest
	}
	k.Waiting += other.Waiting
	k.Running += other.Running
	k.Enqueued += other.Enqueued
	k.Done += other.Done
	k.Retried += other.Retried
	k.Dead += other.Dead
	k.Canceled += other.Canceled
	k.Crashed += other.Crashed
	k.Replayed += other.Replayed
	k.Offered += other.Offered
	k.Accepted += other.Accepted
	k.Declined += other.Declined
	k.Missed += other.Missed
	k.Withdrawn += other.Withdrawn
}

func (q *Queue) stats(ctx context.Context) (*store.Stats, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.tasks.Done()
	return q.store.Stats(ctx)
}

// Settings are what operators have set, see Configure.
type Settings struct {
	Turns     bool           `json:"turns"`
	Step      time.Duration  `json:"step_ns"` // what a priority of 1 is worth
	Crashes   int            `json:"crashes"` // after which a job is dead
	Placement Order          `json:"placement,omitempty"`
	Scopes    []ScopeSetting `json:"scopes"` // for which something is set
}

// ScopeSetting is what is set for a scope.
type ScopeSetting struct {
	Scope  Scope         `json:"scope"`
	Paused bool          `json:"paused,omitempty"`
	Limit  *int          `json:"limit,omitempty"`    // nil without one
	Every  time.Duration `json:"every_ns,omitempty"` // of a rate; 0 without one
	Burst  int           `json:"burst,omitempty"`
}

// Settings returns what operators have set.
func (q *Queue) Settings(ctx context.Context) (*Settings, error) {
	s, err := q.stats(ctx)
	if err != nil {
		return nil, err
	}
	out := &Settings{Turns: s.Settings["turns"] != "", Step: time.Minute, Crashes: 3, Placement: Order(s.Settings["placement"]), Scopes: []ScopeSetting{}}
	if ms, err := strconv.ParseInt(s.Settings["stepMs"], 10, 64); err == nil {
		out.Step = time.Duration(ms) * time.Millisecond
	}
	if n, err := strconv.Atoi(s.Settings["crashes"]); err == nil {
		out.Crashes = n
	}
	scopes := map[string]*ScopeSetting{}
	for name, value := range s.Settings {
		what, field, _ := strings.Cut(name, "\t")
		if what != "pause" && what != "limit" && what != "rate" {
			continue
		}
		if field != "" {
			field = "\t" + field
		}
		if scopes[field] == nil {
			scopes[field] = &ScopeSetting{Scope: Scope{field}}
		}
		scopes[field].set(what, value)
	}
	for _, field := range slices.Sorted(maps.Keys(scopes)) {
		out.Scopes = append(out.Scopes, *scopes[field])
	}
	return out, nil
}

// set reads what Configure wrote.
func (s *ScopeSetting) set(what, value string) {
	switch what {
	case "pause":
		s.Paused = true
	case "limit":
		if n, err := strconv.Atoi(value); err == nil {
			s.Limit = &n
		}
	case "rate":
		every, burst, _ := strings.Cut(value, " ")
		if us, err := strconv.ParseInt(every, 10, 64); err == nil {
			s.Every = time.Duration(us) * time.Microsecond
		}
		if n, err := strconv.Atoi(burst); err == nil {
			s.Burst = n
		}
	}
}

// MarshalText writes a scope as String does.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// WorkerState is what a worker is at.
type WorkerState string

// States of workers.
const (
	Online   WorkerState = "online"
	Away     WorkerState = "away"     // it takes nothing new for now
	Leaving  WorkerState = "draining" // it takes nothing new, and ends when what it runs has ended
	Vanished WorkerState = "gone"     // its lease is over, and nobody has come for its jobs yet
)

// WorkerInfo is a worker at one moment.
type WorkerInfo struct {
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	Host       string              `json:"host"`
	PID        int                 `json:"pid"`
	State      WorkerState         `json:"state"`
	Kinds      []string            `json:"kinds"`
	Tags       []string            `json:"tags,omitempty"`
	Capacities map[string]Occupied `json:"capacities"`
	OfferFor   time.Duration       `json:"offer_for_ns,omitempty"` // 0: it is given jobs, not offered
	Offered    int                 `json:"offered,omitempty"`      // jobs that it has not accepted yet
	Heard      time.Time           `json:"heard,omitzero"`         // last
	Now        time.Time           `json:"now"`
}

// Occupied is how much of a capacity is used.
type Occupied struct {
	Used  int `json:"used"`
	Limit int `json:"limit"`
}

// Workers returns the workers that the server knows, by name.
func (q *Queue) Workers(ctx context.Context) ([]WorkerInfo, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.tasks.Done()
	all := map[string]WorkerInfo{}
	for cursor := "0"; ; {
		found, next, err := q.store.Workers(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for i := range found {
			all[found[i].ID] = newWorkerInfo(&found[i])
		}
		if next == "0" {
			break
		}
		cursor = next
	}
	return slices.SortedFunc(maps.Values(all), func(a, b WorkerInfo) int {
		return strings.Compare(a.Name+"\t"+a.ID, b.Name+"\t"+b.ID)
	}), nil
}

func newWorkerInfo(s *store.WorkerSight) WorkerInfo {
	w := WorkerInfo{
		ID: s.ID, State: presenceOf(s), Kinds: s.Kinds, Tags: s.Tags, Capacities: map[string]Occupied{}, OfferFor: s.OfferFor,
		Offered: s.Offered, Now: s.Now,
	}
	var info workerInfo
	if err := json.Unmarshal([]byte(s.Info), &info); err == nil { // else it is shown by its id
		w.Name, w.Host, w.PID = info.Name, info.Host, info.PID
		w.Heard = s.Lease.Add(-time.Duration(info.LeaseMs) * time.Millisecond)
	}
	if !s.Lease.After(s.Now) {
		w.State = Vanished
	}
	for _, r := range s.Room {
		w.Capacities[r.Name] = Occupied{r.Used, r.Limit}
	}
	return w
}

func presenceOf(s *store.WorkerSight) WorkerState {
	if s.State == "missed" { // it has let an offer pass, and may not have heard that it is away
		return Away
	}
	return WorkerState(s.State)
}
