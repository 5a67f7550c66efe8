package command

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
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
		elements := make([]sortElement, len(weights))
		for i, w := range weights {
			elements[i] = sortElement{text: strconv.Itoa(i), score: float64(w)}
		}
		byScore := func(a, b sortElement) int { return cmp.Compare(a.score, b.score) }
		sortPart(elements, byScore, from, to)
		sorted := slices.Sorted(slices.Values(weights))
		for i := from; i <= to; i++ {
			if int(elements[i].score) != sorted[i] {
				r.Fatalf("at %d is %v, want %d", i, elements[i].score, sorted[i])
			}
		}
		seen := map[string]bool{}
		for _, e := range elements {
			if index, _ := strconv.Atoi(e.text); seen[e.text] || weights[index] != int(e.score) {
				r.Fatalf("%v is not what it was", e)
			}
			seen[e.text] = true
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
	elements := make([]sortElement, n)
	for i := range elements {
		elements[i] = sortElement{text: strconv.Itoa(i)}
	}
	sortPart(elements, func(a, b sortElement) int {
		compared++
		i, _ := strconv.Atoi(a.text)
		j, _ := strconv.Atoi(b.text)
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
