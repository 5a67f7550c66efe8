package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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
	}
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
	}
	s.agree("the history has all of the queue", s.replay.Whole, true, nil)
	is := s.keys()
	if len(is.Hashes["rates"]) == 0 { // they were over by the server's clock, which has gone back since
		clear(s.replay.Hashes["rates"])
	}
	s.agree("Q1: what the history leaves", s.durable(s.replay), s.durable(is), nil)
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
	want := s.durable(s.replay)
	for field := range want {
		if strings.HasPrefix(field, "claims ") || strings.HasPrefix(field, "links x") || strings.HasPrefix(field, "times o") {
			delete(want, field)
		}
	}
	copied := *s
	copied.name = other.Name
	got := s.durable(copied.keys())
	for _, j := range s.m.jobs { // one that ran is unique again
		if field := "unique " + j.lane.Kind + "\t" + j.unique; j.state == "c" && j.unique != "" && want[field] == "" {
			want[field] = got[field]
			s.agree("it is one that ran", s.m.jobs[got[field]].state, "c", nil)
		}
	}
	s.agree("Q1: a queue that was rebuilt", got, want, nil)
}

// keys is what the keys have.
func (s *system) keys() *Replay {
	now := NewReplay()
	for name, hash := range now.Hashes {
		value, err := s.raw("HGETALL", Prefix(s.name)+name)
		s.must(err)
		got, _ := pairs(value)
		maps.Copy(hash, got)
	}
	for name, set := range now.Sets {
		value, err := s.raw("ZRANGE", Prefix(s.name)+name, "0", "-1", "WITHSCORES")
		s.must(err)
		got, _ := pairs(value)
		for member, score := range got {
			n, err := strconv.ParseFloat(score, 64)
			s.must(err)
			set[member] = int64(n)
		}
	}
	value, err := s.raw("GET", Prefix(s.name)+"producer:producer")
	s.must(err)
	if value != nil {
		now.Producers["producer:producer"] = Answered{Text: text(value)}
	}
	return now
}

// durable is what of it has to agree. What is about workers is not in the history; and what the keys have of times and links when
// there is no job, and of what has ended and of rates when it is over, they lose by themselves.
func (s *system) durable(r *Replay) map[string]string {
	is := map[string]string{}
	jobs := r.Hashes["jobs"]
	for name, hash := range r.Hashes {
		for field, value := range hash {
			used, _ := strconv.ParseInt(value, 10, 64)
			if name == "rates" && used <= s.m.now || name == "ended" && r.Sets["endings"][field] <= s.m.ms() ||
				name == "unique" && jobs[value] == "" && r.Sets["endings"][value] <= s.m.ms() {
				continue
			}
			is[name+" "+field] = value
		}
	}
	for name, set := range r.Sets {
		for member, score := range set {
			f := strings.Split(member, "\t")
			switch {
			case name == "endings" && score <= s.m.ms():
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
		is[name] = p.Text
	}
	return is
}
