package ds

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// small is what the tests of rows need of a small collection.
type small interface {
	Len() int
	change(r *rand.Rand, name []byte)
	show(r *rand.Rand) []string
	clone() small
}

type (
	smallHash   struct{ *Hash }
	smallSet    struct{ *Set }
	smallSorted struct{ *SortedSet }
)

func (h smallHash) change(r *rand.Rand, name []byte) {
	if r.IntN(3) == 0 {
		h.Delete(name)
	} else {
		h.Set(name, fmt.Append(nil, r.IntN(3000)))
	}
}

func (h smallHash) show(r *rand.Rand) (shown []string) {
	switch r.IntN(4) {
	case 0:
		value, _ := h.Get([]byte("1"))
		return []string{value}
	case 1:
		field, value, _ := h.Random(r)
		return []string{field, value}
	case 2:
		h.Scan(0, func(field, value string) { shown = append(shown, field, value) })
		return shown
	}
	for field, value := range h.All() {
		shown = append(shown, field, value)
	}
	return shown
}

func (h smallHash) clone() small { return smallHash{h.Clone()} }

func (s smallSet) change(r *rand.Rand, name []byte) {
	if r.IntN(3) == 0 {
		s.Remove(name)
	} else {
		s.Add(name)
	}
}

func (s smallSet) show(r *rand.Rand) []string {
	if r.IntN(2) == 0 {
		member, _ := s.Random(r)
		return []string{member}
	}
	return slices.Collect(s.All())
}

func (s smallSet) clone() small { return smallSet{s.Clone()} }

func (z smallSorted) change(r *rand.Rand, name []byte) {
	if r.IntN(3) == 0 {
		z.Remove(name)
	} else {
		z.AddBytes(name, float64(r.IntN(100)))
	}
}

func (z smallSorted) show(r *rand.Rand) (shown []string) {
	switch r.IntN(4) {
	case 0:
		member, _ := z.At(r.IntN(z.Len() + 1))
		return []string{member}
	case 1:
		member, _, _ := z.Random(r)
		return []string{member}
	case 2:
		for member := range z.Descend(z.Len()) {
			shown = append(shown, member)
		}
		return shown
	}
	for member := range z.All() {
		shown = append(shown, member)
	}
	return shown
}

func (z smallSorted) clone() small { return smallSorted{z.Clone()} }

// TestWhatASmallCollectionShowsStaysAsItIs: strings that lie in a row, and copies of the
// row, are not changed by what is done to the collection afterwards, though it changes rows
// in place that nobody has looked into.
func TestWhatASmallCollectionShowsStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func() small{
		"hash":       func() small { return smallHash{NewHash()} },
		"set":        func() small { return smallSet{NewSet()} },
		"sorted set": func() small { return smallSorted{NewSortedSet()} },
	} {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(1, seed))
			all, kept := []small{create()}, keptStrings{}
			for range 60 {
				c := all[r.IntN(len(all))]
				c.change(r, []byte(strings.Repeat("x", r.IntN(5))+fmt.Sprint(r.IntN(30))))
				if r.IntN(4) == 0 {
					kept.keep(c.show(r))
				}
				if r.IntN(10) == 0 {
					all = append(all, c.clone())
				}
				if at := kept.changed(); at >= 0 {
					t.Fatalf("%s, seed %d: %q has become %q", name, seed, kept.were[at], kept.are[at])
				}
			}
		}
	}
}

// keptStrings are strings that were handed out, and copies of them as they were.
type keptStrings struct{ are, were []string }

func (k *keptStrings) keep(shown []string) {
	for _, s := range shown {
		k.are, k.were = append(k.are, s), append(k.were, strings.Clone(s))
	}
}

// changed returns which string is no longer as it was, or -1.
func (k *keptStrings) changed() int {
	for i, s := range k.are {
		if s != k.were[i] {
			return i
		}
	}
	return -1
}

// TestExpectedElementsAllocateOneRow: what is added to a new collection after Expect lies in
// the room that was made for it, in whatever order it comes.
func TestExpectedElementsAllocateOneRow(t *testing.T) {
	var words, integers [][]byte
	for i := range 10 {
		words = append(words, fmt.Append(nil, "member", (i*7)%10))
		integers = append(integers, fmt.Append(nil, (i*7919)%10_000))
	}
	for name, fill := range map[string]func() int{
		"hash": func() int {
			h := NewHash()
			h.Expect(words)
			for i := 0; i < len(words); i += 2 {
				h.Set(words[i], words[i+1])
			}
			return h.MemoryBytes()
		},
		"set":      func() int { return filledSet(words).MemoryBytes() },
		"integers": func() int { return filledSet(integers).MemoryBytes() },
		"sorted set": func() int {
			z := NewSortedSet()
			z.Expect(len(words), func(i int) ([]byte, float64) { return words[i], float64(i) })
			for i, word := range words {
				z.AddBytes(word, float64(i))
			}
			return z.MemoryBytes()
		},
		"list, front": func() int { return filledList(words, true).MemoryBytes() },
		"list, back":  func() int { return filledList(words, false).MemoryBytes() },
	} {
		const header, row = 32, 112 // ten elements of 7 bytes with what tells them apart
		if bytes := fill(); bytes > header+row {
			t.Errorf("%s: %d bytes", name, bytes)
		}
		if n := testing.AllocsPerRun(10, func() { fill() }); n > 3 { // the collection and its row, which the race detector makes two of
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func filledSet(members [][]byte) *Set {
	s := NewSet()
	s.Expect(members)
	for _, member := range members {
		s.Add(member)
	}
	return s
}

func filledList(elements [][]byte, front bool) *Deque {
	d := NewDeque()
	d.Expect(elements, front)
	for _, element := range elements {
		if front {
			d.PushFront(view(element))
		} else {
			d.PushBack(view(element))
		}
	}
	return d
}

// A collection of which most has been taken away holds about as much as it says, wherever that was and whoever was shown
// something: queues and windows of time take away at one end what they have added at the other.
func TestWhatIsTakenAwayIsNotHeld(t *testing.T) {
	const sets, members = 1000, 60
	for name, remove := range map[string]func(z *SortedSet){
		"at the front, one by one": func(z *SortedSet) {
			for z.Len() > 1 {
				member, _ := z.At(0)
				z.RemoveString(member)
			}
		},
		"at the end, one by one": func(z *SortedSet) {
			for z.Len() > 1 {
				member, _ := z.At(z.Len() - 1)
				z.RemoveString(member)
			}
		},
		"at the front":        func(z *SortedSet) { z.RemoveRange(0, members-2) },
		"in the middle":       func(z *SortedSet) { z.RemoveRange(1, members-1) },
		"in the middle first": func(z *SortedSet) { z.RemoveRange(1, members-2); z.RemoveRange(0, 0) },
	} {
		before, said := liveBytes(), 0
		kept := make([]*SortedSet, sets)
		for i := range kept {
			z := NewSortedSet()
			for n := range members {
				z.Add(fmt.Sprint("member ", n), float64(n))
			}
			remove(z)
			kept[i], said = z, said+z.MemoryBytes()
		}
		held := int(liveBytes()-before) - 8*sets
		if held > 2*said+64*sets {
			t.Errorf("%s: %d bytes are held, %d are counted", name, held/sets, said/sets)
		}
		runtime.KeepAlive(kept)
	}
}
