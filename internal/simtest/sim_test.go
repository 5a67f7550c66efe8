package simtest

import (
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/signalbox-io/signalbox/internal/cases"
)

func TestMain(m *testing.M) {
	logging.Disable() // a client that cannot dial says so; here that is the plan
	os.Exit(m.Run())
}

// fixedSeeds are run each time: a spread, and every seed that has found something once.
var fixedSeeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8, 1004, 1092, 1168, 1171, 2004, 2028}

// TestSeeds runs the fixed seeds; SEED=n runs that one alone, with its trace if it fails; SEEDS=n searches n seeds
// from 1000 on, or from FROM=n.
func TestSeeds(t *testing.T) {
	seeds := cases.Few(fixedSeeds)
	if chosen := chosenSeeds(t); chosen != nil {
		seeds = chosen
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			Run(t, Draw(seed))
		})
	}
}

// TestSeedsWithDataThatIsKept is TestSeeds on an engine that keeps its data, and is ended and started again in the
// middle: no restart excuses anything.
func TestSeedsWithDataThatIsKept(t *testing.T) {
	seeds := cases.Few([]uint64{1, 2, 3, 4, 5, 6})
	if chosen := chosenSeeds(t); chosen != nil {
		seeds = chosen
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			plan := Draw(seed)
			plan.Restarts, plan.Dir = true, t.TempDir()
			Run(t, plan)
		})
	}
}

// TestWorkloads is the same for each workload: its first three seeds, and those that have found something once.
func TestWorkloads(t *testing.T) {
	for name := range workloads {
		seeds := cases.Few(append([]uint64{1, 2, 3}, foundIn[name]...))
		if chosen := chosenSeeds(t); chosen != nil {
			seeds = chosen
		}
		t.Run(name, func(t *testing.T) {
			for _, seed := range seeds {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					t.Parallel()
					Run(t, DrawWorkload(name, seed))
				})
			}
		})
	}
}

// foundIn are the seeds that have found something in a workload.
var foundIn = map[string][]uint64{}

// chosenSeeds are those that the environment asks for, nil if it does not.
func chosenSeeds(t *testing.T) (seeds []uint64) {
	t.Helper()
	if one, ok := variable(t, "SEED"); ok {
		return []uint64{one}
	}
	many, ok := variable(t, "SEEDS")
	from, set := variable(t, "FROM")
	if !set {
		from = 1000
	}
	for i := range many {
		seeds = append(seeds, from+i)
	}
	if !ok {
		return nil
	}
	return seeds
}

func variable(t *testing.T, name string) (uint64, bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", name, text, err)
	}
	return n, true
}
