package ds

import (
	"strconv"
	"testing"
)

// Limits count when something is written: what is compact stays so until then,
// and what is not never becomes so again.
func TestLimitsCountFromTheNextWrite(t *testing.T) {
	t.Parallel()
	limits := Limits{HashEntries: 2, HashBytes: 3, SortedSetEntries: 2, SortedSetBytes: 3, SetIntegers: 2}
	hash, sorted, set := NewHash(), NewSortedSet(), NewSet()
	add := func(n int) {
		member := strconv.Itoa(n)
		hash.Set([]byte(member), nil)
		sorted.Add(member, 1)
		set.Add([]byte(member))
	}
	within := func(l *Limits) {
		hash.Within(l)
		sorted.Within(l)
		set.Within(l)
	}
	require := func(when string, compact bool) {
		t.Helper()
		names := [3]string{hash.Encoding(), sorted.Encoding(), set.Encoding()}
		want := [3]string{"hashtable", "skiplist", "hashtable"}
		if compact {
			want = [3]string{"listpack", "listpack", "intset"}
		}
		if names != want {
			t.Errorf("%s: %v, want %v", when, names, want)
		}
	}
	for n := range 5 {
		add(n)
	}
	require("within the usual limits", true)
	within(&limits)
	require("over new limits, nothing written yet", true)
	limits.HashEntries, limits.SortedSetEntries, limits.SetIntegers = 6, 6, 6
	add(5)
	require("at limits that were raised meanwhile", true)
	add(6)
	require("one more", false)
	within(&usual)
	require("never again", false)
}

func TestLimitsBoundTheLengthOfMembers(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits()
	limits.HashBytes, limits.SortedSetBytes = 3, 3
	hash, sorted := NewHash(), NewSortedSet()
	hash.Within(&limits)
	sorted.Within(&limits)
	for _, member := range []string{"abc", "abcd"} {
		hash.Set([]byte("f"), []byte(member))
		sorted.Add(member, 1)
		compact := member == "abc"
		if (hash.Encoding() == "listpack") != compact || (sorted.Encoding() == "listpack") != compact {
			t.Errorf("with %s: %s, %s", member, hash.Encoding(), sorted.Encoding())
		}
	}
	large := NewLargeSortedSet()
	large.Add("abcd", 1)
	if got := large.Compact(&limits).Encoding(); got != "skiplist" {
		t.Errorf("made compact with a member that is too long: %s", got)
	}
	limits.SortedSetBytes = 4
	if got := large.Compact(&limits).Encoding(); got != "listpack" {
		t.Errorf("not made compact: %s", got)
	}
}
