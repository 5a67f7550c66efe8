package autocomplete_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/autocomplete"
)

// What no call could succeed with is refused before anything is sent, by an error that says whose it is.
func TestInvalidArgumentsAreRefused(t *testing.T) {
	nowhere := redis.NewClient(&redis.Options{Addr: "unix:/nonexistent"})
	t.Cleanup(func() { must(t, nowhere.Close()) })
	ctx := t.Context()
	long := strings.Repeat("x", 513)
	text := func(text string) autocomplete.Entry { return autocomplete.Entry{ID: "id", Text: text} }
	weight := func(weight float64) autocomplete.Entry {
		return autocomplete.Entry{ID: "id", Text: "text", Weight: weight}
	}
	sets := map[error][]autocomplete.Entry{
		autocomplete.ErrInvalidID: {
			{Text: "text"}, {ID: "a\x00b", Text: "text"}, {ID: "\xff", Text: "text"}, {ID: long[:129], Text: "text"},
		},
		autocomplete.ErrInvalidText: {
			text(""), text(" \t"), text("\u200d"), text("\xff"), text(long[:257]), text(strings.Repeat("ﷺ", 50)),
		},
		autocomplete.ErrInvalidWeight: {weight(math.NaN()), weight(math.Inf(1)), weight(math.Inf(-1))},
	}
	d := autocomplete.New(nowhere, "people")
	for want, entries := range sets {
		for _, e := range entries {
			wantRefusal(t, d.Set(ctx, e), want, "people")
		}
	}
	for _, k := range []int{0, -1, autocomplete.MaxK + 1, math.MaxInt, math.MinInt} {
		wantRefusal(t, second(d.Lookup(ctx, "a", k)), autocomplete.ErrInvalidCount, "people")
	}
	for _, prefix := range []string{"\xff", long, strings.Repeat("ﷺ", 50)} {
		wantRefusal(t, second(d.Lookup(ctx, prefix, 1)), autocomplete.ErrInvalidText, "people")
	}
	wantRefusal(t, second(d.Increment(ctx, "id", math.NaN())), autocomplete.ErrInvalidWeight, "people")
	wantRefusal(t, second(d.Increment(ctx, "", 1)), autocomplete.ErrInvalidID, "people")
	wantRefusal(t, second(d.Get(ctx, "")), autocomplete.ErrInvalidID, "people")
	wantRefusal(t, second(d.Remove(ctx, "")), autocomplete.ErrInvalidID, "people")
	for _, name := range []string{"", "\xff", long} {
		for _, err := range callsByName(ctx, nowhere, name) {
			wantRefusal(t, err, autocomplete.ErrInvalidName, "autocomplete")
		}
	}
	r := autocomplete.NewRecent(nowhere, "contacts")
	wantRefusal(t, r.Add(ctx, "ann", " "), autocomplete.ErrInvalidText, "contacts")
	wantRefusal(t, second(r.Match(ctx, "ann", "\xff", 1)), autocomplete.ErrInvalidText, "contacts")
	wantRefusal(t, second(r.Match(ctx, "ann", "", 101)), autocomplete.ErrInvalidCount, "contacts")
	wantRefusal(t, r.Clear(ctx, ""), autocomplete.ErrInvalidName, "contacts")
}

// callsByName makes every call on what has that name.
func callsByName(ctx context.Context, c redis.UniversalClient, name string) []error {
	d, r := autocomplete.New(c, name), autocomplete.NewRecent(c, name)
	e := autocomplete.Entry{ID: "id", Text: "text"}
	return []error{
		d.Set(ctx, e), second(d.Lookup(ctx, "", 1)), second(d.Increment(ctx, "id", 1)), second(d.Get(ctx, "id")),
		second(d.Remove(ctx, "id")), second(d.Len(ctx)), d.Drop(ctx), second(d.Load(ctx, nil, nil)),
		r.Add(ctx, "ann", "bob"), second(r.Match(ctx, "ann", "", 1)), second(r.Remove(ctx, "ann", "bob")), r.Clear(ctx, "ann"),
	}
}

func second[T any](_ T, err error) error { return err }

func wantRefusal(t *testing.T, err, want error, name string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
		t.Errorf("got error %v, want %v of %q", err, want, name)
	}
	if len(err.Error()) > 400 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

func TestIncrementBeyondAllNumbersChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		ctx, d := t.Context(), autocomplete.New(c, "d")
		e := autocomplete.Entry{ID: "1", Text: "one", Weight: math.MaxFloat64}
		must(t, d.Set(ctx, e))
		_, err := d.Increment(ctx, "1", math.MaxFloat64)
		wantErr(t, err, autocomplete.ErrInvalidWeight)
		if got, err := d.Get(ctx, "1"); err != nil || got != e {
			t.Errorf("%+v (%v)", got, err)
		}
		for _, by := range []float64{-math.MaxFloat64, 0.1, -0.3, 1e-300} {
			e.Weight += by
			if got, err := d.Increment(ctx, "1", by); err != nil || got != e.Weight {
				t.Errorf("%v (%v), want %v", got, err, e.Weight)
			}
		}
	})
}

// Keys that something else has made are an error of every call, and stay as they are.
func TestForeignKeys(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		ctx, d := t.Context(), autocomplete.New(c, "d")
		for _, key := range d.Keys() {
			must(t, c.Set(ctx, key, "foreign", 0).Err())
		}
		for name, err := range map[string]error{
			"set": d.Set(ctx, autocomplete.Entry{ID: "1", Text: "one"}), "lookup": second(d.Lookup(ctx, "", 1)), "get": second(d.Get(ctx, "1")),
			"increment": second(d.Increment(ctx, "1", 1)), "remove": second(d.Remove(ctx, "1")), "len": second(d.Len(ctx)),
		} {
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), `"d"`) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, key := range d.Keys() {
			if got := c.Get(ctx, key).Val(); got != "foreign" {
				t.Errorf("%s is %q", key, got)
			}
		}
		must(t, d.Drop(ctx))
		must(t, c.HSet(ctx, d.Keys()[2], "1", "no value").Err())
		if _, err := d.Get(ctx, "1"); err == nil {
			t.Error("what is no entry was answered as one")
		}
	})
}
