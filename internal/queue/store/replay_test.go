package store

import (
	"strings"
	"testing"
)

// Whatever a sink gives back is an entry, or an error that says so.
func FuzzParse(f *testing.F) {
	l := newLab(f)
	_, err := l.BeginHistory(f.Context(), 1000)
	must(f, err)
	l.enqueue(item("a"), Item{ID: "b", Lane: Lane{Kind: "note"}, Rest: strings.Repeat("x", 70000)})
	events, err := l.ReadHistory(f.Context(), "-", 100)
	must(f, err)
	for _, e := range events {
		f.Add([]byte(e.Data))
	}
	f.Add([]byte("\x93\x01\xdd\xff\xff\xff\xff\xa0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		came, version, err := Parse(data)
		if err == nil && came == nil && version == historyVersion {
			t.Error("neither an entry nor an error")
		}
		if err == nil && came != nil {
			r := NewReplay()
			r.ID, r.Last = "1-0", came.Number-1
			_, _ = r.Take("1-1", came) // an error, and no panic
		}
	})
}

// What an old program would do to a queue with a history is a hole in it: its scripts are refused.
func TestAProgramWithoutHistoryIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, err := l.BeginHistory(t.Context(), 1000)
	must(t, err)
	value := l.raw("GET", l.key("clock"))
	if n := strings.Count(text(value), "\t"); n != 4 {
		t.Errorf("the clock is %q: scripts of before, which match at most three numbers, would go on", value)
	}
}

// A walk, a sink that stands still and one that goes on: the server keeps what the slower has not.
func TestWhatTheServerKeeps(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first, err := l.BeginHistory(t.Context(), 1000)
	must(t, err)
	l.enqueue(item("a"))
	events, err := l.ReadHistory(t.Context(), first, 100)
	must(t, err)
	last := events[len(events)-1].ID
	must(t, l.TookHistory(t.Context(), "slow", first))
	must(t, l.TookHistory(t.Context(), "quick", last))
	kept := func(n int) {
		t.Helper()
		state, err := l.HistoryState(t.Context())
		must(t, err)
		if state.Length != int64(n) {
			t.Errorf("the server keeps %+v, want %d entries", state, n)
		}
	}
	kept(len(events))
	must(t, l.TookHistory(t.Context(), "slow", last))
	kept(1)
}
