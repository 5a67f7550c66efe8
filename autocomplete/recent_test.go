package autocomplete_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/autocomplete"
)

func TestRecentIsTheLatestFirst(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		ctx, r := t.Context(), autocomplete.NewRecent(c, "contacts")
		for _, contact := range []string{"Jean", "Jeannie", "Émile", "jeff", "Jean"} {
			must(t, r.Add(ctx, "ann", contact))
		}
		must(t, r.Add(ctx, "bob", "Jeb"))
		for _, look := range []struct {
			prefix string
			k      int
			want   []string
		}{
			{"", 100, []string{"Jean", "jeff", "Émile", "Jeannie"}},
			{"JE", 2, []string{"Jean", "jeff"}},
			{"jean", 10, []string{"Jean", "Jeannie"}},
			{"jean ", 10, []string{"Jean"}},
			{"e", 10, []string{"Émile"}},
			{"x", 10, nil},
		} {
			got, err := r.Match(ctx, "ann", look.prefix, look.k)
			must(t, err)
			if !slices.Equal(got, look.want) {
				t.Errorf("%q, %d: %q, want %q", look.prefix, look.k, got, look.want)
			}
		}
		for _, want := range []bool{true, false} {
			if got, err := r.Remove(ctx, "ann", "Jean"); err != nil || got != want {
				t.Errorf("removed: %v, %v, want %v", got, err, want)
			}
		}
		must(t, r.Clear(ctx, "ann"))
		must(t, r.Clear(ctx, "bob"))
		wantNoKeys(t, c)
	})
}

// Of 250 contacts some come again and again; those kept are the last 100 different ones.
func TestRecentIsItsModel(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		rapid.Check(t, func(t *rapid.T) {
			ctx, r := context.Background(), autocomplete.NewRecent(c, "contacts")
			if err := r.Clear(ctx, "ann"); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 250), 150, 300).Draw(t, "contacts") {
				contact := fmt.Sprint("contact ", n)
				if err := r.Add(ctx, "ann", contact); err != nil {
					t.Fatal(err)
				}
				want = slices.DeleteFunc(want, func(other string) bool { return other == contact })
				want = append([]string{contact}, want...)
				want = want[:min(len(want), autocomplete.RecentMax)]
			}
			got, err := r.Match(ctx, "ann", "", autocomplete.RecentMax)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q (%v), want %q", got, err, want)
			}
		})
	})
}

// Names of lists and users never meet in one key.
func TestRecentListsAreApart(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		names := []string{"a", "a:", "{a}", "a:{b}", "%7B"}
		for _, name := range names {
			for _, user := range names {
				must(t, autocomplete.NewRecent(c, name).Add(t.Context(), user, name+" of "+user))
			}
		}
		for _, name := range names {
			for _, user := range names {
				got, err := autocomplete.NewRecent(c, name).Match(t.Context(), user, "", 10)
				if err != nil || !slices.Equal(got, []string{name + " of " + user}) {
					t.Errorf("%q of %q has %q (%v)", name, user, got, err)
				}
			}
		}
	})
}
