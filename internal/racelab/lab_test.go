package racelab

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// named finds an algorithm, as a copy.
func named(t *testing.T, name string) *Algorithm {
	t.Helper()
	a, known := Named(name)
	if !known {
		t.Fatalf("there is no algorithm %q", name)
	}
	patient := *a
	return &patient
}

// brokenBy returns how a promise was broken, and fails if it was not.
func brokenBy(t *testing.T, r Report, p Promise) Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Promise == p })
	if i < 0 {
		t.Fatalf("%s: nothing was found against %q in %d schedules and %d random ones", r.Algorithm, p, r.Schedules, r.Random)
	}
	return r.Findings[i]
}

// faultsOf are the misfortunes of a schedule, in their order.
func faultsOf(f Finding) string {
	var faults []string
	for _, c := range f.Choices {
		if c.IsFault() {
			faults = append(faults, string(c.Kind))
		}
	}
	return strings.Join(faults, ", ")
}

// Nothing tells the lab where to look, and the misfortunes that it needs are the
// ones that are known to break these algorithms.
func TestRacesAreFoundByTheDefaults(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[Promise]string{
		"setnx-lock":     {Timed: "crash"},
		"lock":           {Limit: "pause", Kept: "pause"},
		"semaphore":      {Limit: "", Kept: "clock"},
		"fair-semaphore": {Limit: "", Truth: "pause", Kept: "clock"},
		"lua-semaphore":  {Limit: "clock", Kept: "clock"},
		"list-semaphore": {Limit: "lost reply", Freed: "crash"},
		"binary-lock":    {Woken: "", Freed: "lost reply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := named(t, name)
			r := Explore(a, a.Defaults(), nil)
			for promise, faults := range want {
				if got := faultsOf(brokenBy(t, r, promise)); got != faults {
					t.Errorf("%q is broken by [%s], want [%s]", promise, got, faults)
				}
			}
			if len(r.Findings) != len(want) {
				t.Errorf("%d promises are broken, want %d", len(r.Findings), len(want))
			}
		})
	}
}

func TestLockedSemaphoreStaysShutAfterALostReply(t *testing.T) {
	t.Parallel()
	a := named(t, "locked-semaphore")
	b := a.Defaults()
	b.Schedules, b.Random = 1000, 0
	brokenBy(t, Explore(a, b, nil), Freed)
}

func TestLuaLockIsClean(t *testing.T) {
	t.Parallel()
	a := named(t, "lua-lock")
	if r := Explore(a, a.Defaults(), nil); !r.Whole || len(r.Findings) > 0 {
		t.Errorf("whole %v, findings %v", r.Whole, r.Findings)
	}
}

func TestLedgerIsClean(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ledger", "ledger-semaphore"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := named(t, name)
			r := Explore(a, a.Defaults(), nil)
			for _, f := range r.Findings {
				t.Errorf("%s: %s\n%s", f.Promise, f.Why, strings.Join(f.Table(120, plain), "\n"))
			}
			if !r.Whole || r.Schedules == 0 || r.States == 0 || r.Random == 0 {
				t.Errorf("whole %v: %d schedules, %d states, %d random", r.Whole, r.Schedules, r.States, r.Random)
			}
			for _, fault := range ledgerFaults {
				if r.Bounds.Faults > 0 && r.Faults[fault] == 0 {
					t.Errorf("%s was never tried", fault)
				}
			}
		})
	}
}

func plain(_ Mark, text string) string { return text }

// The lab would see it if the ledger were wrong.
func TestMutantsOfTheLedgerAreFound(t *testing.T) {
	t.Parallel()
	for name, mutant := range map[string]struct {
		old, new        string
		clients, faults int
		promise         Promise
	}{
		"acquire does not look whether the weight fits":     {"held + weight <= ", "0 * held <= ", 2, 0, Limit},
		"leases expire early":                               {"expires, alone = now + ttl", "expires, alone = now + ttl - 20000", 2, 0, Limit},
		"renew does not look whether the lease has expired": {"if expires and expires > now then", "if true then", 2, 1, Truth},
		"the last waiter is the head":                       {"call('ZRANGE', QUEUE, 0, 0)[1]", "call('ZRANGE', QUEUE, -1, -1)[1]", 3, 0, Order},
		"keys have no expiry":                               {"call('PEXPIRE', STATE", "call('EXISTS', STATE", 2, 0, Timed},
		"a grant lasts for less than is said":               {"plain and now + claim", "plain and now + 1", 3, 0, Limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, met := named(t, "ledger"), false
			a.mutate = func(script string) string {
				met = met || strings.Contains(script, mutant.old)
				return strings.ReplaceAll(script, mutant.old, mutant.new)
			}
			r := Explore(a, Bounds{Clients: mutant.clients, Faults: mutant.faults, Depth: 60, Schedules: 20_000, only: []Promise{mutant.promise}}, nil)
			if !met {
				t.Fatalf("no script has %q", mutant.old)
			}
			brokenBy(t, r, mutant.promise)
		})
	}
}

func TestSchedulesReplay(t *testing.T) {
	t.Parallel()
	a := named(t, "fair-semaphore")
	b := a.Defaults()
	b.only = []Promise{Limit, Truth}
	r := Explore(a, b, nil)
	for _, f := range r.Findings {
		w := newWorld(a, a.Clients)
		for range 2 {
			if diff := cmp.Diff(f, w.replay(f.Choices)); diff != "" {
				t.Errorf("%s (-found +replayed):\n%s", f.Promise, diff)
			}
		}
		w.close()
	}
}

// Putting steps to sleep spares schedules and hides no state and no finding.
func TestReductionLosesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"semaphore", "lock", "lua-lock", "binary-lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := named(t, name)
			b := a.Defaults()
			b.Random, b.Schedules, b.Faults = 0, 0, 1
			reduced := Explore(a, b, nil)
			b.awake = true
			all := Explore(a, b, nil)
			if reduced.States != all.States || len(reduced.Findings) != len(all.Findings) {
				t.Errorf("%d states and %d findings, of %d and %d", reduced.States, len(reduced.Findings), all.States, len(all.Findings))
			}
			if reduced.Schedules >= all.Schedules {
				t.Errorf("%d schedules, %d without reduction", reduced.Schedules, all.Schedules)
			}
		})
	}
}

func TestChanceFindsAndShrinks(t *testing.T) {
	t.Parallel()
	a := named(t, "fair-semaphore")
	b := a.Defaults()
	b.Schedules = 1
	f := brokenBy(t, Explore(a, b, nil), Limit)
	if steps := len(f.Choices); steps > 12 {
		t.Errorf("the schedule has %d steps, of which not all can be needed", steps)
	}
	if again := brokenBy(t, Explore(a, b, nil), Limit); !cmp.Equal(f, again) {
		t.Errorf("another run with the same seed has found\n%s", cmp.Diff(f, again))
	}
}

func TestTableFits(t *testing.T) {
	t.Parallel()
	a := named(t, "fair-semaphore")
	b := a.Defaults()
	b.only = []Promise{Limit}
	f := brokenBy(t, Explore(a, b, nil), Limit)
	for _, width := range []int{80, 120} {
		lines := f.Table(width, plain)
		for _, line := range lines {
			if n := len([]rune(line)); n > width {
				t.Errorf("%d columns, %d are allowed: %s", n, width, line)
			}
		}
		for _, part := range []string{"INCR s:counter", "= HOLDS until"} {
			if text := strings.Join(lines, "\n"); strings.Count(text, part) != 2 {
				t.Errorf("%q is not there twice:\n%s", part, text)
			}
		}
	}
}
