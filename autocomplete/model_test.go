package autocomplete_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/autocomplete"
)

// model is a dictionary as a map.
type model map[string]autocomplete.Entry

// lookup is what a dictionary should answer, by looking at everything.
func (m model) lookup(prefix string, k int) []autocomplete.Entry {
	found := []autocomplete.Entry{}
	for _, e := range m {
		if strings.HasPrefix(folded(e), autocomplete.Fold(prefix)) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b autocomplete.Entry) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(term(a), term(b)))
	})
	return found[:min(k, len(found))]
}

func folded(e autocomplete.Entry) string {
	return strings.TrimSuffix(autocomplete.Fold(e.Text), " ") + " "
}

func term(e autocomplete.Entry) string { return folded(e) + "\x00" + e.ID + "\x00" }

// subject is a dictionary beside its model.
type subject struct {
	*autocomplete.Dictionary
	client *client
	model  model
}

// wantRows fails unless the tree is what doc.go says: each inner node has the entries within its bound, no fewer than a
// lookup may ask for and no more than it should keep, each leaf all of its entries, and nothing else is there.
func (s *subject) wantRows(t *rapid.T) {
	ctx, keys := context.Background(), s.Keys()
	bounds := s.client.HGetAll(ctx, keys[1]).Val()
	want, count := map[string]bool{}, map[string]int{}
	for _, e := range s.model {
		term, sink := term(e), autocomplete.Sink(e.Weight)
		for depth := 0; ; depth++ {
			prefix, place := term[:depth], sink+term[depth:]
			bound, inner := bounds[prefix]
			if !inner || place <= bound {
				want[string([]byte{byte(depth >> 8), byte(depth)})+prefix+place] = true
				count[prefix]++
			}
			if !inner {
				break
			}
		}
	}
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(want)), s.client.ZRange(ctx, keys[0], 0, -1).Val()); diff != "" && len(want) > 0 {
		t.Fatalf("rows (-want +got):\n%s", diff)
	}
	low, high, leaf := autocomplete.SmallShape[0], autocomplete.SmallShape[1], autocomplete.SmallShape[2]
	for prefix := range bounds {
		if count[prefix] < low || count[prefix] > high {
			t.Fatalf("inner node %q has %d rows", prefix, count[prefix])
		}
	}
	for prefix, n := range count {
		if _, inner := bounds[prefix]; !inner && n > leaf {
			t.Fatalf("leaf %q has %d rows", prefix, n)
		}
	}
	if keys := s.client.Keys(ctx, "*").Val(); len(s.model) == 0 && len(keys) > 0 {
		t.Fatalf("the dictionary is empty, and %q is there", keys)
	}
}

// wantAnswers looks up beginnings of what is there, and of what is not.
func (s *subject) wantAnswers(t *rapid.T) {
	texts := []string{"nobody"}
	for _, id := range slices.Sorted(maps.Keys(s.model)) {
		texts = append(texts, s.model[id].Text)
	}
	for range 4 {
		text := rapid.SampledFrom(texts).Draw(t, "text")
		prefix := strings.ToValidUTF8(text[:rapid.IntRange(0, len(text)).Draw(t, "length")], "")
		k := rapid.IntRange(1, autocomplete.SmallShape[0]).Draw(t, "k")
		got, err := s.Lookup(context.Background(), prefix, k)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(s.model.lookup(prefix, k), got); diff != "" {
			t.Fatalf("lookup %q, %d (-want +got):\n%s", prefix, k, diff)
		}
	}
}

// Texts that share much, so that the tree is deep; ids of which one begins another; weights that are often the same.
var (
	someText = rapid.StringOfN(rapid.SampledFrom([]rune("aaabAé d")), 1, 12, -1).
			Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	someID     = rapid.StringMatching(`[12]{1,4}|[1-9]{1,2}`)
	someWeight = rapid.OneOf(
		rapid.SampledFrom([]float64{0, 1, 2, 3, -1, 0.5, 1e300}), rapid.Float64Range(-1000, 1000))
	someEntry = rapid.Custom(func(t *rapid.T) autocomplete.Entry {
		return autocomplete.Entry{ID: someID.Draw(t, "id"), Text: someText.Draw(t, "text"), Weight: someWeight.Draw(t, "weight") + 0}
	})
)

func (s *subject) actions() map[string]func(*rapid.T) {
	ctx := context.Background()
	check := func(t *rapid.T, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]func(*rapid.T){
		"set": func(t *rapid.T) {
			e := someEntry.Draw(t, "entry")
			check(t, s.Set(ctx, e))
			s.model[e.ID] = e
		},
		"load": func(t *rapid.T) {
			entries := rapid.SliceOfN(someEntry, 1, 40).Draw(t, "entries")
			n, err := s.Load(ctx, slices.Values(entries), nil)
			check(t, err)
			if n != len(entries) {
				t.Fatalf("loaded %d of %d", n, len(entries))
			}
			for _, e := range entries {
				s.model[e.ID] = e
			}
		},
		"increment": func(t *rapid.T) {
			id, by := someID.Draw(t, "id"), someWeight.Draw(t, "by")
			got, err := s.Increment(ctx, id, by)
			e, known := s.model[id]
			if !known {
				if err == nil {
					t.Fatalf("incremented %q, which is not there", id)
				}
				return
			}
			check(t, err)
			if e.Weight += by; got != e.Weight {
				t.Fatalf("incremented to %v, want %v", got, e.Weight)
			}
			s.model[id] = e
		},
		"remove": func(t *rapid.T) {
			for _, id := range rapid.SliceOfN(someID, 1, 8).Draw(t, "ids") {
				got, err := s.Remove(ctx, id)
				check(t, err)
				if _, known := s.model[id]; got != known {
					t.Fatalf("removed %q: %v, want %v", id, got, known)
				}
				delete(s.model, id)
			}
		},
		"": func(t *rapid.T) {
			s.wantRows(t)
			s.wantAnswers(t)
			if n, err := s.Len(ctx); err != nil || n != int64(len(s.model)) {
				t.Fatalf("%d entries (%v), want %d", n, err, len(s.model))
			}
		},
	}
}

// Whatever is done, every answer is that of a map in which everything is looked at.
func TestDictionaryIsItsModel(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		rapid.Check(t, func(t *rapid.T) {
			c.FlushAll(context.Background())
			s := &subject{autocomplete.NewSmall(c, "d"), c, model{}}
			t.Repeat(s.actions())
			for id := range s.model {
				if _, err := s.Remove(context.Background(), id); err != nil {
					t.Fatal(err)
				}
				if delete(s.model, id); len(s.model)%8 == 0 {
					s.wantRows(t)
				}
			}
		})
	})
}
