package simtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// A history is what clients called and what they were answered, by the one clock of the process they share. porcupine
// looks for an order in which atomic acquires and releases, each taking effect between its call and its return, give
// these answers. What nobody knows the outcome of may have taken effect at any time after its call, or never.

// verb is what was called, with what became of it.
type verb string

const (
	acquires verb = "acquires" // and was granted
	tries    verb = "tries"    // and was refused
	releases verb = "releases" // and it had been held
	mayTake  verb = "may take" // an acquire with an error: unknown outcome
	mayGive  verb = "may give" // what takes it back, or a release with an error
	reweighs verb = "reweighs" // an upgrade or a downgrade, to the weight `to`
	keeps    verb = "keeps"    // an upgrade that was refused
	looks    verb = "looks"    // who leads: the token of the lease that is held, 0 if none is
)

// operation is the input of porcupine's model; the answer is part of it.
type operation struct {
	resource string
	verb     verb
	label    string
	weight   int
	to       int   // the weight after reweighs
	token    int64 // of a grant
}

// history collects operations from any number of goroutines.
type history struct {
	begun time.Time

	mu         sync.Mutex
	operations []porcupine.Operation
}

// never is the return of a call whose effect may come at any time.
const never = int64(1) << 62

func (h *history) now() int64 { return time.Since(h.begun).Nanoseconds() }

func (h *history) add(client int, call, back int64, input any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{ClientId: client, Input: input, Call: call, Return: back})
}

// ledgerState is one resource in the model. It is comparable, and never changed in place.
type ledgerState struct {
	held  string // "label weight;" sorted
	sum   int
	token int64 // the last one
}

func (s ledgerState) with(o operation) ledgerState {
	list := append(strings.SplitAfter(s.held, ";"), o.entry())
	slices.Sort(list)
	return ledgerState{strings.Join(list, ""), s.sum + o.weight, max(s.token, o.token)}
}

func (s ledgerState) without(o operation) ledgerState {
	return ledgerState{strings.Replace(s.held, o.entry(), "", 1), s.sum - o.weight, s.token}
}

func (o operation) entry() string { return fmt.Sprintf("%s %d;", o.label, o.weight) }

// model returns the ledger as a sequential object for one limit. If strict, nobody waits in the history, and a try may
// be refused only for want of permits.
func model(limit int, strict bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: byResource,
		Init:      func() []any { return []any{ledgerState{}} },
		Step: func(state, input, _ any) []any {
			return step(state.(ledgerState), input.(operation), limit, strict)
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
	return m.ToModel()
}

// step returns the states that an operation may leave behind; none if it cannot have happened here.
func step(s ledgerState, o operation, limit int, strict bool) (next []any) {
	fits, holds := s.sum+o.weight <= limit, strings.Contains(s.held, o.entry())
	switch o.verb {
	case acquires:
		if fits && !holds && o.token > s.token {
			next = append(next, s.with(o))
		}
	case tries:
		if !strict || !fits {
			next = append(next, s)
		}
	case releases:
		if holds {
			next = append(next, s.without(o))
		}
	case reweighs:
		grown := o.to <= o.weight || o.token > s.token
		if holds && s.sum-o.weight+o.to <= limit && grown {
			to := o
			to.weight = o.to
			next = append(next, s.without(o).with(to))
		}
	case keeps:
		if holds && (!strict || s.sum-o.weight+o.to > limit) {
			next = append(next, s)
		}
	case looks:
		if (s.sum > 0 && o.token == s.token) || (s.sum == 0 && o.token == 0) {
			next = append(next, s)
		}
	case mayTake:
		next = append(next, s)
		if fits {
			next = append(next, s.with(o))
		}
	case mayGive:
		next = append(next, s)
		if holds {
			next = append(next, s.without(o))
		}
	}
	return next
}

func byResource(all []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, o := range all {
		name := o.Input.(operation).resource
		parts[name] = append(parts[name], o)
	}
	list := make([][]porcupine.Operation, 0, len(parts))
	for _, part := range parts {
		list = append(list, part)
	}
	return list
}
