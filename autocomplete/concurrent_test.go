package autocomplete_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/autocomplete"
)

// While one changes a dictionary, readers see it as it was after some change: never half of one, never an older state
// than what was done before they asked, never a newer one than what has been begun.
func TestReadersSeeOneStateOrAnother(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		const changes, most = 400, 3
		d := autocomplete.NewSmall(c, "d")
		prefixes := []string{"", "a", "ab", "b 1"}
		now := model{}
		answers := make([][][]autocomplete.Entry, changes+1) // by state and prefix
		record := func(state int) {
			for _, prefix := range prefixes {
				answers[state] = append(answers[state], now.lookup(prefix, most))
			}
		}
		record(0)

		// The plan is made first, so that readers can look at all of it.
		random := rand.New(rand.NewPCG(1, 2))
		plan := make([]autocomplete.Entry, changes)
		for i := range plan {
			id := random.IntN(40)
			plan[i] = autocomplete.Entry{ID: fmt.Sprint(id), Text: fmt.Sprint([]string{"a", "ab", "b"}[id%3], " ", id), Weight: float64(random.IntN(100))}
			if now[plan[i].ID] = plan[i]; plan[i].Weight < 20 {
				delete(now, plan[i].ID)
			}
			record(i + 1)
		}

		var begun, done atomic.Int64
		var readers sync.WaitGroup
		for reader := range 4 {
			readers.Go(func() {
				for n := reader; done.Load() < changes; n++ {
					oldest := done.Load()
					got, err := d.Lookup(t.Context(), prefixes[n%len(prefixes)], most)
					newest := begun.Load()
					if err != nil {
						t.Error(err)
						return
					}
					if !slices.ContainsFunc(answers[oldest:newest+1], func(state [][]autocomplete.Entry) bool {
						return slices.Equal(state[n%len(prefixes)], got)
					}) {
						t.Errorf("%q was %+v between changes %d and %d", prefixes[n%len(prefixes)], got, oldest, newest)
						return
					}
				}
			})
		}
		for _, e := range plan {
			begun.Add(1)
			if e.Weight < 20 {
				_, err := d.Remove(t.Context(), e.ID)
				must(t, err)
			} else {
				must(t, d.Set(t.Context(), e))
			}
			done.Add(1)
		}
		readers.Wait()
	})
}

// Many change one dictionary, each its own entries and all one counter: what is there in the end is what all have done.
func TestWritersDoNotDisturbEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		const writers, rounds = 8, 60
		d, want := autocomplete.NewSmall(c, "d"), model{}
		counter := autocomplete.Entry{ID: "counter", Text: "a counter"}
		must(t, d.Set(t.Context(), counter))
		for w := range writers {
			for i := range rounds / 2 {
				id := fmt.Sprint(w, "-", i)
				want[id] = autocomplete.Entry{ID: id, Text: fmt.Sprint("a", i%3, " ", id), Weight: float64(i + rounds/2)}
			}
		}
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range rounds {
					id := fmt.Sprint(w, "-", i%(rounds/2))
					e := want[id]
					e.Weight = float64(i)
					if err := d.Set(t.Context(), e); err != nil {
						t.Error(err)
					}
					if _, err := d.Increment(t.Context(), counter.ID, 1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		counter.Weight = writers * rounds
		want[counter.ID] = counter
		for _, prefix := range []string{"", "a", "a1", "a1 7", "a2 3-5"} {
			got, err := d.Lookup(t.Context(), prefix, 3)
			must(t, err)
			if diff := gocmp.Diff(want.lookup(prefix, 3), got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", prefix, diff)
			}
		}
	})
}
