package sentinel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/engineprocess"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// Rounds of faults on a Sentinel group of three: in each round the primary is killed, suspended, cut off from all, or cut
// off with its clients; another one takes its place, and the old one comes back as a replica. All the while clients take locks and write (book_test.go).
//
// A few rounds are a test; `make drills ROUNDS=200` plays as many as wanted.

func TestMain(m *testing.M) {
	engineprocess.Main()
	faults.Main(m)
}

// starter starts a data server.
type starter func(t testing.TB, extraArgs ...string) *difftest.Server

func TestSentinelRounds(t *testing.T) { play(t, engineprocess.Start) }

func TestSentinelRoundsMixed(t *testing.T) { play(t, engineprocess.Start, difftest.Redis) }

// play plays the rounds on servers of these kinds, in turn.
func play(t *testing.T, kinds ...starter) {
	t.Helper()
	rounds, seed := number(t, "DRILL_ROUNDS", 4), number(t, "SEED", 1)
	faults.BeginFor(t, time.Duration(rounds)*time.Minute)
	started := 0
	group := topology.StartSentinel(t, topology.SentinelOptions{Proxied: true, Start: func(t testing.TB, extraArgs ...string) *difftest.Server {
		started++
		return kinds[(started-1)%len(kinds)](t, extraArgs...)
	}})
	b := openBook(t, group)
	random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // a seed is not negative
	faultsInTurn := []func(*topology.Node) (heal func()){
		func(n *topology.Node) func() { n.Kill(); return n.Restart },
		func(n *topology.Node) func() { n.Pause(); return n.Resume },
		func(n *topology.Node) func() { n.CutOff(""); return n.Rejoin },
		func(n *topology.Node) func() { n.CutOff("signalbox:"); return n.Rejoin }, // on the side of the clients
	}
	var order []int
	for range rounds {
		if len(order) == 0 {
			order = random.Perm(len(faultsInTurn))
		}
		b.turns()
		old := group.Primary()
		b.losing(true)
		heal := faultsInTurn[order[0]](old)
		group.AwaitTakeover(old)
		b.turns() // they go on without the old one
		heal()
		group.AwaitWhole()
		b.losing(false)
		order = order[1:]
		b.nothingLost(group.Primary().Client)
	}
	b.turns()
	b.close()
	t.Logf("%d rounds: %s", rounds, b)
}

// number is that of an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatal(fmt.Errorf("%s=%s: give a number", name, text))
	}
	return n
}
