package ds

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func requireSet(t fataler, s *Set, model map[string]bool) {
	t.Helper()
	if s.Len() != len(model) {
		t.Fatalf("Len() = %d, want %d", s.Len(), len(model))
	}
	seen := map[string]bool{}
	for member := range s.All() {
		if seen[member] || !model[member] || !s.Has([]byte(member)) {
			t.Fatalf("All() gives %q", member)
		}
		seen[member] = true
	}
	scanned := map[string]bool{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = s.Scan(cursor, func(member string) { scanned[member] = true })
	}
	if len(seen) != len(model) || len(scanned) != len(model) {
		t.Fatalf("All gives %d, Scan %d of %d members", len(seen), len(scanned), len(model))
	}
}

func TestSetIsAMap(t *testing.T) {
	t.Parallel()
	members := rapid.OneOf(
		rapid.Map(rapid.IntRange(-5, 30), strconv.Itoa),
		rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
	)
	anything := rapid.OneOf(members, rapid.SampledFrom([]string{"", "-", "-0", "00", "007", "+7", " 7", "7 ", "x", "9223372036854775808", "-9223372036854775809"}))
	rapid.Check(t, func(t *rapid.T) {
		s, model := NewSet(), map[string]bool{}
		if rapid.Bool().Draw(t, "any members") {
			members = anything
		}
		add := func(t *rapid.T, member string) {
			if s.Add([]byte(member)) == model[member] {
				t.Fatalf("Add(%q) while present is %v", member, model[member])
			}
			model[member] = true
		}
		t.Repeat(map[string]func(*rapid.T){
			"":    func(t *rapid.T) { requireSet(t, s, model) },
			"add": func(t *rapid.T) { add(t, members.Draw(t, "member")) },
			"addMany": func(t *rapid.T) {
				for i := range rapid.IntRange(0, 700).Draw(t, "n") {
					add(t, strconv.Itoa(i))
				}
			},
			"remove": func(t *rapid.T) {
				member := members.Draw(t, "member")
				if s.Has([]byte(member)) != model[member] || s.Remove([]byte(member)) != model[member] {
					t.Fatalf("Has or Remove(%q) is not %v", member, model[member])
				}
				delete(model, member)
			},
			"removeWhileWalking": func(t *rapid.T) {
				keep := rapid.IntRange(1, 4).Draw(t, "keep every")
				i := 0
				for member := range s.All() {
					if i++; i%keep != 0 {
						s.Remove([]byte(member))
						delete(model, member)
					}
				}
			},
			"clone": func(t *rapid.T) {
				old := s
				s = old.Clone()
				for member := range old.All() { // must not reach the copy
					old.Remove([]byte(member))
				}
				requireSet(t, old, nil)
			},
		})
	})
}

func TestSetEncoding(t *testing.T) {
	t.Parallel()
	s := NewSet()
	for i := range usual.SetIntegers {
		s.Add([]byte(strconv.Itoa(i)))
	}
	if s.Add([]byte("7")) || !s.IsInts() || s.Encoding() != "intset" {
		t.Fatalf("%d integers: %q", s.Len(), s.Encoding())
	}
	s.Add([]byte("512"))
	s.Remove([]byte("512"))
	if s.IsInts() || s.Clone().Encoding() != "hashtable" {
		t.Fatalf("once more than %d integers: %q", usual.SetIntegers, s.Encoding())
	}
	other := NewSet()
	other.Add([]byte("1"))
	other.Add([]byte("one"))
	if other.Remove([]byte("one")); other.Encoding() != "hashtable" {
		t.Fatalf("once had a word: %q", other.Encoding())
	}
}

func TestSetIntsHaveOneForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "7", "-7", "9223372036854775807", "-9223372036854775808"} {
		n, ok := ParseInt([]byte(text))
		if want, _ := strconv.ParseInt(text, 10, 64); !ok || n != want {
			t.Errorf("ParseInt(%q) = %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{
		"", "-", "-0", "00", "01", "-01", "+1", " 1", "1 ", "1x", "x", "1_0",
		"9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999",
	} {
		if n, ok := ParseInt([]byte(text)); ok {
			t.Errorf("ParseInt(%q) = %d", text, n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Int64().Draw(t, "n")
		if n, ok := ParseInt(strconv.AppendInt(nil, want, 10)); !ok || n != want {
			t.Fatalf("ParseInt(%d) = %d, %v", want, n, ok)
		}
	})
}

func TestSetRandomIsUniform(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 300, usual.SetIntegers + 100} {
		s := NewSet()
		for i := range n {
			s.Add([]byte(strconv.Itoa(i - 9)))
		}
		requireUniform(t, slices.Collect(s.All()), func(r *rand.Rand) string {
			member, ok := s.Random(r)
			if !ok {
				t.Fatal("Random finds nothing")
			}
			return member
		})
	}
	if _, ok := NewSet().Random(rand.New(rand.NewPCG(1, 2))); ok {
		t.Fatal("an empty Set has a random member")
	}
}

func TestSetLookupsDoNotAllocate(t *testing.T) {
	s := NewSet()
	s.Add(strconv.AppendInt(nil, math.MaxInt64, 10))
	absent := [][]byte{[]byte("a word"), []byte("99999999999999999999")}
	if allocations := testing.AllocsPerRun(100, func() {
		for _, member := range absent {
			if s.Has(member) {
				t.Error("an absent member is found")
			}
		}
	}); allocations != 0 {
		t.Fatalf("%v allocations", allocations)
	}
}
