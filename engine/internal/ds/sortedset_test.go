package ds

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// inOrder returns the members of a model as a sorted set should order them.
func inOrder(model map[string]float64) []ranked {
	all := make([]ranked, 0, len(model))
	for member, score := range model {
		all = append(all, ranked{score, member})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
	})
	return all
}

func requireSortedSet(t fataler, z *SortedSet, model map[string]float64) {
	t.Helper()
	want := inOrder(model)
	if z.Len() != len(want) {
		t.Fatalf("Len() = %d, want %d", z.Len(), len(want))
	}
	rank := 0
	for member, score := range z.All() {
		if rank >= len(want) || want[rank] != (ranked{score, member}) {
			t.Fatalf("All() gives %q %v at rank %d of %d", member, score, rank, len(want))
		}
		rank++
	}
	if rank != len(want) {
		t.Fatalf("All() ends after %d of %d", rank, len(want))
	}
	scanned := map[string]float64{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = z.Scan(cursor, func(member string, score float64) { scanned[member] = score })
	}
	if !maps.Equal(scanned, model) {
		t.Fatalf("Scan visits %v, want %v", scanned, model)
	}
	if z.row.large() != nil && z.row.large().order.root != nil {
		requireNode(t, z.row.large().order.root, true)
	}
}

// requireNode checks the promises of rankTree below n, and returns its height.
func requireNode(t fataler, n *node, isRoot bool) (height int) {
	t.Helper()
	if len(n.items) == 0 || len(n.items) > nodeMax || cap(n.items) > nodeMax {
		t.Fatalf("a node has %d items and room for %d", len(n.items), cap(n.items))
	}
	if n.kids == nil {
		return 0
	}
	if len(n.kids) != len(n.items) || len(n.counts) != len(n.items) || isRoot && len(n.kids) < 2 {
		t.Fatalf("a node has %d items, %d kids, %d counts", len(n.items), len(n.kids), len(n.counts))
	}
	height = requireNode(t, n.kids[0], false)
	for i, kid := range n.kids {
		if n.counts[i] != kid.size() {
			t.Fatalf("a count is %d, want %d", n.counts[i], kid.size())
		}
		if i > 0 && requireNode(t, kid, false) != height {
			t.Fatalf("leaves at different heights")
		}
		if i > 0 && kid.at(0).less(&n.items[i]) {
			t.Fatalf("a bound is above an element of its kid")
		}
		if last := kid.at(kid.size() - 1); i+1 < len(n.items) && !last.less(&n.items[i+1]) {
			t.Fatalf("a bound is not above the kid before it")
		}
	}
	return height + 1
}

func (n *node) at(rank int) *ranked {
	r := (&rankTree{root: n}).at(rank)
	return &r
}

func scoreOf(t *rapid.T) float64 {
	if rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
		return rapid.SampledFrom([]float64{math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}).Draw(t, "score")
	}
	return float64(rapid.IntRange(-20, 20).Draw(t, "score"))
}

// sortedRun holds a SortedSet and the map that it should be equal to.
type sortedRun struct {
	z     *SortedSet
	model map[string]float64
	keys  int
}

func (r *sortedRun) add(t fataler, member string, score float64) {
	_, present := r.model[member]
	if r.z.Add(member, score) == present {
		t.Fatalf("Add(%q) is %v while present is %v", member, !present, present)
	}
	r.model[member] = score
}

func (r *sortedRun) remove(t fataler, member string) {
	_, present := r.model[member]
	if r.z.Remove([]byte(member)) != present {
		t.Fatalf("Remove(%q) is not %v", member, present)
	}
	delete(r.model, member)
}

func (r *sortedRun) addMany(t *rapid.T) {
	first := rapid.IntRange(0, r.keys-1).Draw(t, "first")
	step := rapid.SampledFrom([]float64{0, 1, -1, 0.37}).Draw(t, "step")
	for i := range rapid.IntRange(0, r.keys).Draw(t, "n") {
		r.add(t, strconv.Itoa((first+i)%r.keys), math.Mod(float64(i)*step, 50))
	}
}

func (r *sortedRun) removeMany(t *rapid.T) {
	first := rapid.IntRange(0, r.keys-1).Draw(t, "first")
	for i := range rapid.IntRange(0, r.keys).Draw(t, "n") {
		r.remove(t, strconv.Itoa((first+i)%r.keys))
	}
}

func (r *sortedRun) removeRange(t *rapid.T) {
	from := rapid.IntRange(-2, len(r.model)+2).Draw(t, "from")
	to := rapid.IntRange(-2, len(r.model)+2).Draw(t, "to")
	removed := 0
	for rank, e := range inOrder(r.model) {
		if from <= rank && rank <= to {
			delete(r.model, e.member)
			removed++
		}
	}
	if got := r.z.RemoveRange(from, to); got != removed {
		t.Fatalf("RemoveRange(%d, %d) = %d, want %d", from, to, got, removed)
	}
}

func (r *sortedRun) look(t *rapid.T) {
	member := keyOf(t, r.keys)
	all := inOrder(r.model)
	want := slices.IndexFunc(all, func(e ranked) bool { return e.member == member })
	rank, ok := r.z.Rank([]byte(member))
	if ok != (want >= 0) || ok && rank != want {
		t.Fatalf("Rank(%q) = %d, %v, want %d", member, rank, ok, want)
	}
	score, ok := r.z.Score([]byte(member))
	if wantScore, present := r.model[member]; ok != present || score != wantScore {
		t.Fatalf("Score(%q) = %v, %v, want %v", member, score, ok, wantScore)
	}
	i := rapid.IntRange(-1, len(all)).Draw(t, "rank")
	wantAt := ranked{}
	if i >= 0 && i < len(all) {
		wantAt = all[i]
	}
	if member, score := r.z.At(i); (ranked{score, member}) != wantAt {
		t.Fatalf("At(%d) = %q, %v, want %v", i, member, score, wantAt)
	}
}

func (r *sortedRun) count(t *rapid.T) {
	score, orEqual := scoreOf(t), rapid.Bool().Draw(t, "orEqual")
	want := 0
	for _, s := range r.model {
		if s < score || orEqual && s == score {
			want++
		}
	}
	if got := r.z.CountBelow(score, orEqual); got != want {
		t.Fatalf("CountBelow(%v, %v) = %d, want %d", score, orEqual, got, want)
	}
}

func (r *sortedRun) walk(t *rapid.T) {
	all := inOrder(r.model)
	from := rapid.IntRange(-1, len(all)+1).Draw(t, "from")
	limit := rapid.IntRange(1, 100).Draw(t, "limit")
	next := max(from, 0)
	for member, score := range r.z.Ascend(from) {
		if next >= len(all) || all[next] != (ranked{score, member}) {
			t.Fatalf("Ascend(%d) gives %q at %d", from, member, next)
		}
		if next++; next-from > limit {
			break
		}
	}
	if next < len(all) && next-from <= limit {
		t.Fatalf("Ascend(%d) ends before %d", from, next)
	}
	next = min(from, len(all)-1)
	for member, score := range r.z.Descend(from) {
		if next < 0 || all[next] != (ranked{score, member}) {
			t.Fatalf("Descend(%d) gives %q at %d", from, member, next)
		}
		if next--; from-next > limit {
			break
		}
	}
	if next >= 0 && from-next <= limit {
		t.Fatalf("Descend(%d) ends before %d", from, next)
	}
}

func (r *sortedRun) clone(t *rapid.T) {
	old := r.z
	r.z = old.Clone()
	if old.Add("only in the original", 1); old.Len() != len(r.model)+1 {
		t.Fatalf("Add to the original: %d members", old.Len())
	}
	old.RemoveRange(0, old.Len()/2) // must not reach the copy
}

func TestSortedSetIsASortedMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]int{4, 30, 300, 6000}).Draw(t, "keys")
		r := &sortedRun{z: NewSortedSet(), model: map[string]float64{}, keys: keys}
		t.Repeat(map[string]func(*rapid.T){
			"":            func(t *rapid.T) { requireSortedSet(t, r.z, r.model) },
			"add":         func(t *rapid.T) { r.add(t, keyOf(t, keys), scoreOf(t)) },
			"addMany":     r.addMany,
			"remove":      func(t *rapid.T) { r.remove(t, keyOf(t, keys)) },
			"removeMany":  r.removeMany,
			"removeRange": r.removeRange,
			"look":        r.look,
			"count":       r.count,
			"walk":        r.walk,
			"clone":       r.clone,
		})
	})
}

// A tree of four levels, filled and emptied in every order that scores usually have.
func TestSortedSetLargeInAnyOrder(t *testing.T) {
	t.Parallel()
	const n = 60_000
	random := rand.New(rand.NewPCG(5, 6))
	orders := map[string][]int{"ascending": make([]int, n), "descending": make([]int, n), "random": random.Perm(n)}
	for i := range n {
		orders["ascending"][i], orders["descending"][i] = i, n-1-i
	}
	for name, added := range orders {
		for _, removed := range orders {
			r := &sortedRun{z: NewSortedSet(), model: map[string]float64{}}
			for _, i := range added {
				r.add(t, strconv.Itoa(i), float64(i/3))
			}
			requireSortedSet(t, r.z, r.model)
			for _, i := range removed[:n-n/50] {
				r.remove(t, strconv.Itoa(i))
			}
			requireSortedSet(t, r.z, r.model)
			if leaves := r.z.row.large().order.root.leaves(); leaves > r.z.Len()/8 {
				t.Errorf("%s: %d members in %d leaves", name, r.z.Len(), leaves)
			}
		}
	}
}

func (n *node) leaves() int {
	if n.kids == nil {
		return 1
	}
	total := 0
	for _, kid := range n.kids {
		total += kid.leaves()
	}
	return total
}

func TestSortedSetCountLexBelow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfNDistinct(rapid.StringN(0, 3, 3), 0, 300, rapid.ID).Draw(t, "members")
		z := NewSortedSet()
		for _, member := range members {
			z.Add(member, 7)
		}
		slices.Sort(members)
		bound := rapid.StringN(0, 3, 3).Draw(t, "bound")
		if len(members) > 0 && rapid.Bool().Draw(t, "present") {
			bound = rapid.SampledFrom(members).Draw(t, "bound")
		}
		below := sort.SearchStrings(members, bound)
		upTo := below
		if below < len(members) && members[below] == bound {
			upTo++
		}
		if got := z.CountLexBelow(bound, false); got != below {
			t.Fatalf("CountLexBelow(%q, false) = %d, want %d", bound, got, below)
		}
		if got := z.CountLexBelow(bound, true); got != upTo {
			t.Fatalf("CountLexBelow(%q, true) = %d, want %d", bound, got, upTo)
		}
	})
}

func TestSortedSetRandomIsUniform(t *testing.T) {
	t.Parallel()
	z := NewSortedSet()
	members := make([]string, 700)
	for i := range members {
		members[i] = strconv.Itoa(i)
		z.Add(members[i], float64(i))
	}
	requireUniform(t, members, func(r *rand.Rand) string {
		member, score, ok := z.Random(r)
		if !ok || member != strconv.Itoa(int(score)) {
			t.Fatalf("Random() = %q, %v, %v", member, score, ok)
		}
		return member
	})
}

func TestSortedSetZeroHasASignOnlyInSkiplist(t *testing.T) {
	t.Parallel()
	negativeZero := math.Copysign(0, -1)
	z := NewSortedSet()
	z.Add("small", negativeZero)
	z.Add(strings.Repeat("long", 20), 1)
	z.Add("large", negativeZero)
	z.Add("large", 0) // equal to what it has
	for member, negative := range map[string]bool{"small": false, "large": true} {
		if score, _ := z.ScoreString(member); math.Signbit(score) != negative {
			t.Errorf("%s has score %v", member, score)
		}
	}
}

func TestSortedSetEncoding(t *testing.T) {
	t.Parallel()
	requireEncoding(t, "listpack", "skiplist", usual.SortedSetEntries, func() (func(string), func(string), func() string) {
		z := NewSortedSet()
		return func(m string) { z.Add(m, 1) }, func(m string) { z.RemoveString(m) }, func() string { return z.Clone().Encoding() }
	})
}

// requireEncoding checks a container that is compact up to a length and to members of
// 64 bytes, and that never becomes compact again.
func requireEncoding(t *testing.T, compact, large string, limit int, build func() (add, remove func(string), encoding func() string)) {
	t.Helper()
	require := func(encoding func() string, want, when string) {
		t.Helper()
		if got := encoding(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	add, remove, encoding := build()
	for i := range limit {
		add(strconv.Itoa(i))
	}
	require(encoding, compact, "at the limit")
	add("one more")
	require(encoding, large, "over the limit")
	for i := range limit {
		remove(strconv.Itoa(i))
	}
	require(encoding, large, "small again")

	add, _, encoding = build()
	add(strings.Repeat("x", 64))
	require(encoding, compact, "64 bytes")
	add(strings.Repeat("x", 65))
	require(encoding, large, "65 bytes")
}

// TestCompactDropsTheSignOfZeroAsAListpackDoes: a set that is built at large
// keeps it, and so does one that is too large to be made compact.
func TestCompactDropsTheSignOfZeroAsAListpackDoes(t *testing.T) {
	t.Parallel()
	minusZero := math.Copysign(0, -1)
	small, large := NewLargeSortedSet(), NewLargeSortedSet()
	small.Add("m", minusZero)
	large.Add("m", minusZero)
	large.Add(strings.Repeat("n", 65), 1)
	for _, c := range []struct {
		set      *SortedSet
		encoding string
		signed   bool
	}{{small, "skiplist", true}, {small.Compact(&usual), "listpack", false}, {large.Compact(&usual), "skiplist", true}} {
		score, ok := c.set.ScoreString("m")
		if !ok || math.Signbit(score) != c.signed || c.set.Encoding() != c.encoding {
			t.Errorf("%s: the score is %v, %v; want %s, signed %v", c.set.Encoding(), score, ok, c.encoding, c.signed)
		}
	}
}
