package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What the entries of the history leave is compared with what the keys have, after each transition of a random program. That
// is what a rebuild hangs on: nothing that a queue can be made from is written without its being told.

// beginHistory has a history begin, over what the program has made until then. When there is one, it says everything again.
func (s *system) beginHistory(*rapid.T) {
	s.tick()
	id, err := s.BeginHistory(s.ctx(), 1000000)
	s.must(err)
	s.m.saved = s.m.now
	if s.replay == nil {
		s.replay = NewReplay()
		s.replay.ID = id // the next entry to be read
		s.present = map[string]string{}
	}
}

// followWorkers holds who is there by the history, and at what, against the workers that the server knows.
func (s *system) followWorkers() {
	value, err := s.raw("HGETALL", Prefix(s.name)+"workers")
	s.must(err)
	kept, _ := pairs(value)
	delete(kept, "")
	is := map[string]string{}
	for id, text := range kept {
		w, ok := parseWorker(id, text)
		s.agree("a worker is read", ok, true, nil)
		is[id] = fmt.Sprint(w.State, w.Tags, w.Kinds)
	}
	s.agree("who is there by the history", s.present, is, nil)
}

func (s *system) take(w *WorkerMark) {
	if !w.Vanished.IsZero() || w.State == "gone" {
		delete(s.present, w.ID)
		return
	}
	s.present[w.ID] = fmt.Sprint(w.State, w.Tags, w.Kinds)
}

func (s *system) followHistory() {
	if s.replay == nil {
		return
	}
	events, err := s.ReadHistory(s.ctx(), s.replay.ID, 1000000)
	s.must(err)
	if s.replay.Last > 0 {
		events = events[1:]
	} else {
		s.replay = NewReplay()
	}
	for _, e := range events {
		came, _, err := Parse([]byte(e.Data))
		s.must(err)
		follows, err := s.replay.Take(e.ID, came)
		s.must(err)
		s.agree("an entry follows the one before", follows, true, nil)
		for i := range came.Workers {
			s.take(&came.Workers[i])
		}
	}
	s.followWorkers()
	s.agree("the history has all of the queue", s.replay.Whole, true, nil)
	is, err := keysOf(s.raw, s.name)
	s.must(err)
	if len(is.Hashes["rates"]) == 0 { // they were over by the server's clock, which has gone back since
		clear(s.replay.Hashes["rates"])
	}
	s.agree("Q1: what the history leaves", durable(s.replay, s.m.now), durable(is, s.m.now), nil)
}

// rebuild makes the queue again elsewhere, and compares the two.
func (s *system) rebuild(*rapid.T) {
	if s.replay == nil {
		return
	}
	s.copies++
	other, err := New(s.ground, fmt.Sprint(s.name, " copy ", s.copies), "producer", time.Second)
	s.must(err)
	told, err := other.Restore(s.ctx(), s.replay, "test", Continue{}, func(int) {})
	s.must(err)
	var cancel []string
	for id, j := range s.m.jobs {
		if j.state == "c" && j.told {
			cancel = append(cancel, id)
		}
	}
	slices.Sort(cancel)
	s.agree("jobs that were to be canceled", told, cancel, nil)
	found, err := other.Check(s.ctx(), false, 15*time.Second)
	s.agree("findings in a queue that was rebuilt", fmt.Sprint(found), "[]", err)
	want := durable(s.replay, s.m.now)
	for field := range want {
		if strings.HasPrefix(field, "claims ") || strings.HasPrefix(field, "links x") || strings.HasPrefix(field, "times o") {
			delete(want, field)
		}
	}
	there, err := keysOf(s.raw, other.Name)
	s.must(err)
	got := durable(there, s.m.now)
	for _, j := range s.m.jobs { // one that ran is unique again
		if field := "unique " + j.lane.Kind + "\t" + j.unique; j.state == "c" && j.unique != "" && want[field] == "" {
			want[field] = got[field]
			s.agree("it is one that ran", s.m.jobs[got[field]].state, "c", nil)
		}
	}
	s.agree("Q1: a queue that was rebuilt", got, want, nil)
}

// keysOf is what the keys of a queue have.
func keysOf(raw func(words ...string) (any, error), queue string) (*Replay, error) {
	now := NewReplay()
	for name, hash := range now.Hashes {
		value, err := raw("HGETALL", Prefix(queue)+name)
		if err != nil {
			return nil, err
		}
		got, _ := pairs(value)
		maps.Copy(hash, got)
	}
	for name, set := range now.Sets {
		value, err := raw("ZRANGE", Prefix(queue)+name, "0", "-1", "WITHSCORES")
		if err != nil {
			return nil, err
		}
		got, _ := pairs(value)
		for member, score := range got {
			n, err := strconv.ParseFloat(score, 64)
			if err != nil {
				return nil, err
			}
			set[member] = int64(n)
		}
	}
	for _, name := range []string{"producer:producer", "producer:sequence:one", "producer:sequence:other"} {
		value, err := raw("GET", Prefix(queue)+name)
		if err != nil {
			return nil, err
		}
		ttl, err := raw("PTTL", Prefix(queue)+name)
		if err != nil {
			return nil, err
		}
		if value != nil {
			now.Producers[name] = Answered{Text: text(value), For: fmt.Sprint(ttl) == "-1"}
		}
	}
	return now, nil
}

// durable is what of it has to agree. What is about workers is not in the history; and what the keys have of times and links when
// there is no job, and of what has ended and of rates when it is over, they lose by themselves.
func durable(r *Replay, nowUs int64) map[string]string {
	is := map[string]string{}
	jobs := r.Hashes["jobs"]
	for name, hash := range r.Hashes {
		for field, value := range hash {
			used, _ := strconv.ParseInt(value, 10, 64)
			if name == "rates" && used <= nowUs || name == "ended" && r.Sets["endings"][field] <= nowUs/1000 ||
				name == "unique" && jobs[value] == "" && r.Sets["endings"][value] <= nowUs/1000 {
				continue
			}
			is[name+" "+field] = value
		}
	}
	for name, set := range r.Sets {
		for member, score := range set {
			f := strings.Split(member, "\t")
			switch {
			case name == "endings" && score <= nowUs/1000:
				continue
			case name == "times" && (!strings.Contains("juo", f[0]) || jobs[f[1]] == ""):
				continue
			case name == "links" && (!strings.Contains("fx", f[0]) || jobs[f[2]] == ""):
				continue
			}
			is[name+" "+member] = fmt.Sprint(score)
		}
	}
	for name, p := range r.Producers {
		is[name] = fmt.Sprint(p.Text, " for good: ", p.For)
	}
	return is
}

// The model knows no offers. What becomes of them is in the history all the same: who was asked, and what a worker's refusal has
// left with its job.
func TestOffersAreInTheHistory(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	begun, err := l.BeginHistory(t.Context(), 1000)
	must(t, err)
	r := NewReplay()
	follow := func(what string) {
		t.Helper()
		events, err := l.ReadHistory(t.Context(), begun, 1000)
		must(t, err)
		r = NewReplay()
		for _, e := range events {
			came, _, err := Parse([]byte(e.Data))
			must(t, err)
			follows, err := r.Take(e.ID, came)
			must(t, err)
			want(t, "it follows", follows, true)
		}
		is, err := keysOf(func(words ...string) (any, error) { return l.raw(words...), nil }, "app")
		must(t, err)
		clear(is.Producers) // they are over a quarter of an hour after the last call
		clear(r.Producers)
		now := l.engine.Now().UnixMicro()
		if diff := cmp.Diff(durable(is, now), durable(r, now)); diff != "" {
			t.Errorf("%s (-keys +history):\n%s", what, diff)
		}
	}
	reserved := item("for bob")
	reserved.For, reserved.ForWithin = "bob", time.Hour
	l.enqueue(item("j"), reserved)
	token := l.begin("p/1", asked("anna"))[0].Token
	follow("offered")
	l.work("p/1", asked("anna"), report(Done{ID: "j", Token: token, Verb: "decline"}))
	follow("declined")
	claims := l.begin("p/2", asked("bob"), room("slot:2"))
	for _, c := range claims {
		l.work("p/2", asked("bob"), room("slot:2"), report(Done{ID: c.ID, Token: c.Token, Verb: "accept"}))
	}
	follow("accepted")
	want(t, "jobs that bob was offered", len(claims), 2)
	l.enqueue(item("k"))
	l.pass(2 * time.Hour)
	l.work("p/4", asked("cleo"), func(r *Report) { r.Register = true })
	follow("let pass, and what was bound is bound no more")

	other, err := New(l, "copy", "producer", time.Second)
	must(t, err)
	_, err = other.Restore(t.Context(), r, "test", Continue{}, func(int) {})
	must(t, err)
	found, err := other.Check(t.Context(), false, time.Minute)
	must(t, err)
	want(t, "findings", len(found), 0)
	sight, err := other.Look(t.Context(), "for bob", "")
	must(t, err)
	want(t, "a copy", sight.State+" "+sight.Record.For, "w ")
}
