// Package historytest is what a history.Sink promises, as tests: to be run by whoever makes one.
//
//	func TestSink(t *testing.T) {
//		historytest.Exercise(t, func(t *testing.T) func() (history.Sink, error) {
//			folder := t.TempDir()
//			return func() (history.Sink, error) { return files.Open(folder) }
//		})
//	}
package historytest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
)

// Queue is the queue whose history the tests keep.
const Queue = "app"

// Exercise tests sinks. place returns a new place to keep a history in, as what opens a sink on it; that is closed before it is
// opened again.
func Exercise(t *testing.T, place func(t *testing.T) (open func() (history.Sink, error))) {
	for name, test := range map[string]func(*testing.T, *store){
		"a new one is empty":                      empty,
		"what was appended is read":               appended,
		"order is by numbers":                     numeric,
		"reading goes on anywhere":                anywhere,
		"the same entries again are kept once":    again,
		"what does not follow is refused":         gaps,
		"the history of another queue is refused": otherQueue,
		"what is no entry is refused":             noEntries,
		"it is there when opened again":           reopened,
		"appending goes on while one reads":       whileReading,
		"a context that has ended":                ended,
		"entries of any size":                     sizes,
		"a closed one says so":                    closed,
		"random calls":                            random,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store{open: place(t)}
			s.reopen(t)
			t.Cleanup(func() { must(t, s.sink.Close()) })
			test(t, s)
		})
	}
}

// store is a place with a sink on it, and what is to be in it.
type store struct {
	open func() (history.Sink, error)
	sink history.Sink
	want []history.Entry
}

func (s *store) reopen(t *testing.T) {
	t.Helper()
	if s.sink != nil {
		must(t, s.sink.Close())
	}
	var err error
	s.sink, err = s.open()
	must(t, err)
}

// keep appends entries that follow.
func (s *store) keep(t *testing.T, entries ...history.Entry) {
	t.Helper()
	must(t, s.sink.Append(t.Context(), Queue, entries))
	s.want = append(s.want, entries...)
}

// check compares all that is kept.
func (s *store) check(t *testing.T) {
	t.Helper()
	queue, position := "", ""
	if len(s.want) > 0 {
		queue, position = Queue, s.want[len(s.want)-1].ID
	}
	if got, err := s.sink.Queue(t.Context()); err != nil || got != queue {
		t.Errorf("the queue is %q, want %q (%v)", got, queue, err)
	}
	if got, err := s.sink.Position(t.Context()); err != nil || got != position {
		t.Errorf("the position is %q, want %q (%v)", got, position, err)
	}
	same(t, s.sink.Read(t.Context(), ""), s.want)
}

func same(t *testing.T, read iter.Seq2[history.Entry, error], want []history.Entry) {
	t.Helper()
	i := 0
	for got, err := range read {
		must(t, err)
		if i == len(want) {
			t.Fatalf("after all %d entries there is %s", i, got.ID)
		}
		if got.ID != want[i].ID || string(got.Data) != string(want[i].Data) {
			t.Fatalf("entry %d is %s %.60q, want %s %.60q", i, got.ID, got.Data, want[i].ID, want[i].Data)
		}
		i++
	}
	if i < len(want) {
		t.Fatalf("%d entries were read, want %d", i, len(want))
	}
}

// refuse appends what cannot be kept, and looks whether it was left.
func (s *store) refuse(t *testing.T, queue string, want error, entries ...history.Entry) {
	t.Helper()
	if err := s.sink.Append(t.Context(), queue, entries); !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
	s.check(t)
}

// Entries makes entries, from a number on.
func Entries(from, n int) []history.Entry {
	entries := make([]history.Entry, n)
	for i := range entries {
		number := from + i
		entries[i] = history.Entry{ID: fmt.Sprintf("%d-%d", 1_700_000_000_000+number/3, number%3), Data: fmt.Appendf(nil, "entry %d\x00\xff", number)}
	}
	return entries
}

func entry(id string) history.Entry { return history.Entry{ID: id, Data: []byte(id)} }

func empty(t *testing.T, s *store) {
	s.check(t)
	must(t, s.sink.Append(t.Context(), Queue, nil))
	same(t, s.sink.Read(t.Context(), "5-1"), nil)
	s.reopen(t)
	s.check(t)
}

func appended(t *testing.T, s *store) {
	s.keep(t, Entries(0, 1)...)
	s.check(t)
	s.keep(t, Entries(1, 1000)...)
	s.keep(t, Entries(1001, 7)...)
	s.check(t)
}

func numeric(t *testing.T, s *store) {
	s.keep(t, entry("0-1"), entry("9-9"), entry("9-10"), entry("10-0"))
	s.keep(t, entry("10-9"), entry("10-100"), entry("100-1"), entry("9223372036854775807-9223372036854775807"))
	s.check(t)
	same(t, s.sink.Read(t.Context(), "9-9"), s.want[2:])
	same(t, s.sink.Read(t.Context(), "10-10"), s.want[5:])
	s.refuse(t, Queue, history.ErrGap, entry("99-1"))
}

func anywhere(t *testing.T, s *store) {
	s.keep(t, entry("2-0"), entry("2-5"), entry("4-0"))
	s.keep(t, entry("6-0"), entry("6-1"))
	for after, want := range map[string]int{"1-0": 0, "2-0": 1, "2-4": 1, "2-5": 2, "3-0": 2, "5-7": 3, "6-0": 4, "6-1": 5, "9-0": 5} {
		same(t, s.sink.Read(t.Context(), after), s.want[want:])
	}
	for _, err := range s.sink.Read(t.Context(), "six") {
		if err == nil {
			t.Error("it has read on after no entry")
		}
	}
	for _, err := range s.sink.Read(t.Context(), "") {
		must(t, err)
		break // which leaves nothing open
	}
	s.keep(t, entry("7-0"))
	s.check(t)
}

func again(t *testing.T, s *store) {
	all := Entries(0, 100)
	s.keep(t, all[:40]...)
	for _, part := range [][]history.Entry{all[:40], all[10:20], all[39:40], all[:1]} {
		must(t, s.sink.Append(t.Context(), Queue, part))
	}
	s.check(t)
	must(t, s.sink.Append(t.Context(), Queue, all[30:60])) // some of it
	s.want = all[:60:60]
	s.check(t)
	s.reopen(t)
	must(t, s.sink.Append(t.Context(), Queue, all))
	s.want = all
	s.check(t)
}

func gaps(t *testing.T, s *store) {
	s.refuse(t, Queue, history.ErrGap, entry("2-0"), entry("1-0"))
	s.refuse(t, Queue, history.ErrGap, entry("2-0"), entry("2-0"))
	s.keep(t, entry("2-0"), entry("4-0"), entry("6-0"))
	s.refuse(t, Queue, history.ErrGap, entry("1-0"))
	s.refuse(t, Queue, history.ErrGap, entry("3-0"))
	s.refuse(t, Queue, history.ErrGap, entry("5-0"), entry("6-0"), entry("7-0"))
	s.refuse(t, Queue, history.ErrGap, entry("2-0"), entry("6-0"), entry("7-0"))
	s.refuse(t, Queue, history.ErrGap, entry("4-0"), entry("7-0"))
	s.refuse(t, Queue, history.ErrGap, entry("7-0"), entry("8-0"), entry("8-0"))
	s.refuse(t, Queue, history.ErrGap, history.Entry{ID: "6-0", Data: []byte("another")})
	s.keep(t, entry("7-0"))
	s.check(t)
}

func otherQueue(t *testing.T, s *store) {
	s.keep(t, entry("1-0"))
	s.refuse(t, "another", history.ErrOtherQueue, entry("2-0"))
	s.refuse(t, "another", history.ErrOtherQueue, entry("1-0"))
	s.refuse(t, "another", history.ErrOtherQueue)
	s.reopen(t)
	s.refuse(t, "another", history.ErrOtherQueue, entry("2-0"))
	s.keep(t, entry("2-0"))
	s.check(t)
}

func noEntries(t *testing.T, s *store) {
	for _, id := range []string{"", "1", "0-0", "-1-0", "1-0-0", "01-0", "1-x", "9223372036854775808-0"} {
		s.refuse(t, Queue, history.ErrDamaged, entry("1-0"), entry(id))
	}
	if err := s.sink.Append(t.Context(), "", Entries(0, 1)); err == nil {
		t.Error("a queue without a name has a history")
	}
	s.check(t)
}

func reopened(t *testing.T, s *store) {
	for i := range 5 {
		s.keep(t, Entries(10*i, 10)...)
		s.reopen(t)
		s.check(t)
	}
}

func whileReading(t *testing.T, s *store) {
	s.keep(t, Entries(0, 3000)...)
	before, i := slices.Clone(s.want), 0
	for got, err := range s.sink.Read(t.Context(), "") {
		must(t, err)
		if i < len(before) && got.ID != before[i].ID {
			t.Fatalf("entry %d is %s, want %s", i, got.ID, before[i].ID)
		}
		if i%1000 == 0 && i < len(before) {
			s.keep(t, Entries(3000+i, 1000)...)
			if _, err := s.sink.Position(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		i++
	}
	if i < len(before) {
		t.Errorf("%d entries were read, and %d were there when it began", i, len(before))
	}
	s.check(t)
}

func ended(t *testing.T, s *store) {
	s.keep(t, Entries(0, 1000)...)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.sink.Append(over, Queue, Entries(1000, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	var last error
	for _, err := range s.sink.Read(over, "") {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the error of a reader is %v", last)
	}
	s.check(t)
	s.keep(t, Entries(1000, 1)...)
	s.check(t)
}

func sizes(t *testing.T, s *store) {
	random := rand.New(rand.NewPCG(1, 1))
	for i, size := range []int{0, 1, 4095, 300_000, 0, 6 << 20, 17} {
		data := make([]byte, size)
		for at := range data {
			data[at] = byte(random.Uint32())
		}
		s.keep(t, history.Entry{ID: fmt.Sprint(i+1, "-0"), Data: data})
	}
	s.check(t)
	s.reopen(t)
	s.check(t)
}

func closed(t *testing.T, s *store) {
	s.keep(t, Entries(0, 2)...)
	must(t, s.sink.Close())
	if err := s.sink.Append(t.Context(), Queue, Entries(2, 1)); err == nil {
		t.Error("a closed sink keeps entries")
	}
	for _, err := range s.sink.Read(t.Context(), "") {
		if err == nil {
			t.Error("a closed sink reads")
		}
	}
	must(t, s.sink.Close())
	s.sink = nil
	s.reopen(t)
	s.check(t)
}

// random calls overlap what is kept, skip some of it, or follow it; a model knows what is to become of each.
func random(t *testing.T, s *store) {
	random := rand.New(rand.NewPCG(7, 7))
	all := Entries(0, 3000)
	kept := 0
	for range 150 {
		from := min(max(0, kept-20+random.IntN(21)), len(all)-1) // never a hole: that nobody could know
		call := slices.Clone(all[from:min(len(all), from+random.IntN(60))])
		refused := false
		if len(call) > 3 && random.IntN(4) == 0 { // one is missing
			at := 1 + random.IntN(len(call)-2)
			refused = from+at < kept && from+at+1 < from+len(call)
			if call = slices.Delete(call, at, at+1); !refused {
				continue
			}
		}
		err := s.sink.Append(t.Context(), Queue, call)
		if refused != errors.Is(err, history.ErrGap) || err != nil && !refused {
			t.Fatalf("entries %d to %d where %d are kept: %v", from, from+len(call), kept, err)
		}
		if !refused {
			kept = max(kept, from+len(call))
		}
		if random.IntN(20) == 0 {
			s.reopen(t)
		}
	}
	s.want = all[:kept]
	s.check(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
