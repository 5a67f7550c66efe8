package sequence

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
)

func TestIDs(t *testing.T) {
	for _, text := range []string{"1-0", "0-1", "1700000000000-3", "9223372036854775807-9223372036854775807"} {
		id, err := Parse(text)
		if err != nil || id.String() != text {
			t.Errorf("%s: %v, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "-", "1", "0-0", "01-1", "1-01", "+1-1", "1--1", "1-1-1", " 1-1", "9223372036854775808-0", "1-18446744073709551616", "a-b"} {
		if id, err := Parse(text); !errors.Is(err, history.ErrDamaged) {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
}

// list is a sink's content.
func list(entries ...history.Entry) func(context.Context, string) iter.Seq2[history.Entry, error] {
	return func(_ context.Context, after string) iter.Seq2[history.Entry, error] {
		return func(yield func(history.Entry, error) bool) {
			start, err := ParseAfter(after)
			if err != nil {
				yield(history.Entry{}, err)
				return
			}
			for _, entry := range entries {
				if id, _ := Parse(entry.ID); id.After(start) && !yield(entry, nil) {
					return
				}
			}
		}
	}
}

func TestWhoWroteMeanwhile(t *testing.T) {
	kept := list(history.Entry{ID: "1-0"}, history.Entry{ID: "2-0"}, history.Entry{ID: "3-0"})
	for name, test := range map[string]struct {
		seen, position string
		entries        []string
		fresh          int // negative: a gap
	}{
		"nobody":                        {"3-0", "3-0", []string{"4-0", "5-0"}, 2},
		"another, the same":             {"1-0", "3-0", []string{"2-0", "3-0", "4-0"}, 1},
		"another, all of it":            {"1-0", "3-0", []string{"2-0", "3-0"}, 0},
		"another, what is unknown here": {"1-0", "3-0", []string{"4-0"}, -1},
		"another, with a part":          {"1-0", "3-0", []string{"2-0", "4-0"}, -1},
		"who went back":                 {"4-0", "3-0", []string{"5-0"}, -1},
	} {
		var entries []history.Entry
		for _, id := range test.entries {
			entries = append(entries, history.Entry{ID: id})
		}
		seen, _ := Parse(test.seen)
		position, _ := Parse(test.position)
		fresh, err := Kept{seen, position, kept}.New(t.Context(), entries)
		if test.fresh < 0 != errors.Is(err, history.ErrGap) || test.fresh >= 0 && (err != nil || len(fresh) != test.fresh) {
			t.Errorf("%s: %v, %v", name, fresh, err)
		}
	}
}
