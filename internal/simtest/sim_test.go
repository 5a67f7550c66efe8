package simtest

import (
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9/logging"
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
	seeds := fixedSeeds
	if one, ok := variable(t, "SEED"); ok {
		seeds = []uint64{one}
	} else if many, ok := variable(t, "SEEDS"); ok {
		from, set := variable(t, "FROM")
		if !set {
			from = 1000
		}
		seeds = nil
		for i := range many {
			seeds = append(seeds, from+i)
		}
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { Run(t, Draw(seed)) })
	}
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
