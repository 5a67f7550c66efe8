package signalbox

import (
	"context"
	"iter"
	"time"
)

// Election lets one candidate lead at a time: a Mutex that is held for long, and that others look at. It holds no state:
// any number of goroutines may use one value.
type Election struct {
	mutex Mutex
}

// Term is the time for which a candidate leads. It is a Lease: its context ends before anybody else can lead, its token
// is larger than those of all terms before.
type Term struct{ *Lease }

// Leader is who leads, as the server sees it.
type Leader struct {
	Term  int64     // the fencing token, 0 if nobody leads
	ID    string    // of its lease, for Box.Force
	Owner string    // of its Box: host:pid, or what Owner said
	Label string    // what the leader campaigned with
	Since time.Time // by the server's clock
}

// Exists says whether somebody leads.
func (l Leader) Exists() bool { return l.Term != 0 }

// Election returns the election of a name. A bad name is reported by the first call.
func (b *Box) Election(name string) *Election {
	return &Election{*b.Mutex(name)}
}

// Campaign waits, in the order of asking, until this candidate leads. Label is how others can find the leader, such as
// its address. See Semaphore.Acquire.
func (e *Election) Campaign(ctx context.Context, options ...AcquireOption) (*Term, error) {
	lease, err := e.mutex.Acquire(ctx, options...)
	if err != nil {
		return nil, err
	}
	return &Term{lease}, nil
}

// Resign ends the term; the next candidate leads before it returns. See Lease.Release.
func (t *Term) Resign(ctx context.Context) error { return t.Release(ctx) }

// Leader returns who leads at this moment, with a Term of 0 if nobody does.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	state, err := e.mutex.semaphore.box.Inspect(ctx, e.mutex.semaphore.name)
	if err != nil {
		return Leader{}, err
	}
	return leaderOf(&state), nil
}

func leaderOf(state *State) Leader {
	for _, h := range state.Holders {
		if !h.Resting {
			return Leader{h.Token, h.ID, h.Owner, h.Label, h.Since}
		}
	}
	return Leader{}
}

// Observe follows who leads: first who does now, then every change that it learns of, until ctx ends, the loop is left, or
// an error is yielded. Of changes in quick succession, and while the connection is lost, it may skip some, but never goes
// back and always comes to the latest.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var terms succession
		for event, err := range e.mutex.semaphore.box.Watch(ctx, e.mutex.semaphore.name) {
			if err != nil {
				yield(Leader{}, err)
				return
			}
			if leader, changed := terms.follow(event); changed && !yield(leader, nil) {
				return
			}
		}
	}
}

// succession is what Observe has seen.
type succession struct {
	begun  bool
	last   Leader
	newest int64 // term that is known to have begun; events of older ones come late
}

// follow takes the next event, and returns who leads now if that has changed. Of the events behind a Snapshot some are
// contained in it, and older than what it shows.
func (s *succession) follow(event Event) (leader Leader, changed bool) {
	next := s.last
	switch event.What {
	case Snapshot:
		next = leaderOf(event.State)
		s.newest = max(s.newest, event.State.Token)
	case LeaseGranted:
		if event.Token > s.newest {
			next = Leader{event.Token, event.ID, event.Owner, event.Label, event.At}
			s.newest = event.Token
		}
	case LeaseReleased, LeaseExpired, LeaseForced:
		if event.ID == s.last.ID {
			next = Leader{}
		}
	default:
	}
	changed = !s.begun || next.Term != s.last.Term
	s.begun, s.last = true, next
	return next, changed
}
