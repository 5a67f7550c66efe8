package simulation

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-io/signalbox/internal/cases"
)

// TestHistories plays histories: a thousand of them, or SIGNALBOX_SEEDS, from SIGNALBOX_SEED on.
func TestHistories(t *testing.T) {
	t.Parallel()
	first, n := number(t, "SIGNALBOX_SEED", 1), number(t, "SIGNALBOX_SEEDS", uint64(cases.Count(1000)))
	if os.Getenv("SIGNALBOX_SEED") != "" {
		n = number(t, "SIGNALBOX_SEEDS", 1) // one that has failed
	}
	var next atomic.Uint64
	next.Store(first)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			s := newServer()
			defer s.engine.Close()
			for seed := next.Add(1) - 1; seed < first+n && !t.Failed(); seed = next.Add(1) - 1 {
				if failure, _ := play(seed, s, false, sound); failure != "" {
					_, trace := play(seed, s, true, sound)
					t.Errorf("SIGNALBOX_SEED=%d: %s\n%s", seed, failure, trace)
				}
			}
		})
	}
	workers.Wait()
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestASeedReplays plays histories twice, on servers that have served others before and not, and compares to the byte.
func TestASeedReplays(t *testing.T) {
	t.Parallel()
	used := newServer()
	defer used.engine.Close()
	for seed := range uint64(20) {
		fresh := newServer()
		failure, trace := play(seed, fresh, true, sound)
		fresh.engine.Close()
		againFailure, again := play(seed, used, true, sound)
		if failure != againFailure || trace != again {
			t.Fatalf("seed %d had another history the second time:\n%s\n%s\n\n%s\n%s", seed, failure, trace, againFailure, again)
		}
		if len(trace) < 500 {
			t.Fatalf("seed %d has next to no history:\n%s", seed, trace)
		}
	}
}

// mutant is something that the clients of a history do wrong.
type mutant int

const (
	sound             mutant = iota
	barsNothing              // ids that are taken back can be brought back by a late request
	countsFromAnswers        // leases count from when the answer came
	numbersNothing           // a change of weight that comes late is applied
)

// TestMutantsAreFound shows that the checks can fail.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	if cases.Count(2) < 2 {
		t.Skip("once is enough, without the race detector")
	}
	s := newServer()
	defer s.engine.Close()
	for wrong, promise := range map[mutant]string{barsNothing: "L7", countsFromAnswers: "L1", numbersNothing: "L1"} {
		found := ""
		for seed := uint64(1); found == "" && seed < 5000; seed++ {
			found, _ = play(seed, s, false, wrong)
		}
		if !strings.HasPrefix(found, promise) {
			t.Errorf("mutant %d breaks %s, and what was found is %q", wrong, promise, found)
		}
	}
}
