package racelab

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// queueSoak is how many random schedules are drawn, and all others are searched, for `make soak-queue`.
var queueSoak, _ = strconv.Atoi(os.Getenv("SIGNALBOX_QUEUE_SOAK")) // 0 without it

func TestQueueIsClean(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"queue", "queue-once", "queue-list"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := named(t, name)
			b := a.Defaults()
			b.Schedules, b.Random = 2500, 100
			if queueSoak > 0 {
				b.Schedules, b.Random = 0, queueSoak
			}
			r := Explore(a, b, nil)
			for _, f := range r.Findings {
				t.Errorf("%s: %s\n%s", f.Promise, f.Why, strings.Join(f.Table(160, plain), "\n"))
			}
			for _, f := range a.Faults {
				if r.Faults[f] == 0 {
					t.Errorf("%s was never tried", f)
				}
			}
			t.Logf("%d schedules, %d states, %d random ones, whole: %v", r.Schedules, r.States, r.Random, r.Whole)
		})
	}
}

// The lab would see it if the queue were wrong.
func TestMutantsOfTheQueueAreFound(t *testing.T) {
	t.Parallel()
	for _, mutant := range []struct {
		algorithm, old, new string
		promise             Promise
	}{
		{"queue-once", "~= tick then return", "== '' then return", existsOnce},
		{"queue", "if n == callNumber then", "if false then", endsOnce},
		{"queue", "what == 'w' then", "what == 'never' then", Freed},
		{"queue", "if limit then n = math.min", "if false then n = math.min", withinLimits},
		{"queue", "PEXPIRE', key, lease * 4", "EXISTS', key", leavesNothing},
		{"queue-once", "if other then outcome", "if false then outcome", existsOnce},
		{"queue-list", "#lines < n or redis.sha1hex(table.concat(lines, '\\n')) ~= nextTick", "false", existsOnce},
		{"queue-list", "call('LTRIM', list, n, -1)", "call('DEL', list)", neverLost},
	} {
		t.Run(mutant.old, func(t *testing.T) {
			t.Parallel()
			a, met := named(t, mutant.algorithm), false
			a.mutate = func(script string) string {
				met = met || strings.Contains(script, mutant.old)
				return strings.ReplaceAll(script, mutant.old, mutant.new)
			}
			b := a.Defaults()
			b.Faults, b.Schedules, b.Random, b.only = 1, 3000, 0, []Promise{mutant.promise}
			r := Explore(a, b, nil)
			if !met {
				t.Fatalf("no script has %q", mutant.old)
			}
			brokenBy(t, r, mutant.promise)
		})
	}
}
