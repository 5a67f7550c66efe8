package autocomplete_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/autocomplete"
)

func TestLookupAnswersTheHeaviest(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		d := autocomplete.New(c, "people")
		set(t, d, map[string]float64{"Anna": 3, "Anton": 7, "Antonia": 5, "Bert": 9})
		for _, look := range []struct {
			prefix string
			k      int
			want   []string
		}{
			{"", 10, []string{"Bert", "Anton", "Antonia", "Anna"}},
			{"", 1, []string{"Bert"}},
			{"an", 2, []string{"Anton", "Antonia"}},
			{"ANTONI", 10, []string{"Antonia"}},
			{"antoniaa", 10, nil},
			{"c", 10, nil},
		} {
			if got := texts(t, d, look.prefix, look.k); !slices.Equal(got, look.want) {
				t.Errorf("%q, %d: %q, want %q", look.prefix, look.k, got, look.want)
			}
		}
		must(t, d.Set(t.Context(), autocomplete.Entry{ID: "Anton", Text: "Anton", Weight: 1}))
		if got := texts(t, d, "a", 10); !slices.Equal(got, []string{"Antonia", "Anna", "Anton"}) {
			t.Errorf("after Anton became lighter: %q", got)
		}
	})
}

// More entries than any node keeps, all with long texts in common, or one text for all.
func TestLookupIsExactInADeepTree(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		d, want := autocomplete.New(c, "files"), model{}
		for i := range 1500 {
			e := autocomplete.Entry{ID: fmt.Sprint(i), Text: "/usr/share/doc/readme", Weight: float64(i * 7919 % 1500)}
			if i%2 == 0 {
				e.Text = fmt.Sprintf("/usr/share/doc/%d/copyright", i)
			}
			want[e.ID] = e
		}
		load(t, d, want)
		for round := range 3 {
			for _, prefix := range []string{"", "/", "/usr/share/doc/", "/usr/share/doc/r", "/usr/share/doc/1", "/usr/share/doc/100", "/usr/share/doc/readme"} {
				got, err := d.Lookup(t.Context(), prefix, autocomplete.MaxK)
				must(t, err)
				if diff := gocmp.Diff(want.lookup(prefix, autocomplete.MaxK), got); diff != "" {
					t.Fatalf("round %d, %q (-want +got):\n%s", round, prefix, diff)
				}
			}
			for _, e := range want.lookup("", 500) { // the heaviest go, so that every node has to look for others
				if _, err := d.Remove(t.Context(), e.ID); err != nil {
					t.Fatal(err)
				}
				delete(want, e.ID)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%d entries are left", len(want))
		}
		wantNoKeys(t, c)
	})
}

func load(t *testing.T, d *autocomplete.Dictionary, entries model) {
	t.Helper()
	n, err := d.Load(t.Context(), func(yield func(autocomplete.Entry) bool) {
		for _, e := range entries {
			if !yield(e) {
				return
			}
		}
	}, nil)
	must(t, err)
	if n != len(entries) {
		t.Fatalf("loaded %d of %d", n, len(entries))
	}
}

func TestDictionariesAreApart(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		for _, name := range []string{"a", "a}", "{a}", "a%7D", "ä b"} {
			set(t, autocomplete.New(c, name), map[string]float64{"in " + name: 1})
		}
		for _, name := range []string{"a", "a}", "{a}", "a%7D", "ä b"} {
			d := autocomplete.New(c, name)
			if got := texts(t, d, "", 10); !slices.Equal(got, []string{"in " + name}) {
				t.Errorf("%q has %q", name, got)
			}
			must(t, d.Drop(t.Context()))
		}
		wantNoKeys(t, c)
	})
}

// What is repeated because no answer came changes nothing.
func TestSetAndRemoveTwice(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		ctx, d := t.Context(), autocomplete.New(c, "d")
		for range 2 {
			set(t, d, map[string]float64{"one": 1, "two": 2})
		}
		if got := texts(t, d, "", 10); !slices.Equal(got, []string{"two", "one"}) {
			t.Errorf("set twice: %q", got)
		}
		for _, want := range []bool{true, false} {
			if got, err := d.Remove(ctx, "one"); err != nil || got != want {
				t.Errorf("removed: %v, %v, want %v", got, err, want)
			}
		}
		_, err := d.Get(ctx, "one")
		wantErr(t, err, autocomplete.ErrNotFound)
		_, err = d.Increment(ctx, "one", 1)
		wantErr(t, err, autocomplete.ErrNotFound)
	})
}

func TestEntryComesBackAsItWasGiven(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		d := autocomplete.New(c, "d")
		for _, e := range []autocomplete.Entry{
			{ID: "lower", Text: "lower", Weight: 0.1},
			{ID: "\xc3\xa9:{x}", Text: "  Straße \t 7\u00a0", Weight: -math.MaxFloat64},
			{ID: "nul", Text: "a\x00b", Weight: math.SmallestNonzeroFloat64},
			{ID: strings.Repeat("i", autocomplete.MaxIDBytes), Text: strings.Repeat("T", autocomplete.MaxTextBytes), Weight: math.MaxFloat64},
		} {
			must(t, d.Set(t.Context(), e))
			got, err := d.Get(t.Context(), e.ID)
			must(t, err)
			if got != e {
				t.Errorf("%+v became %+v", e, got)
			}
			if found, err := d.Lookup(t.Context(), e.Text, 1); err != nil || len(found) != 1 || found[0] != e {
				t.Errorf("%+v was looked up as %+v (%v)", e, found, err)
			}
		}
	})
}

func TestWeightsKeepTheirOrderInBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64().Draw(t, "a"), rapid.Float64().Draw(t, "b")
		if (a > b) != (autocomplete.Sink(a) < autocomplete.Sink(b)) {
			t.Errorf("%v and %v change places", a, b)
		}
		if autocomplete.Weight(autocomplete.Sink(a)) != a {
			t.Errorf("%v becomes %v", a, autocomplete.Weight(autocomplete.Sink(a)))
		}
	})
	if autocomplete.Sink(0) != autocomplete.Sink(math.Copysign(0, -1)) {
		t.Error("there are two zeros")
	}
}

func TestRoundTrips(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		ctx, d := t.Context(), autocomplete.New(c, "d")
		r := autocomplete.NewRecent(c, "contacts")
		e := autocomplete.Entry{ID: "1", Text: "one", Weight: 1}
		many := func(yield func(autocomplete.Entry) bool) {
			for i := range 2 * 512 {
				if !yield(autocomplete.Entry{ID: fmt.Sprint(i), Text: fmt.Sprint("text ", i)}) {
					return
				}
			}
		}
		for _, call := range []struct {
			name string
			want int64
			do   func() error
		}{
			{"Set", 1, func() error { return d.Set(ctx, e) }},
			{"Load", 2, func() error { _, err := d.Load(ctx, many, nil); return err }},
			{"Increment", 1, func() error { _, err := d.Increment(ctx, "1", 1); return err }},
			{"Lookup of all", 1, func() error { _, err := d.Lookup(ctx, "", 10); return err }},
			{"Lookup in an inner node", 1, func() error { _, err := d.Lookup(ctx, "te", 10); return err }},
			{"Lookup within a leaf", 1, func() error { _, err := d.Lookup(ctx, "text 777", 10); return err }},
			{"Get", 1, func() error { _, err := d.Get(ctx, "1"); return err }},
			{"Len", 1, func() error { _, err := d.Len(ctx); return err }},
			{"Remove", 1, func() error { _, err := d.Remove(ctx, "1"); return err }},
			{"Drop", 1, func() error { return d.Drop(ctx) }},
			{"Recent.Add", 1, func() error { return r.Add(ctx, "ann", "bob") }},
			{"Recent.Match", 1, func() error { _, err := r.Match(ctx, "ann", "b", 10); return err }},
			{"Recent.Remove", 1, func() error { _, err := r.Remove(ctx, "ann", "bob"); return err }},
			{"Recent.Clear", 1, func() error { return r.Clear(ctx, "ann") }},
		} {
			if call.name != "Load" {
				_ = call.do() // a script is sent whole when a server sees it for the first time
				must(t, d.Set(ctx, e))
				_, err := d.Load(ctx, many, nil)
				must(t, err)
			}
			before := c.trips.Load()
			must(t, call.do())
			if got := c.trips.Load() - before; got != call.want {
				t.Errorf("%s: %d round trips, want %d", call.name, got, call.want)
			}
		}
	})
}

func TestLoadTellsHowFarItIs(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		d := autocomplete.New(c, "d")
		entries := make([]autocomplete.Entry, 1300)
		for i := range entries {
			entries[i] = autocomplete.Entry{ID: fmt.Sprint(i), Text: "text", Weight: float64(i)}
		}
		var told []int
		tell := func(loaded int) {
			told = append(told, loaded)
			must(t, c.ScriptFlush(t.Context()).Err()) // a server that has been restarted knows no script
		}
		n, err := d.Load(t.Context(), slices.Values(entries), tell)
		must(t, err)
		if n != 1300 || !slices.Equal(told, []int{512, 1024, 1300}) {
			t.Errorf("loaded %d, told %v", n, told)
		}
		entries[1200].Weight = math.NaN()
		n, err = d.Load(t.Context(), slices.Values(entries), nil)
		wantErr(t, err, autocomplete.ErrInvalidWeight)
		if n != 1024 || !strings.Contains(err.Error(), "1200") {
			t.Errorf("loaded %d, then %v", n, err)
		}
		if n, err := d.Len(t.Context()); err != nil || n != 1300 {
			t.Errorf("%d entries (%v)", n, err)
		}
	})
}
