package crashtest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const (
	defaultRounds = 60
	// roundsOfAFolder is how many crashes a folder goes through.
	roundsOfAFolder = 25
	// progressEvery is how many rounds there are between two lines of progress.
	progressEvery = 500
)

// policy is a way to keep the data, and what it promises.
type policy struct {
	name     string
	settings []string
	// lasting is whether what was acknowledged is there after a kill. Otherwise it is if it was there before
	// the last save.
	lasting bool
	// switching is whether the append-only file is turned off and on again. What happens in between may be gone.
	switching bool
}

var policies = []policy{
	{name: "always", settings: []string{"appendonly=yes", "appendfsync=always"}, lasting: true},
	{name: "everysec", settings: []string{"appendonly=yes", "appendfsync=everysec"}, lasting: true},
	{name: "no", settings: []string{"appendonly=yes", "appendfsync=no"}, lasting: true},
	{name: "switched off and on", settings: []string{"appendonly=yes", "appendfsync=always"}, lasting: true, switching: true},
	{name: "snapshots", settings: []string{"appendonly=no"}},
}

// What was acknowledged survives a kill at any moment, and what is there is a prefix of
// what happened. CRASH_ROUNDS is how many kills, SEED at which moments.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	rounds, seed := number(t, "CRASH_ROUNDS", defaultRounds), number(t, "SEED", 1)
	for i, p := range policies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			p.settings = append(p.settings, "save=1 1", "auto-aof-rewrite-min-size=1kb", "auto-aof-rewrite-percentage=10")
			p.crash(t, r, rounds/len(policies))
		})
	}
}

// crash kills engines so often, in one folder after the other.
func (p policy) crash(t *testing.T, r *rand.Rand, rounds int) {
	t.Helper()
	began, looked := time.Now(), 0
	for done := 0; done < rounds; {
		f := newFolder(t, p)
		for range min(roundsOfAFolder, rounds-done) {
			f.round(t, r)
			if done++; done%progressEvery == 0 {
				fmt.Printf("%s: %d rounds, %v\n", p.name, done, time.Since(began).Round(time.Second))
			}
		}
		f.last(t)
		looked += f.looked
		f.remove(t)
	}
	t.Logf("%d rounds in %v; the data was looked at %d times", rounds, time.Since(began).Round(time.Millisecond), looked)
}

func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// newFolder makes an empty folder; its path is short enough for a socket.
func newFolder(t *testing.T, p policy) *folder {
	t.Helper()
	dir, err := os.MkdirTemp("", "crash") //nolint:usetesting // short, and kept if the test fails
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{policy: p, home: dir, dir: filepath.Join(dir, "data"), socket: filepath.Join(dir, "s")}
	for i := range f.writers {
		f.writers[i] = newWriter(i)
	}
	return f
}

// remove removes a folder that has passed; one that has not is kept, to be looked into.
func (f *folder) remove(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(f.home); err != nil {
		t.Error(err)
	}
}
