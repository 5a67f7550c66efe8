package signalbox

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Who waits for whom is known to the server only one resource at a time. Deadlocks reads them all and reduces the graph
// (Holt 1972): whoever waits for nothing can go on and will release what he holds; whoever finds enough permits then can
// go on too; and so on. Those that remain wait for each other.

// Deadlock is a circle of parties of which each waits for what the next holds.
type Deadlock struct {
	Waits []Blocked `json:"waits"`
}

// Blocked is one party of a Deadlock.
type Blocked struct {
	Owner    string `json:"owner"`
	Label    string `json:"label,omitempty"`
	Resource string `json:"resource"` // that it waits for
	ID       string `json:"id"`       // of its place in the queue: Box.Force with it breaks the circle
	HeldBy   string `json:"held_by"`  // the id of a lease of the next party
}

// Deadlocks reports who waits for each other in a circle, from one look at every resource: what it reports may have come
// apart since, so look twice before you force. A party is an owner with its label: a process whose goroutines acquire
// independently of each other should give each of them a Label, or it may be reported although none of them is stuck. A
// party without label that waits for itself is not reported. It costs what List costs, and an Inspect for each resource
// that somebody waits for. As with List, an error that wraps ErrWrongType comes with what was found of all others.
func (b *Box) Deadlocks(ctx context.Context) ([]Deadlock, error) {
	list, foreign := b.List(ctx)
	if foreign != nil && !errors.Is(foreign, ErrWrongType) {
		return nil, foreign
	}
	var states []State
	for _, found := range list {
		if found.Waiters == 0 {
			continue
		}
		switch state, err := b.Inspect(ctx, found.Resource); {
		case err == nil:
			states = append(states, state)
		case errors.Is(err, ErrWrongType): // since then
			foreign = errors.Join(foreign, err)
		default:
			return nil, err
		}
	}
	return deadlocks(states), foreign
}

// party is an owner with its label.
type party struct{ owner, label string }

func deadlocks(states []State) []Deadlock {
	stuck := make(map[party]bool)
	for _, state := range states {
		for _, w := range state.Queue {
			stuck[party{w.Owner, w.Label}] = true
		}
	}
	for changed := true; changed; {
		changed = false
		for p := range stuck {
			if canGoOn(p, states, stuck) {
				delete(stuck, p)
				changed = true
			}
		}
	}
	return circles(states, stuck)
}

// canGoOn says whether everything p waits for comes free if those that are not stuck release what they hold. Whoever
// stands behind one that is stuck waits for him too.
func canGoOn(p party, states []State, stuck map[party]bool) bool {
	for _, state := range states {
		free := state.Limit - state.Held
		for _, h := range state.Holders {
			if !stuck[party{h.Owner, h.Label}] {
				free += h.Weight
			}
		}
		passable := true
		for _, w := range state.Queue {
			waiting := party{w.Owner, w.Label}
			if waiting == p && (!passable || w.Weight > free) {
				return false
			}
			passable = passable && (waiting == p || !stuck[waiting])
		}
	}
	return true
}

// circles follows each stuck party to a stuck holder of what it waits for, until one comes again.
func circles(states []State, stuck map[party]bool) []Deadlock {
	next := make(map[party]Blocked)
	to := make(map[party]party)
	for _, state := range states {
		for _, w := range state.Queue {
			p := party{w.Owner, w.Label}
			if _, known := next[p]; known || !stuck[p] {
				continue
			}
			for _, h := range state.Holders {
				holder := party{h.Owner, h.Label}
				if stuck[holder] && (holder != p || p.label != "") {
					next[p] = Blocked{w.Owner, w.Label, state.Resource, w.ID, h.ID}
					to[p] = holder
					break
				}
			}
		}
	}
	starts := make([]party, 0, len(next))
	for p := range next {
		starts = append(starts, p)
	}
	slices.SortFunc(starts, func(a, b party) int {
		return strings.Compare(a.owner+"\t"+a.label, b.owner+"\t"+b.label)
	})
	var found []Deadlock
	done := make(map[party]bool)
	for _, start := range starts {
		var path []party
		p := start
		for ; !done[p]; p = to[p] {
			if _, known := next[p]; !known {
				break
			}
			done[p] = true
			path = append(path, p)
		}
		if at := slices.Index(path, p); at >= 0 {
			var circle Deadlock
			for _, member := range path[at:] {
				circle.Waits = append(circle.Waits, next[member])
			}
			found = append(found, circle)
		}
	}
	return found
}
