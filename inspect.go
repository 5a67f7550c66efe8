package signalbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// inspectMost bounds how many holders and how many waiters Inspect lists.
const inspectMost = 1000

// State is a resource at one moment.
type State struct {
	Resource string        `json:"resource"`
	Now      time.Time     `json:"now"`                // by the server's clock, like all times here
	Limit    int           `json:"limit"`              // in force: the operator's, or the last a caller stated
	Operator int           `json:"operator,omitempty"` // set by Resize, 0 if none
	Token    int64         `json:"token"`              // of the last grant
	Held     int           `json:"held"`               // permits
	Leases   int           `json:"leases"`             // how many; Holders lists the first 1,000
	Waiters  int           `json:"waiters"`            // how many; Queue lists the first 1,000
	Holders  []Holder      `json:"holders,omitempty"`  // the one that expires first is first
	Queue    []QueuedEntry `json:"queue,omitempty"`    // in their order
}

// Holder is a lease as the server sees it.
type Holder struct {
	ID      string        `json:"id"`
	Owner   string        `json:"owner"`
	Label   string        `json:"label,omitempty"`
	Weight  int           `json:"weight"`
	Token   int64         `json:"token"`
	Since   time.Time     `json:"since"`
	TTL     time.Duration `json:"ttl_ns"`
	Expires time.Time     `json:"expires"`
	Resting bool          `json:"resting,omitempty"` // it has ended; LockDelay or HoldAtLeast keep its permits back
}

// QueuedEntry is a waiter as the server sees it.
type QueuedEntry struct {
	ID     string        `json:"id"`
	Owner  string        `json:"owner"`
	Label  string        `json:"label,omitempty"`
	Weight int           `json:"weight"`
	Limit  int           `json:"limit"` // that it stated
	Since  time.Time     `json:"since"`
	TTL    time.Duration `json:"ttl_ns"`
	Claim  time.Time     `json:"claim"`             // by when it must be heard from
	Pace   time.Duration `json:"pace_ns,omitempty"` // that it wants between two grants at least
	Group  bool          `json:"group,omitempty"`   // it waits for other resources too: AcquireAll
}

// Inspect returns who holds a resource and who waits for it, by the server's clock. One round trip, O(n) in holders and
// waiters, of which it lists 1,000 each. A resource that nobody uses is no error, but an empty State.
func (b *Box) Inspect(ctx context.Context, name string) (State, error) {
	resource, err := b.resource(ctx, "inspect", name)
	if err != nil {
		return State{}, err
	}
	state, err := b.ledger.Inspect(ctx, resource, inspectMost)
	if err != nil {
		return State{}, err
	}
	return newState(name, state), nil
}

// List returns the resources that are held, waited for, or limited by an operator, by name, without holders and
// waiters. It scans the keys of the server, of every primary in a Cluster: O(number of keys).
//
// An error that wraps ErrWrongType comes with the list of all others: it joins one for each resource in whose place
// somebody else's key is, and says which keys to look at. With any other error there is no list.
func (b *Box) List(ctx context.Context) ([]State, error) {
	if err := b.ready(ctx); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	found, foreign := make(map[string]State), make(map[string]error)
	err := b.ledger.Names(ctx, func(names []string) error {
		var resources []*ledger.Resource
		for _, name := range names {
			if resource, err := ledger.NewResource(name); err == nil {
				resources = append(resources, resource)
			}
		}
		for i, result := range b.ledger.InspectAll(ctx, resources) {
			name := resources[i].Name
			switch {
			case errors.Is(result.Err, ErrWrongType):
				foreign[name] = result.Err
			case result.Err != nil:
				return result.Err
			case result.Leases+result.Waiters+result.Operator > 0:
				found[name] = newState(name, result.State)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]State, 0, len(found))
	for _, state := range found {
		list = append(list, state)
	}
	slices.SortFunc(list, func(a, b State) int { return strings.Compare(a.Resource, b.Resource) })
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		wrong = append(wrong, foreign[name])
	}
	return list, errors.Join(wrong...)
}

// Resize sets a limit that is stronger than what callers state, or clears it if limit is 0, and returns the one set
// before, 0 if none. A larger limit grants at once. A smaller one takes nothing away: nothing is granted until what is
// held fits. Waiters heavier than the limit are sent away with ErrTooHeavy.
func (b *Box) Resize(ctx context.Context, name string, limit int) (before int, err error) {
	if limit < 0 || limit > ledger.MaxLimit {
		return 0, fmt.Errorf("resize %q: %w: limit %d, must be 0 to %d", name, ErrInvalid, limit, ledger.MaxLimit)
	}
	resource, err := b.resource(ctx, "resize", name)
	if err != nil {
		return 0, err
	}
	return b.ledger.Resize(ctx, resource, limit)
}

// Force ends the lease of an id, or sends the waiter of that id away, with ErrForced, and reports whether there was
// one. Whoever held it goes on until he is told: at once if his process listens (somebody of it waits, or NoticeWaiters),
// otherwise with the next renewal, a third of the ttl at most. Until then two may be inside: check fencing tokens.
func (b *Box) Force(ctx context.Context, name, id string) (bool, error) {
	resource, err := b.resource(ctx, "force", name)
	if err != nil {
		return false, err
	}
	if id == "" {
		return false, fmt.Errorf("force %q: %w: the id is empty; ForceAll ends every lease", name, ErrInvalid)
	}
	ended, err := b.ledger.Force(ctx, resource, id, b.claim)
	return ended > 0, err
}

// ForceAll ends every lease of a resource and returns how many there were. Waiters stay, and are granted what comes
// free. Holders are told as by Force.
func (b *Box) ForceAll(ctx context.Context, name string) (int, error) {
	resource, err := b.resource(ctx, "force", name)
	if err != nil {
		return 0, err
	}
	return b.ledger.ForceAll(ctx, resource, b.claim)
}

func newState(name string, s ledger.State) State {
	state := State{
		Resource: name, Now: s.Now, Limit: s.Limit, Operator: s.Operator, Token: s.Token,
		Held: s.Held, Leases: s.Leases, Waiters: s.Waiters,
	}
	if s.Operator > 0 {
		state.Limit = s.Operator
	}
	for _, e := range s.Holders {
		state.Holders = append(state.Holders, Holder{
			ID: e.ID, Owner: e.Owner, Label: e.Label, Weight: e.Weight, Token: e.Token, Since: e.Since, TTL: e.TTL,
			Expires: e.Deadline, Resting: e.Resting,
		})
	}
	for _, e := range s.Queue {
		state.Queue = append(state.Queue, QueuedEntry{
			ID: e.ID, Owner: e.Owner, Label: e.Label, Weight: e.Weight, Limit: e.Limit, Since: e.Since, TTL: e.TTL,
			Claim: e.Deadline, Pace: e.Pace, Group: e.Group,
		})
	}
	return state
}
