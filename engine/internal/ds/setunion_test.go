package ds

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// A union is what adding all members to an empty set gives: the same members in the same form,
// and nothing that is done to it reaches the sets that it was made of.
func TestUnionOfIsAddingAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		limits := usual
		limits.SetIntegers = rapid.IntRange(1, 30).Draw(r, "limit")
		var sets []*Set
		var before [][]string
		want := NewSet()
		want.Within(&limits)
		for range rapid.IntRange(1, 4).Draw(r, "sets") {
			s := NewSet()
			word := rapid.SampledFrom([]string{"", "word", "a word that is long enough for a table "}).Draw(r, "word")
			for range rapid.IntRange(0, 200).Draw(r, "size") {
				s.Add([]byte(word + strconv.Itoa(rapid.IntRange(0, 99).Draw(r, "member"))))
			}
			if rapid.Bool().Draw(r, "was a table") {
				for i := range usual.SetIntegers + rowElements {
					s.Add(fmt.Appendf(nil, "passing %d", i))
				}
				for i := range usual.SetIntegers + rowElements {
					s.Remove(fmt.Appendf(nil, "passing %d", i))
				}
			}
			sets, before = append(sets, s), append(before, slices.Sorted(s.All()))
			for member := range s.All() {
				want.Add([]byte(member))
			}
		}
		got := UnionOf(sets, &limits)
		if members := slices.Sorted(got.All()); !slices.Equal(members, slices.Sorted(want.All())) || got.Len() != len(members) {
			r.Fatalf("got %q", members)
		}
		if got.Encoding() != want.Encoding() {
			r.Fatalf("%d members, at most %d integers: got %s, want %s", got.Len(), limits.SetIntegers, got.Encoding(), want.Encoding())
		}
		for member := range got.All() {
			got.Remove([]byte(member))
		}
		got.Add([]byte("new"))
		for i, s := range sets {
			if !slices.Equal(slices.Sorted(s.All()), before[i]) || s.Has([]byte("new")) {
				r.Fatalf("a source has changed")
			}
		}
	})
}

// A set of a million is united in a few large pieces, and not member by member.
func TestUnionOfCopiesTables(t *testing.T) {
	const n = 100_000
	s, small := NewSet(), NewSet()
	for i := range n {
		s.Add(fmt.Appendf(nil, "member %d", i))
	}
	small.Add([]byte("one more"))
	allocations := testing.AllocsPerRun(1, func() {
		if UnionOf([]*Set{small, s, small}, &usual).Len() != n+1 {
			t.Error("members are missing")
		}
	})
	if allocations > n/100 {
		t.Errorf("%.0f allocations for a union of %d", allocations, n)
	}
}

func BenchmarkUnionOf(b *testing.B) {
	s := NewSet()
	for _, key := range benchKeys(b) {
		s.Add([]byte(key))
	}
	b.ReportAllocs()
	for b.Loop() {
		UnionOf([]*Set{s}, &usual)
	}
}
