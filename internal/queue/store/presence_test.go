package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// presence is what the history says of workers behind an entry, a line each, and the last entry.
func (l *lab) presence(after string) (lines []string, last string) {
	l.t.Helper()
	events, err := l.ReadHistory(l.t.Context(), after, 1000)
	must(l.t, err)
	for _, e := range events {
		if last = e.ID; e.ID == after {
			continue
		}
		came, _, err := Parse([]byte(e.Data))
		must(l.t, err)
		for _, w := range came.Workers {
			line := fmt.Sprint(w.ID, " ", w.State, " ", w.Tags, w.Kinds, w.Room)
			if !w.Vanished.IsZero() {
				line = fmt.Sprint(w.ID, " vanished after ", w.Vanished.Sub(epoch).Round(time.Second))
			} else if w.Here {
				line += " here"
			}
			lines = append(lines, line)
		}
	}
	return lines, last
}

// Each change of what a worker is at is in the history, once, with what it can do; a heartbeat leaves no entry.
func TestTheHistoryHasWorkers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.begin("p/0", state("away"), room("call:1,chat:3"))
	last, err := l.BeginHistory(t.Context(), 1000)
	must(t, err)
	expect := func(what string, want ...string) {
		t.Helper()
		var lines []string
		lines, last = l.presence(last)
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("who is there already", "p/0 away [] [note] [{call 0 1} {chat 0 3}] here")
	l.begin("p/1", tags("de,en"), room("slot:2"))
	expect("it logs in", "p/1 online [de en] [note] [{slot 0 2}]")
	entries := l.raw("XLEN", l.key("history"))
	for range 3 {
		l.pass(5 * time.Second)
		l.work("p/0", state("away"), room("call:1,chat:3"))
		l.work("p/1", tags("de,en"), room("slot:2"))
	}
	want(t, "entries after heartbeats", l.raw("XLEN", l.key("history")), entries)
	l.work("p/1", room("slot:2"))
	l.work("p/1", room("slot:2"))
	expect("it has other tags", "p/1 online [] [note] [{slot 0 2}]")
	l.work("p/1", state("away"), room("slot:2"))
	l.enqueue(item("j"))
	claims := l.work("p/1", room("slot:2")).Claims
	expect("away and back", "p/1 away [] [note] [{slot 0 2}]", "p/1 online [] [note] [{slot 1 2}]")
	l.work("p/1", state("draining"), over(claims[0], "done"))
	l.work("p/1", state("gone"))
	expect("it leaves", "p/1 draining [] [note] [{slot 0 1}]", "p/1 gone [] [note] [{slot 0 1}]")
	l.pass(time.Hour)
	l.begin("p/2")
	expect("the other has vanished", "p/0 vanished after 30s", "p/2 online [] [note] [{slot 0 1}]")
}

// Who lets an offer pass is away from then on, and is told so once.
func TestAMissedOfferIsInTheHistory(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	last, err := l.BeginHistory(t.Context(), 1000)
	must(t, err)
	l.enqueue(item("j"))
	l.begin("p/1", asked("anna"))
	l.pass(20 * time.Second)
	l.begin("p/2", asked("bob"))
	l.work("p/1", asked("anna"))
	l.work("p/1", asked("anna"), state("away"))
	lines, _ := l.presence(last)
	var states []string
	for _, line := range lines {
		states = append(states, strings.Join(strings.Fields(line)[:2], " "))
	}
	want(t, "states", strings.Join(states, ", "), "p/1 online, p/1 missed, p/2 online, p/1 away")
}

// An idle queue of which all workers have died knows them until somebody has found them, as long as it has a history.
func TestWhoVanishesFromAnIdleQueueIsFound(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.begin("p/1") // its keys would expire
	last, err := l.BeginHistory(t.Context(), 1000)
	must(t, err)
	_, last = l.presence(last)
	l.pass(26 * time.Hour)
	l.enqueue(item("j"))
	lines, _ := l.presence(last)
	if diff := cmp.Diff([]string{"p/1 vanished after 15s"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, l.EndHistory(t.Context()))
	l.work("p/2", over(l.begin("p/2")[0], "done"))
	l.pass(25 * time.Hour)
	want(t, "keys of an idle queue without one", fmt.Sprint(l.raw("KEYS", "*")), "[]")
}
