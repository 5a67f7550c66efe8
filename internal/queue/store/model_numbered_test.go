package store

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// Numbered calls, in the model and in random programs: what a sequence has taken in counts once, whoever repeats it and however
// much later, and what comes after a later call is refused. Half of the calls are of jobs without terms, as they would take the
// fast lane of enqueue.lua; and some bring a job that an earlier call has brought.

// sequences are those of a program.
var sequences = []string{"one", "other"}

// sequence is what a program knows of one: its last call, and all items that it was ever given.
type sequence struct {
	number int64
	sent   []Item
	all    []Item
}

// numbered is enqueue in a sequence, whose last call is kept for good. Past is the number of that call, if this one is not taken in.
func (m *model) numbered(name string, call int64, items []Item) (outcomes []Outcome, past int64) {
	name = "sequence:" + name
	if last, ok := m.calls[name]; ok && last.number >= call {
		if last.number > call || last.ids != itemIDs(items) {
			return nil, last.number
		}
		return last.outcomes, 0
	}
	outcomes = m.takeIn(items)
	m.calls[name] = modelCall{number: call, until: math.MaxInt64, outcomes: outcomes, ids: itemIDs(items)}
	return outcomes, 0
}

func itemIDs(items []Item) string {
	var list []string
	for i := range items {
		list = append(list, items[i].ID)
	}
	return strings.Join(list, " ")
}

func (s *system) enqueueNumbered(*rapid.T) {
	s.tick()
	name := s.pick("sequence", sequences...)
	q := s.numbered[name]
	if q == nil {
		q = &sequence{}
		s.numbered[name] = q
	}
	number, items := s.drawCall(q)
	if len(items) == 0 {
		return
	}
	by := s.Store
	if s.chance(3, "by another process") {
		var err error
		by, err = New(s.ground, s.name, "another", time.Second)
		s.must(err)
	}
	got, told, err := by.EnqueueNumbered(s.ctx(), name, number, items)
	var outcomes []Outcome
	var past int64
	s.told(func() { outcomes, past = s.m.numbered(name, number, items) })
	s.agree("Q10: the call that a numbered one is past", told, past, err)
	s.agree("Q10: outcomes of a numbered call", got, outcomes, nil)
	if past == 0 {
		q.number, q.sent = number, items
		q.all = append(q.all, items...)
	}
}

// drawCall draws a call of a sequence: mostly the next one.
func (s *system) drawCall(q *sequence) (int64, []Item) {
	what := "next"
	if q.number > 0 {
		what = s.pick("call", "next", "next", "next", "gap", "again", "again with other terms", "another", "in another order", "late")
	}
	switch what {
	case "again":
		return q.number, q.sent
	case "again with other terms": // the ids say whether it is the same call
		items := slices.Clone(q.sent)
		items[0].Priority, items[0].Delay, items[0].Lane.Kind = 1, time.Second, "mail"
		return q.number, items
	case "in another order":
		items := slices.Clone(q.sent)
		slices.Reverse(items)
		return q.number, items
	case "another":
		return q.number, s.drawNumbered(q)
	case "late":
		items := q.sent
		if s.chance(2, "with new jobs") {
			items = s.drawNumbered(q)
		}
		return max(1, q.number-int64(s.draw(1, 3, "late by"))), items
	case "gap":
		return q.number + int64(s.draw(2, 1<<40, "gap")), s.drawNumbered(q)
	}
	return q.number + 1, s.drawNumbered(q)
}

// drawNumbered draws the jobs of a numbered call.
func (s *system) drawNumbered(q *sequence) []Item {
	items := s.drawItems(4)
	plain, own := s.chance(2, "without terms"), s.chance(2, "all with ids of their own")
	for i := range items {
		if was := items[i]; plain {
			items[i] = Item{ID: was.ID, Lane: was.Lane, Rest: was.Rest}
			if was.UniqueField == "id" {
				items[i].UniqueField = "id"
			}
		}
		if own && items[i].UniqueField == "" {
			items[i].UniqueField = "id"
		}
	}
	if len(q.all) > 0 && s.chance(4, "with a job of an earlier call") {
		i := q.all[s.draw(0, len(q.all)-1, "which")]
		if i.UniqueField == "" { // ids that are not unique are made for one call
			i.UniqueField = "id"
		}
		if i.Delay = 0; i.Priority != 0 && s.clashes(s.m.now-int64(i.Priority)*s.m.setting("stepMs", 60000)*1000) || len(i.After.Parents) > 0 {
			i.Priority = 0
		}
		if !slices.ContainsFunc(items, func(o Item) bool { return o.Priority == i.Priority && i.Priority != 0 }) {
			items = append(items, i)
		}
	}
	if len(items) > 0 && items[0].UniqueField == "id" && s.chance(8, "twice in it") {
		items = append(items, items[0])
	}
	return items
}

// forget is what an operator does whose outbox is given up: another one may have its name, and count from 1.
func (s *system) forget(*rapid.T) {
	name := s.pick("sequence", sequences...)
	_, err := s.raw("DEL", Prefix(s.name)+"producer:sequence:"+name)
	s.must(err)
	delete(s.m.calls, "sequence:"+name)
	if q := s.numbered[name]; q != nil {
		q.number, q.sent = 0, nil
	}
	if s.replay != nil {
		delete(s.replay.Producers, "producer:sequence:"+name)
	}
}

// checkSequences compares what is kept of them, and that it is kept for good.
func (s *system) checkSequences() {
	for _, name := range sequences {
		value, err := s.raw("GET", Prefix(s.name)+"producer:sequence:"+name)
		s.must(err)
		last, known := s.m.calls["sequence:"+name]
		s.agree("there is a last call", value != nil, known, nil)
		if !known {
			continue
		}
		number, _, _ := strings.Cut(text(value), " ")
		s.agree("the number of the last call", number, fmt.Sprint(last.number), nil)
		ttl, err := s.raw("PTTL", Prefix(s.name)+"producer:sequence:"+name)
		s.agree("a last call is kept for ms", fmt.Sprint(ttl), "-1", err)
	}
}
