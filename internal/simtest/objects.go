package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Sequential models of what is no permit, for porcupine: what one call may answer in which state. A call and its answer
// are one value, the input. States are comparable and never changed in place.

// object is a model whose inputs are of one type, for one object at a time.
func object[S comparable, I any](begin S, step func(S, I) (S, bool)) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return begin },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := step(state.(S), input.(I))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
}

// allowance is Limiter.Allow at a rate so slow that time makes no difference: a counter. over is how many units were too
// many, which is what RetryAfter tells; 0 if they were allowed.
type allowance struct{ cost, over int }

func limiterModel(burst int) porcupine.Model {
	return object(0, func(taken int, a allowance) (int, bool) {
		if taken+a.cost <= burst {
			return taken + a.cost, a.over == 0
		}
		return taken, a.over == taken+a.cost-burst
	})
}

// tally is a call of a Latch: a party that counts, or "" for one that looks or has awaited, and how many were missing.
type tally struct {
	party   string
	missing int
}

func latchModel(parties int) porcupine.Model {
	return object("", func(counted string, t tally) (string, bool) {
		set := make(map[string]bool)
		for _, party := range strings.Fields(counted) {
			set[party] = true
		}
		if t.party != "" {
			set[t.party] = true
		}
		return strings.Join(slices.Sorted(maps.Keys(set)), " "), t.missing == max(0, parties-len(set))
	})
}

// crossing is a half of Barrier.Wait, which is no single moment: each party arrives, and later passes. The round is known
// from the answer.
type crossing struct {
	passes bool
	round  int64
}

// crossed is a barrier: who gathers for which round, and the last round that was complete.
type crossed struct {
	round, complete int64
	arrived         int
}

func barrierModel(parties int) porcupine.Model {
	return object(crossed{}, func(s crossed, c crossing) (crossed, bool) {
		switch {
		case c.passes:
			return s, c.round <= s.complete
		case s.arrived == 0:
			s.round = c.round
		}
		if c.round != s.round || c.round <= s.complete {
			return s, false
		}
		if s.arrived++; s.arrived == parties {
			s.complete, s.arrived = c.round, 0
		}
		return s, true
	})
}

// guarded is a call of a Fence: a write or, if value is what was read, a read. A refused one names the newest token.
type guarded struct {
	token  int64
	writes bool
	value  string
	newest int64 // 0 if it was let through
}

// fencedState is a register with tokens.
type fencedState struct {
	newest int64
	value  string
}

func fenceModel() porcupine.Model {
	return object(fencedState{}, func(s fencedState, g guarded) (fencedState, bool) {
		if g.token < s.newest {
			return s, g.newest == s.newest
		}
		s.newest = g.token
		if g.writes {
			s.value = g.value
		}
		return s, g.newest == 0 && g.value == s.value
	})
}
