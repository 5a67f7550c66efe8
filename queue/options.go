package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Option says how a job is to run. Given to Define it holds for all jobs of the kind, given to Enqueue or With for one.
type Option func(*terms)

// terms are what options say.
type terms struct {
	id        string
	key       string
	tags      []string
	cost      map[string]int
	delay     time.Duration
	at        time.Time
	priority  int
	timeout   time.Duration
	attempts  int
	retention time.Duration
	unique    string
	uniqueIn  string
	after     store.After
	forWorker string // for whom it is reserved, until forUntil or for forWithin
	forUntil  time.Time
	forWithin time.Duration
	meta      string // see metaText
	backoff   func(attempt int) time.Duration
	codec     Codec
	err       error
}

const (
	// DefaultAttempts is how often a job is tried.
	DefaultAttempts = 20
	// DefaultRetain is for how long results are kept, of kinds that have results.
	DefaultRetain = time.Minute
	// DeadRetain is for how long jobs that failed are kept, to be looked at and run again.
	DeadRetain = 90 * 24 * time.Hour
	// MaxPayload is how long the arguments of a job may be, encoded.
	MaxPayload = 1 << 20

	maxKeyBytes = 512
	maxNameLen  = 128
	maxTags     = 16
	maxPriority = 1 << 20
	maxParents  = 1000
)

func (t *terms) refuse(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
}

func (t *terms) check(what, name string, most int) {
	if err := store.CheckName(what, name, most); err != nil && t.err == nil {
		t.err = err
	}
	if strings.Contains(name, ",") && what != "key" {
		t.refuse("%s %.40q has a comma in it", what, name)
	}
}

// Key says whose job it is: a tenant, a host, an account. Limits and rates may be set for each key, and with turns the keys
// of a kind are served round robin.
func Key(key string) Option {
	return func(t *terms) {
		t.check("key", key, maxKeyBytes)
		t.key = key
	}
}

// Require says which tags the worker has to have, all of them.
func Require(tags ...string) Option {
	return func(t *terms) {
		for _, tag := range tags {
			t.check("tag", tag, maxNameLen)
		}
		t.tags = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(t.tags), tags...))))
		if len(t.tags) > maxTags {
			t.refuse("a job has %d tags, at most %d are allowed", len(t.tags), maxTags)
		}
	}
}

// Cost says what a job takes of a capacity while it runs. A job without a cost takes one "slot". Given several times it
// takes of several capacities.
func Cost(capacity string, amount int) Option {
	return func(t *terms) {
		checkCapacity(t, capacity, amount)
		cost := map[string]int{capacity: amount}
		for name, n := range t.cost {
			if name != capacity {
				cost[name] = n
			}
		}
		t.cost = cost
	}
}

func checkCapacity(t *terms, name string, amount int) {
	t.check("capacity", name, maxNameLen)
	if strings.ContainsAny(name, ":=") {
		t.refuse("capacity %q has a colon or an equals sign in it", name)
	}
	if amount < 0 || amount > 1<<30 {
		t.refuse("capacity %q of %d: it is between 0 and 2^30", name, amount)
	}
}

// In delays a job.
func In(delay time.Duration) Option { return func(t *terms) { t.delay, t.at = delay, time.Time{} } }

// At has a job wait for a time of the server's clock.
func At(at time.Time) Option { return func(t *terms) { t.at = at } }

// Priority has a job go before others as if it had been enqueued so many steps earlier; a step is a minute, unless
// Settings says otherwise. So it jumps ahead by a bounded time, and what waits grows older and goes before it in the end. A
// negative priority lets others go first.
func Priority(priority int) Option {
	return func(t *terms) {
		if priority < -maxPriority || priority > maxPriority {
			t.refuse("priority %d is not between -%d and %d", priority, maxPriority, maxPriority)
		}
		t.priority = priority
	}
}

// Timeout ends the context of a job that runs longer, with ErrTimeout as its cause. 0 is no timeout. Less than a
// millisecond is one.
func Timeout(timeout time.Duration) Option {
	return func(t *terms) {
		if timeout < 0 {
			t.refuse("a timeout of %v: it is at least 1ms, or 0 for none", timeout)
		}
		if t.timeout = timeout; timeout > 0 {
			t.timeout = max(timeout, time.Millisecond)
		}
	}
}

// MaxAttempts is how often a job is tried before it is dead.
func MaxAttempts(n int) Option {
	return func(t *terms) {
		if n < 1 {
			t.refuse("%d attempts: it is at least one", n)
		}
		t.attempts = n
	}
}

// Backoff says how long to wait after an attempt failed, the first being 1. Without it the pauses double from a second to an
// hour, half of each random. It holds where the handler is: given to Enqueue it means nothing, and is refused.
func Backoff(pause func(attempt int) time.Duration) Option {
	return func(t *terms) {
		if pause == nil {
			t.refuse("Backoff without a function")
			return
		}
		t.backoff = pause
	}
}

func defaultBackoff(attempt int) time.Duration {
	pause := min(time.Second<<min(attempt-1, 12), time.Hour)
	return pause/2 + rand.N(pause/2+1)
}

// Retain keeps a job that was done, and its result, for so long. Without it those of kinds with results are kept for
// DefaultRetain, and others not at all.
func Retain(d time.Duration) Option { return func(t *terms) { t.retention = max(d, 0) } }

// ID gives a job an id of the caller's own. Enqueue again with the same one changes nothing while the job is there, and
// says so (Enqueued.Duplicate).
func ID(id string) Option {
	return func(t *terms) {
		t.check("job id", id, maxNameLen)
		t.id = id
	}
}

// States are those in which a job is the only one of its kind with the same fingerprint.
type States string

// Of a unique job.
const (
	Waiting States = "wlh" // it does not run yet
	Alive   States = "wlhc"
)

// Unique refuses a second job of the kind with the same fingerprint while there is one in the given states: Enqueue then
// tells which (Enqueued.Duplicate).
func Unique(fingerprint string, while States) Option {
	return func(t *terms) {
		t.check("fingerprint", fingerprint, maxKeyBytes)
		if fingerprint == "id" {
			fingerprint = "id " // the word is the store's
		}
		t.unique, t.uniqueIn = fingerprint, string(while)
	}
}

// ParentFailure says what becomes of a job when one that it waits for fails or is canceled.
type ParentFailure string

// What a failed parent means.
const (
	CancelIt ParentFailure = "cancel" // it is canceled
	HoldIt   ParentFailure = "hold"   // it waits until somebody retries it by hand
	RunIt    ParentFailure = "go"     // as if the parent had succeeded
)

// After has a job wait until all of these have ended well. One that is not there counts as done: its result was not kept.
// So parents are enqueued first, and in one call stand in front.
func After(failure ParentFailure, ids ...string) Option { return after("all", failure, ids) }

// AfterAny has a job wait until one of these has ended well.
func AfterAny(failure ParentFailure, ids ...string) Option { return after("any", failure, ids) }

func after(mode string, failure ParentFailure, ids []string) Option {
	return func(t *terms) {
		for _, id := range ids {
			t.check("job id", id, maxNameLen)
		}
		if len(ids) == 0 || len(ids) > maxParents {
			t.refuse("a job waits for %d others: it is between 1 and %d", len(ids), maxParents)
		}
		t.after = store.After{Mode: mode, Failure: string(failure), Parents: slices.Compact(slices.Sorted(slices.Values(ids)))}
	}
}

// lane is what terms mean to the dispatch.
func (t *terms) lane(kind string) store.Lane {
	var cost []string
	for name, n := range t.cost {
		cost = append(cost, name+"="+strconv.Itoa(n))
	}
	slices.Sort(cost)
	return store.Lane{Kind: kind, Tags: t.tags, Cost: strings.Join(cost, ","), Key: t.key}
}
