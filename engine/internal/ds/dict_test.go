package ds

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// keyOf draws keys from a range that a run of operations can both fill and empty.
func keyOf(t *rapid.T, keys int) string {
	return strconv.Itoa(rapid.IntRange(0, keys-1).Draw(t, "key"))
}

// requireDict checks everything that a Dict shows against a model.
func requireDict(t fataler, d *Dict[int], model map[string]int) {
	t.Helper()
	if d.Len() != len(model) {
		t.Fatalf("Len() = %d, want %d", d.Len(), len(model))
	}
	if got := maps.Collect(d.All()); !maps.Equal(got, model) {
		t.Fatalf("All() = %v, want %v", got, model)
	}
	for key, want := range model {
		if got, ok := d.Get([]byte(key)); !ok || got != want {
			t.Fatalf("Get(%q) = %d, %v, want %d", key, got, ok, want)
		}
	}
	scanned := map[string]int{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = d.Scan(cursor, func(key string, v int) { scanned[key] = v })
	}
	if !maps.Equal(scanned, model) {
		t.Fatalf("Scan visits %v, want %v", scanned, model)
	}
	requireIndex(t, d)
}

// requireIndex checks that each element is in the one chain where it is looked for.
func requireIndex(t fataler, d *Dict[int]) {
	t.Helper()
	if d.index == nil {
		return
	}
	chained := 0
	for _, table := range []*table{&d.index.main, &d.index.target} {
		if table.segments == nil {
			continue
		}
		for bucket := range table.mask + 1 {
			for at := table.head(bucket); at != 0; at = d.at(at).next {
				chained++
				if where, b := d.index.locate(d.at(at).hash); where != table || b != bucket {
					t.Fatalf("%q is chained in a bucket where nobody looks", d.at(at).key)
				}
			}
		}
	}
	if chained != d.size {
		t.Fatalf("%d elements are chained, want %d", chained, d.size)
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestDictIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, model := NewDict[int](), map[string]int{}
		keys := rapid.SampledFrom([]int{6, 12, 60, 3000}).Draw(t, "keys")
		set := func(key string, v int, bytes bool) {
			_, present := model[key]
			inserted := false
			if bytes {
				inserted = d.SetBytes([]byte(key), v)
			} else {
				inserted = d.Set(key, v)
			}
			if inserted == present {
				t.Fatalf("Set(%q) = %v while present is %v", key, inserted, present)
			}
			model[key] = v
		}
		remove := func(key string) {
			want, present := model[key]
			if got, ok := d.Delete([]byte(key)); ok != present || got != want {
				t.Fatalf("Delete(%q) = %d, %v, want %d, %v", key, got, ok, want, present)
			}
			delete(model, key)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":         func(t *rapid.T) { requireDict(t, d, model) },
			"set":      func(t *rapid.T) { set(keyOf(t, keys), rapid.Int().Draw(t, "v"), false) },
			"setBytes": func(t *rapid.T) { set(keyOf(t, keys), rapid.Int().Draw(t, "v"), true) },
			"delete":   func(t *rapid.T) { remove(keyOf(t, keys)) },
			"fill": func(t *rapid.T) {
				for i := range rapid.IntRange(0, keys).Draw(t, "n") {
					set(strconv.Itoa(i), i, true)
				}
			},
			"drain": func(t *rapid.T) {
				for i := range rapid.IntRange(0, keys).Draw(t, "n") {
					remove(strconv.Itoa(i))
				}
			},
			"absent": func(t *rapid.T) {
				if _, ok := d.GetString("no such key"); ok {
					t.Fatalf("an absent key is found")
				}
			},
			"clone": func(t *rapid.T) {
				old := d
				d = old.Clone(func(v int) int { return v })
				old.Clear() // must not reach the copy
				requireDict(t, old, map[string]int{})
			},
		})
	})
}

func TestDictCloneMakesValuesWithCopy(t *testing.T) {
	t.Parallel()
	d := NewDict[int]()
	for i := range 2000 {
		d.Set(strconv.Itoa(i), i)
	}
	twice := d.Clone(func(v int) int { return 2 * v })
	for i := range 2000 {
		if v, _ := twice.GetString(strconv.Itoa(i)); v != 2*i {
			t.Fatalf("the copy of %d is %d", i, v)
		}
		if v, _ := d.GetString(strconv.Itoa(i)); v != i {
			t.Fatalf("%d became %d in the original", i, v)
		}
	}
}

func TestDictAllAllowsDeletingTheCurrentElement(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, smallMax, 100, 3 * pageSize} {
		d := NewDict[int]()
		for i := range n {
			d.Set(strconv.Itoa(i), i)
		}
		seen := map[string]bool{}
		for key, v := range d.All() {
			if seen[key] {
				t.Fatalf("of %d, %q is visited twice", n, key)
			}
			seen[key] = true
			if v%3 != 0 {
				d.Delete([]byte(key))
			}
		}
		if len(seen) != n || d.Len() != (n+2)/3 {
			t.Fatalf("of %d, %d are visited and %d stay", n, len(seen), d.Len())
		}
		requireIndex(t, d)
	}
}

// The guarantee of SCAN: what is there from the first call to the last is visited,
// whatever else comes and goes meanwhile, and however the table grows and shrinks.
func TestDictScanVisitsAllThatStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := NewDict[int]()
		stay := rapid.IntRange(0, 200).Draw(t, "stay")
		for i := range stay {
			d.Set("stay"+strconv.Itoa(i), i)
		}
		come := 0
		grow := func(n int) {
			for range n {
				d.Set("come"+strconv.Itoa(come), come)
				come++
			}
		}
		shrink := func(n int) {
			for ; n > 0 && come > 0; n-- {
				come--
				d.Delete([]byte("come" + strconv.Itoa(come)))
			}
		}
		grow(rapid.IntRange(0, 4000).Draw(t, "before"))
		seen := map[string]bool{}
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			cursor = d.Scan(cursor, func(key string, _ int) { seen[key] = true })
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				grow(rapid.IntRange(0, 2000).Draw(t, "come"))
			case 1:
				shrink(rapid.IntRange(0, 2000).Draw(t, "go"))
			case 2:
				shrink(come)
			}
			if come > 20000 {
				shrink(come)
			}
		}
		for i := range stay {
			if key := "stay" + strconv.Itoa(i); !seen[key] {
				t.Fatalf("%q was there all the time and never visited", key)
			}
		}
	})
}

func TestDictScanEndsForAnyCursor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := NewDict[int]()
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		for i := range n {
			d.Set(strconv.Itoa(i), i)
		}
		cursor := rapid.Uint64().Draw(t, "cursor")
		for steps := 0; cursor != 0; steps++ {
			cursor = d.Scan(cursor, func(string, int) {})
			if steps > 4*max(n, 16) {
				t.Fatalf("the scan of %d elements does not end", n)
			}
		}
	})
}

// No single write does more than its bounded share of a move, however large the table.
func TestDictMovesInSmallSteps(t *testing.T) {
	t.Parallel()
	d := NewDict[int]()
	for i := range 200_000 {
		before := uint32(0)
		if d.index != nil {
			before = d.index.moved
		}
		d.Set(strconv.Itoa(i), i)
		if d.index != nil && d.index.moving() && d.index.moved > before+movePerStep {
			t.Fatalf("one write moved %d buckets", d.index.moved-before)
		}
	}
	requireIndex(t, d)
}

func TestDictGivesMemoryBack(t *testing.T) {
	t.Parallel()
	d := NewDict[int]()
	for i := range 100_000 {
		d.Set(strconv.Itoa(i), i)
	}
	for i := range 99_990 {
		d.Delete([]byte(strconv.Itoa(i)))
	}
	for range 100_000 { // writes that finish the move
		d.Set("99995", 1)
	}
	if buckets := int(d.index.main.mask) + 1; len(d.pages) != 1 || len(d.pages[0]) > 64 || buckets > 256 {
		t.Fatalf("10 elements hold %d pages and %d buckets", len(d.pages), buckets)
	}
}

func TestDictLookupsDoNotAllocate(t *testing.T) {
	d := NewDict[int]()
	for i := range 10_000 {
		d.Set(fmt.Sprintf("a key that is longer than any small buffer: %d", i), i)
	}
	key := []byte("a key that is longer than any small buffer: 77")
	allocations := testing.AllocsPerRun(100, func() {
		if v, ok := d.Get(key); !ok || v != 77 {
			t.Error("Get finds nothing")
		}
		if d.SetBytes(key, 77) {
			t.Error("SetBytes inserts a key that is there")
		}
	})
	if allocations != 0 {
		t.Fatalf("%v allocations", allocations)
	}
}

func TestDictRandomIsUniform(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 64, 500, 1200} {
		d := NewDict[int]()
		for i := range 2 * n {
			d.Set(strconv.Itoa(i), i)
		}
		for i := range n {
			d.Delete([]byte(strconv.Itoa(2 * i)))
		}
		requireUniform(t, slices.Collect(maps.Keys(maps.Collect(d.All()))), func(r *rand.Rand) string {
			key, v, ok := d.Random(r)
			if !ok || key != strconv.Itoa(v) {
				t.Fatalf("Random() = %q, %d, %v", key, v, ok)
			}
			return key
		})
	}
	if _, _, ok := NewDict[int]().Random(rand.New(rand.NewPCG(1, 2))); ok {
		t.Fatal("an empty Dict has a random element")
	}
}

// requireUniform draws with a fixed seed and fails if the counts of the keys are
// further from equal than six standard deviations of chi-square allow.
func requireUniform(t *testing.T, keys []string, draw func(*rand.Rand) string) {
	t.Helper()
	const perKey = 100
	r := rand.New(rand.NewPCG(11, 17))
	counts := map[string]int{}
	for range perKey * len(keys) {
		counts[draw(r)]++
	}
	chiSquare := 0.0
	for _, key := range keys {
		difference := float64(counts[key] - perKey)
		chiSquare += difference * difference / perKey
		delete(counts, key)
	}
	if len(counts) != 0 {
		t.Fatalf("keys are drawn that are not there: %v", counts)
	}
	freedom := float64(len(keys) - 1)
	if excess := chiSquare - freedom; excess*excess > 36*2*freedom {
		t.Fatalf("chi-square is %.1f with %d keys", chiSquare, len(keys))
	}
}

// A walk by position meets each element that is there all the time, whatever comes and
// goes meanwhile.
func TestDescendMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDict[int]()
		n := rapid.IntRange(0, 100).Draw(t, "n")
		there := map[string]bool{}
		for i := range n {
			d.Set(strconv.Itoa(i), i)
			there[strconv.Itoa(i)] = true
		}
		for at := math.MaxInt; at > 0; {
			at = d.Descend(at, func(key string, _ int) bool {
				there[key] = false
				return false
			})
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				key := strconv.Itoa(rapid.IntRange(0, 150).Draw(t, "key"))
				if _, gone := d.DeleteString(key); gone {
					delete(there, key)
				} else {
					d.Add(key, 1)
				}
			}
		}
		for key, missed := range there {
			if missed {
				t.Errorf("%s is missed", key)
			}
		}
	})
}

// However many elements are expected, a Dict works as any other, and takes no room for
// those that do not come.
func TestExpectIsAHint(t *testing.T) {
	for _, expected := range []int{-1, 0, 5, 1000, 1 << 20, 1 << 30, math.MaxInt} {
		d := NewDict[int]()
		d.Expect(expected)
		for i := range 3000 {
			if key := strconv.Itoa(i); !d.Add(key, i) || d.Add(key, -1) {
				t.Fatalf("%d expected: %d is not new, or twice", expected, i)
			}
		}
		for i := range 2990 {
			d.DeleteString(strconv.Itoa(i))
		}
		d.Settle()
		for i := range 20_000 {
			d.Set(strconv.Itoa(5000+i), i)
		}
		for i := range 20_000 {
			if v, ok := d.GetString(strconv.Itoa(5000 + i)); !ok || v != i {
				t.Fatalf("%d expected: %d is gone", expected, i)
			}
		}
		if d.Len() != 20_010 {
			t.Errorf("%d expected: %d elements", expected, d.Len())
		}
	}
}
