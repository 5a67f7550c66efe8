package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRatioPairsRoundsThatWerePlayed(t *testing.T) {
	t.Parallel()
	ours := &match{bouts: []bout{{rate: 10}, {rate: 30}, {rate: 50}}}
	peer := &match{bouts: []bout{{rate: 5}, {rate: 10}}}
	got := ratio(ours, peer, rateOf)
	if len(got) != 2 || got[0] != 2 || got[1] != 3 {
		t.Errorf("got %v, want 2 and 3", got)
	}
	if got := ratio(ours, nil, rateOf); got != nil {
		t.Errorf("got %v from a match that was not wanted", got)
	}
}

func TestAimWithoutMeasurementIsMissed(t *testing.T) {
	t.Parallel()
	s := &section{}
	s.atLeast("fast", 1, nil)
	if r := (&report{Sections: []*section{s}}); s.Aims[0].Pass {
		t.Errorf("passed: %+v", r)
	}
}

func TestMissesGetTheNearestReason(t *testing.T) {
	t.Parallel()
	s := &section{Title: "T", Columns: []string{"a"}, Rows: [][]string{{"x|y"}}}
	s.atLeast("Redis, rate", 2, []float64{1})
	s.atLeast("Redis, other", 2, []float64{1})
	s.atLeast("elsewhere", 2, []float64{1})
	s.atLeast("Redis, met", 2, []float64{3})
	r := &report{Sections: []*section{s}}
	r.explain(map[string]string{"Redis": "slow", "Redis, rate": "slower"})
	for i, want := range []string{"slower", "slow", "not explained yet", ""} {
		if got := s.Aims[i].Reason; got != want {
			t.Errorf("the reason of %q is %q, want %q", s.Aims[i].What, got, want)
		}
	}
	page := markdownOf(r, "Title")
	for _, want := range []string{"# Title", "| x\\|y |", "MISS, Redis, rate: slower", "Of 4 aims 1 are met and 3 missed"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

func TestBrokenLimitsShowInTheirRow(t *testing.T) {
	t.Parallel()
	m := &match{kind: fairKind, limit: 5, bouts: []bout{{turns: 50, over: 10, peak: 7}, {turns: 50, over: 0, peak: 5}}}
	if got, want := brokenOf(m), "10 (10.0 %), up to 7 of 5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m = &match{kind: signalboxKind, hold: time.Millisecond, bouts: []bout{{turns: 5, overlaps: 1}}}
	if got, want := brokenOf(m), "1 shared, 0 tokens out of order"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEachRoundAnotherContestantIsFirst(t *testing.T) {
	t.Parallel()
	var matches []*match
	for _, clients := range []int{1, 10} {
		for _, name := range []string{"a", "b", "c"} {
			matches = append(matches, &match{name: name, clients: clients})
		}
	}
	for round, want := range []string{"a1 b1 c1 a10 b10 c10", "b1 c1 a1 b10 c10 a10", "c1 a1 b1 c10 a10 b10"} {
		var got []string
		for _, m := range orderOf(matches, round, 3) {
			got = append(got, fmt.Sprint(m.name, m.clients))
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("round %d is %s, want %s", round, got, want)
		}
	}
}

func TestOneBrokenLockOfOursIsAMiss(t *testing.T) {
	t.Parallel()
	matches := []*match{
		{kind: signalboxKind, bouts: []bout{{overlaps: 1}}},
		{kind: bookKind, bouts: []bout{{overlaps: 100}}},
		{kind: signalboxHandoff, bouts: []bout{{disorders: 2}}},
	}
	s := &section{}
	neverBroken(s, matches)
	if a := s.Aims[0]; a.Pass || a.Measured != 3 {
		t.Errorf("got %+v, want a miss of 3", a)
	}
	neverBroken(s, matches[1:2])
	if a := s.Aims[1]; a.Pass {
		t.Errorf("passed without a match of ours: %+v", a)
	}
}
