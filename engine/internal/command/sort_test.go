package command

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is wanted stands where a full sort would put it, up to the order of what
// is equal, and nothing is lost.
func TestSortPartPutsItsPartInPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 200).Draw(r, "weights")
		from := rapid.IntRange(0, len(weights)-1).Draw(r, "from")
		to := rapid.IntRange(from, len(weights)-1).Draw(r, "to")
		ranks := make([]sortRank, len(weights))
		for i, w := range weights {
			ranks[i] = sortRank{key: uint64(w), at: i}
		}
		byKey := func(a, b sortRank) int { return cmp.Compare(a.key, b.key) }
		sortPart(ranks, byKey, from, to)
		sorted := slices.Sorted(slices.Values(weights))
		for i := from; i <= to; i++ {
			if int(ranks[i].key) != sorted[i] {
				r.Fatalf("at %d is %v, want %d", i, ranks[i].key, sorted[i])
			}
		}
		seen := map[int]bool{}
		for _, rank := range ranks {
			if seen[rank.at] || weights[rank.at] != int(rank.key) {
				r.Fatalf("%v is not what it was", rank)
			}
			seen[rank.at] = true
		}
	})
}

// An adversary decides what each element weighs only when it is compared, and
// so that every pivot is a bad one (McIlroy, "A killer adversary for
// quicksort"). Without a bound on the depth 20,000 elements cost 29 million
// comparisons.
func TestSortPartIsNeverQuadratic(t *testing.T) {
	t.Parallel()
	const n = 20_000
	weights := make([]int, n) // 0 is not decided yet: more than all others
	decided, candidate, compared := 0, 0, 0
	decide := func(i int) {
		decided++
		weights[i] = decided
	}
	ranks := make([]sortRank, n)
	for i := range ranks {
		ranks[i].at = i
	}
	sortPart(ranks, func(a, b sortRank) int {
		compared++
		i, j := a.at, b.at
		if i != j && weights[i] == 0 && weights[j] == 0 {
			if i == candidate {
				decide(i)
			} else {
				decide(j)
			}
		}
		if weights[i] == 0 {
			candidate = i
		} else if weights[j] == 0 {
			candidate = j
		}
		return cmp.Compare(uint(weights[i])-1, uint(weights[j])-1)
	}, n/4, n/2)
	if most := 8 * n * bits.Len(n); compared > most {
		t.Errorf("%d comparisons of %d elements, want at most %d", compared, n, most)
	}
}

// A script, and what is stored, must not depend on the order that a set
// happens to have.
func TestSortOfASetFollowsFromTheData(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	for i := range 100 {
		run(t, c, "SADD", "s", "m"+strconv.Itoa(i))
	}
	run(t, c, "SORT", "s", "BY", "nosort", "STORE", "stored")
	if stored := texts(call(t, c, "LRANGE", "stored", "0", "-1")); len(stored) != 100 || !slices.IsSorted(stored) {
		t.Errorf("stored: %q", stored)
	}
	c.InScript = true
	if shown := texts(call(t, c, "SORT", "s", "BY", "nosort", "DESC", "LIMIT", "0", "2")); !slices.Equal(shown, []string{"m99", "m98"}) {
		t.Errorf("to a script: %q", shown)
	}
}

// The destination may be the source, and another key's expiry does not stay.
func TestSortStoresInPlace(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	run(t, c, "RPUSH", "l", "3", "1", "2")
	run(t, c, "EXPIRE", "l", "100")
	expect(t, c, "(integer) 3", "SORT", "l", "STORE", "l")
	if got := texts(call(t, c, "LRANGE", "l", "0", "-1")); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("%q", got)
	}
	expect(t, c, "(integer) -1", "TTL", "l")
	expect(t, c, "(integer) 0", "SORT", "missing", "STORE", "l")
	expect(t, c, "(integer) 0", "EXISTS", "l")
}

// Whatever window is wanted, it is that of the sorted whole: also where most of the elements
// are dropped on the way, and of texts that are the same up to a zero byte, of which the first
// in the list comes first.
func TestSortWindowIsAPartOfTheWhole(t *testing.T) {
	t.Parallel()
	const n = 6 * sortRoom
	c := newTestCtx()
	r := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		run(t, c, "RPUSH", "numbers", strconv.Itoa(r.IntN(n)-n/2))
		run(t, c, "RPUSH", "rising", fmt.Sprintf("%010d", i))
		run(t, c, "RPUSH", "falling", fmt.Sprintf("%010d", n-i))
		run(t, c, "RPUSH", "texts", fmt.Sprintf("a common beginning %d\x00%d", r.IntN(n/8), i))
	}
	stable := texts(call(t, c, "LRANGE", "texts", "0", "-1"))
	slices.SortStableFunc(stable, func(a, b string) int { return strings.Compare(untilZero(a), untilZero(b)) })
	if got := texts(call(t, c, "SORT", "texts", "ALPHA")); !slices.Equal(got, stable) {
		t.Error("what is equal is not in the order of the list")
	}
	for _, key := range []string{"numbers", "rising", "falling", "texts"} {
		for _, order := range []string{"ASC", "DESC"} {
			whole := texts(call(t, c, "SORT", key, order, "ALPHA"))
			if key != "texts" {
				whole = texts(call(t, c, "SORT", key, order))
			}
			for range 12 {
				from, count := r.IntN(n), r.IntN(1+r.IntN(n))
				if r.IntN(2) == 0 {
					from, count = r.IntN(20), r.IntN(2*sortRoom)
				}
				args := []string{"SORT", key, order, "LIMIT", strconv.Itoa(from), strconv.Itoa(count)}
				if key == "texts" {
					args = append(args, "ALPHA")
				}
				want := whole[from:min(from+count, n)]
				if got := texts(call(t, c, args...)); !slices.Equal(got, want) {
					t.Fatalf("%q is not a part of the whole", args)
				}
			}
		}
	}
}

// The first of a million take no memory for a million.
func TestSortKeepsFewOfMany(t *testing.T) {
	const n, mostBytes = 100_000, 300_000
	c := newTestCtx()
	for i := range n {
		run(t, c, "RPUSH", "l", strconv.Itoa(i*7919%n))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := texts(call(t, c, "SORT", "l", "LIMIT", "0", "3"))
	runtime.ReadMemStats(&after)
	if !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("%q", got)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > mostBytes {
		t.Errorf("SORT LIMIT 0 3 of %d allocated %d bytes, want at most %d", n, used, mostBytes)
	}
}

func BenchmarkSort(b *testing.B) {
	c := newTestCtx()
	r := rand.New(rand.NewPCG(1, 2))
	var value [16]byte
	for range 200_000 {
		for i := range value {
			value[i] = 'a' + byte(r.IntN(26))
		}
		run(b, c, "RPUSH", "l", string(value[:]))
	}
	for _, window := range [][]string{{"0", "10"}, {"100000", "10"}, {"0", "-1"}} {
		b.Run("Limit="+window[0]+","+window[1], func(b *testing.B) {
			for b.Loop() {
				call(b, c, "SORT", "l", "ALPHA", "LIMIT", window[0], window[1])
			}
		})
	}
}
