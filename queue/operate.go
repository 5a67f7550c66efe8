package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Scope is what a limit, a rate or a pause is about.
type Scope struct{ field string }

// Scopes. A key is one of any kind.
var (
	WholeQueue = Scope{""}
	EachKey    = Scope{"\te"} // every key that has none of its own
)

// String is how a scope is told to people: queue, each key, kind mail.send, key tenant:42.
func (s Scope) String() string {
	what, name, _ := strings.Cut(strings.TrimPrefix(s.field, "\t"), "\t")
	switch {
	case s == WholeQueue:
		return "queue"
	case s == EachKey:
		return "each key"
	case what == "k":
		return "kind " + name
	}
	return "key " + name
}

// OfKind is all jobs of a kind.
func OfKind(kind string) Scope { return Scope{"\tk\t" + kind} }

// OfKey is all jobs with a key.
func OfKey(key string) Scope { return Scope{"\ty\t" + key} }

// Change is one decision of an operator.
type Change struct {
	fields []string
	err    error
}

// Limit is how many may run at once.
func Limit(of Scope, most int) Change {
	if most < 0 {
		return Change{err: fmt.Errorf("%w: a limit of %d: it is at least 0", ErrInvalid, most)}
	}
	return Change{fields: []string{"limit" + of.field, strconv.Itoa(most)}}
}

// Rate is how many may start: one every so often, and burst at once when there were none for a while.
func Rate(of Scope, every time.Duration, burst int) Change {
	if every < time.Microsecond || every > 24*time.Hour || burst < 1 || burst > 1_000_000 {
		return Change{err: fmt.Errorf("%w: a rate of one every %v, %d at once: it is one every microsecond to one a day, and 1 to 1000000 at once", ErrInvalid, every, burst)}
	}
	return Change{fields: []string{"rate" + of.field, fmt.Sprintf("%d %d", every.Microseconds(), burst)}}
}

// Unlimited takes limit and rate away.
func Unlimited(of Scope) Change {
	return Change{fields: append(NoLimit(of).fields, NoRate(of).fields...)}
}

// NoLimit takes a limit away.
func NoLimit(of Scope) Change { return Change{fields: []string{"limit" + of.field, ""}} }

// NoRate takes a rate away.
func NoRate(of Scope) Change { return Change{fields: []string{"rate" + of.field, ""}} }

// Pause has nothing begin any more; what runs goes on. EachKey cannot be paused.
func Pause(of Scope) Change { return pauseTo(of, "1") }

// Resume ends a pause.
func Resume(of Scope) Change { return pauseTo(of, "") }

func pauseTo(of Scope, to string) Change {
	if of == EachKey {
		return Change{err: fmt.Errorf("%w: each key cannot be paused: pause the kind, or the queue", ErrInvalid)}
	}
	return Change{fields: []string{"pause" + of.field, to}}
}

// Turns has the keys of each kind served in turns, or again by the age of their jobs.
func Turns(on bool) Change {
	if on {
		return Change{fields: []string{"turns", "1"}}
	}
	return Change{fields: []string{"turns", ""}}
}

// Step is how much waiting a priority of 1 is worth; 0 makes the queue strictly first in, first out. It holds for jobs that
// are enqueued from now on.
func Step(d time.Duration) Change {
	if d < 0 || d > 24*time.Hour {
		return Change{err: fmt.Errorf("%w: a step of %v is not between 0 and a day", ErrInvalid, d)}
	}
	return Change{fields: []string{"stepMs", strconv.FormatInt(d.Milliseconds(), 10)}}
}

// Crashes is how many workers may die over a job before it is dead. Without it, 3.
func Crashes(most int) Change {
	if most < 1 {
		return Change{err: fmt.Errorf("%w: %d crashes: it is at least one", ErrInvalid, most)}
	}
	return Change{fields: []string{"crashes", strconv.Itoa(most)}}
}

// Configure makes changes that hold at once, for all processes, until they are changed again.
func (q *Queue) Configure(ctx context.Context, changes ...Change) error {
	var fields []string
	for _, c := range changes {
		err := c.err
		for i := 0; i < len(c.fields) && err == nil; i += 2 {
			err = checkScope(c.fields[i])
		}
		if err != nil {
			return fmt.Errorf("configure %q: %w", q.name, err)
		}
		fields = append(fields, c.fields...)
	}
	return q.store.Configure(ctx, fields...)
}

// checkScope refuses names that no kind and no key can have.
func checkScope(field string) error {
	switch f := strings.SplitN(field, "\t", 3); {
	case len(f) == 3 && f[1] == "k":
		return store.CheckName("kind", f[2], maxNameLen)
	case len(f) == 3:
		return store.CheckName("key", f[2], maxKeyBytes)
	}
	return nil
}

// Cancel cancels jobs. One that runs has its context ended with ErrCanceled and the cause, and may still end well; the
// others end at once. A job that has ended, or is unknown, is an error of its own in the one that is returned.
func (q *Queue) Cancel(ctx context.Context, cause string, ids ...string) error {
	_, err := q.change(ctx, "cancel", cause, "", ids)
	return err
}

// Delete removes jobs that do not run, and what is kept of those that have ended.
func (q *Queue) Delete(ctx context.Context, ids ...string) error {
	_, err := q.change(ctx, "delete", "deleted", "", ids)
	return err
}

// Retry runs dead, canceled and kept jobs again, as new ones; those that are delayed or held back run now.
func (q *Queue) Retry(ctx context.Context, ids ...string) error {
	_, err := q.change(ctx, "retry", "", "", ids)
	return err
}

// Drain has workers, by their ids (see Workers), take nothing new, finish what they run, and end: their Run returns. It does
// not wait for that. One that loses its lease before it hears of it hears of it when it is back, within the hour.
func (q *Queue) Drain(ctx context.Context, workers ...string) error {
	_, err := q.change(ctx, "drain", "", "", workers)
	return err
}

// idText is an id for people, who may have given none or one that is not fit to be read.
func idText(id string) string {
	if store.CheckName("id", id, maxNameLen) != nil {
		return fmt.Sprintf("%.40q", id)
	}
	return id
}

// change makes a change to those of the jobs that are in one of the states, "" for any, and returns how many those were.
func (q *Queue) change(ctx context.Context, verb, text, states string, ids []string) (changed int, err error) {
	text = plain(errors.New(text))
	var errs []error
	for len(ids) > 0 {
		n := min(len(ids), store.MostChanges)
		outcomes, err := q.store.Change(ctx, verb, text, states, ids[:n])
		if err != nil {
			return changed, errors.Join(append(errs, err)...)
		}
		for i, outcome := range outcomes {
			switch outcome {
			case "ok", "told":
				changed++
			case "unknown":
				if verb == "drain" {
					errs = append(errs, fmt.Errorf("drain worker %s of queue %q: %w: the queue does not know it", idText(ids[i]), q.name, ErrInvalid))
				} else if states == "" { // else it went since it was found
					errs = append(errs, fmt.Errorf("%s job %s of queue %q: %w", verb, idText(ids[i]), q.name, ErrUnknownJob))
				}
			case "running":
				errs = append(errs, fmt.Errorf("%s job %s of queue %q: %w: it runs; cancel it first", verb, idText(ids[i]), q.name, ErrInvalid))
			case "unique":
				errs = append(errs, fmt.Errorf("%s job %s of queue %q: %w: there is another with its fingerprint", verb, idText(ids[i]), q.name,
					ErrInvalid))
			case "ended":
				errs = append(errs, fmt.Errorf("%s job %s of queue %q: %w: it has ended", verb, idText(ids[i]), q.name, ErrUnknownJob))
			}
		}
		ids = ids[n:]
	}
	return changed, errors.Join(errs...)
}
