package store

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// What random programs consist of.

func (s *system) draw(from, to int, what string) int { return rapid.IntRange(from, to).Draw(s.t, what) }

func (s *system) chance(of int, what string) bool { return s.draw(1, of, what) == of }

func (s *system) pick(what string, of ...string) string { return rapid.SampledFrom(of).Draw(s.t, what) }

// clashes says whether a job has an order that is another's.
func (s *system) clashes(order int64) bool {
	near := func(j *modelJob) bool { return j.order > order-500 && j.order < order+500 }
	for _, j := range s.m.jobs {
		if near(j) {
			return true
		}
	}
	for _, e := range s.m.ended {
		if near(e.modelJob) {
			return true
		}
	}
	return false
}

func (s *system) drawItem() Item {
	s.items++
	i := Item{ID: fmt.Sprint("j", s.items), Rest: "{}", Lane: Lane{
		Kind: s.pick("kind", "note", "note", "mail"), Key: s.pick("key", "", "a", "b", "c"),
	}}
	if s.chance(4, "with tags") {
		i.Lane.Tags = list(s.pick("tags", "x", "y", "x,y"))
	}
	if s.chance(4, "with a cost") {
		i.Lane.Cost = s.pick("cost", "slot=2", "call=1", "call=1,slot=1", "call=0,slot=1", "call=0")
	}
	if s.chance(3, "kept") {
		i.Retention = time.Duration(s.draw(1, 60, "retention")) * time.Second
	}
	switch s.draw(0, 7, "unique") {
	case 0:
		i.UniqueField, i.UniqueIn = s.pick("fingerprint", "u", "v"), s.pick("while", "wlh", "wlhc")
	case 1:
		i.ID, i.UniqueField = s.pick("own id", "own1", "own2", "own3"), "id"
	}
	if s.chance(5, "with parents") && s.items > 3 {
		parents := []string{fmt.Sprint("j", s.draw(1, s.items-1, "parent")), "own1"}
		i.After = After{s.pick("mode", "all", "any"), s.pick("failure", "cancel", "hold", "go"), parents[:s.draw(1, 2, "parents")]}
	}
	s.drawReserved(&i)
	s.drawOrder(&i)
	return i
}

func (s *system) drawOrder(i *Item) {
	step := s.m.setting("stepMs", 60000) * 1000
	i.Priority = s.draw(-2, 2, "priority")
	if s.chance(3, "delayed") {
		i.Delay = time.Duration(s.draw(1, 20000, "delay")) * time.Millisecond
		for s.clashes((s.m.ms()+i.Delay.Milliseconds())*1000 - int64(i.Priority)*step) {
			i.Delay += time.Millisecond
		}
	} else if s.clashes(s.m.now - int64(i.Priority)*step) {
		i.Priority = 0
	}
}

// drawItems draws some whose orders differ.
func (s *system) drawItems(most int) (items []Item) {
	seen := map[int64]bool{}
	for range s.draw(1, most, "items") {
		i := s.drawItem()
		order := i.Delay.Milliseconds()*1000 - int64(i.Priority)*s.m.setting("stepMs", 60000)*1000
		known := slices.ContainsFunc(items, func(o Item) bool { return o.ID == i.ID })
		if i.Delay > 0 && seen[order] || known {
			continue
		}
		seen[order] = true
		items = append(items, i)
	}
	return items
}

// drawReport draws what a worker says.
func (s *system) drawReport(id string) *Report {
	r := &Report{
		Worker: id, Call: s.calls[id] + 1, Lease: 15 * time.Second, State: "online", Room: "call:1,slot:3", Kinds: "mail,note",
		Tags: map[string]string{"p/1": "", "p/2": "x", "p/3": "x,y", "q/4": "x"}[id], Info: "{}", Want: MostClaims,
	}
	r.Register = r.Call == 1
	if s.offers {
		r.Name, r.OfferFor, r.Stays = agents[id].Name, agents[id].OfferFor, agents[id].Stays
	}
	if s.chance(12, "another state") {
		r.State = s.pick("state", "draining", "away", "gone")
	}
	if s.chance(10, "other terms") {
		r.Room, r.Kinds = s.pick("room", "slot:1", "slot:5"), s.pick("kinds", "note", "mail")
	}
	if s.chance(10, "other tags") {
		r.Tags = s.pick("tags", "", "y")
	}
	held := s.m.heldBy(id)
	for _, j := range held {
		if s.chance(4, "says something") {
			r.Done = append(r.Done, Done{ID: j.id, Token: j.token, Verb: "note", Text: s.pick("note", "half", "whole")})
		}
		if s.chance(2, "is done") {
			r.Done = append(r.Done, s.drawDone(j))
		} else if s.chance(6, "is unknown to it") {
			continue
		}
		r.Inventory = append(r.Inventory, j.id)
	}
	if s.chance(8, "something else") {
		other := fmt.Sprint("j", s.draw(1, s.items+1, "other"))
		if !slices.ContainsFunc(held, func(j *modelJob) bool { return j.id == other }) {
			r.Done = append(r.Done, Done{ID: other, Token: s.token, Verb: "done"})
			r.Inventory = append(r.Inventory, other)
		}
	}
	if s.chance(2, "tells what it runs") {
		r.Inventory = append([]string{}, r.Inventory...)
	} else {
		r.Inventory = nil
	}
	return r
}

func (s *system) drawDone(j *modelJob) Done {
	d := Done{ID: j.id, Token: j.token, Verb: s.pick("verb", "done", "done", "done", "retry", "dead", "snooze", "back", "cancelled")}
	if j.until > 0 {
		d.Verb = s.drawAnswer()
	} else if s.offers && s.chance(8, "an answer that comes late") {
		d.Verb = s.pick("late answer", "accept", "decline", "miss")
	}
	if s.chance(15, "with an old token") {
		d.Token = "1"
	}
	if slices.Contains([]string{"accept", "decline", "miss"}, d.Verb) {
		return d
	}
	if d.Verb != "back" && s.chance(2, "with a time") {
		d.After = time.Duration(s.draw(1, 20000, "after")) * time.Millisecond
	}
	if d.Verb != "back" && d.Verb != "snooze" {
		d.Text = s.pick("text", "", "because")
	}
	for d.Verb == "snooze" && s.clashes((s.m.ms()+d.After.Milliseconds())*1000-j.boost) {
		d.After += time.Millisecond
	}
	return d
}

// drawID draws a job, mostly one that is there.
func (s *system) drawID() string {
	known := append(slices.Sorted(maps.Keys(s.m.jobs)), slices.Sorted(maps.Keys(s.m.ended))...)
	if len(known) == 0 || s.chance(10, "unknown") {
		return fmt.Sprint("j", s.draw(1, s.items+1, "job"))
	}
	return known[s.draw(0, len(known)-1, "job")]
}
