package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/engineprocess"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// Real Sentinels watch engines, which are processes of their own.

func TestMain(m *testing.M) {
	engineprocess.Main()
	topology.Main(m)
}

// TestSentinelWatchesEngines kills the primary of two engines, then of an engine and a Redis, round after round: Sentinel
// promotes the other one, and makes what comes back its replica.
func TestSentinelWatchesEngines(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]func(testing.TB, ...string) *difftest.Server{
		"engines": {engineprocess.Start}, "an engine and a Redis": {engineprocess.Start, difftest.Redis},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := 0
			group := topology.StartSentinel(t, topology.SentinelOptions{Replicas: 1, Start: func(t testing.TB, extraArgs ...string) *difftest.Server {
				started++
				return kinds[(started-1)%len(kinds)](t, extraArgs...)
			}})
			for round := range cases.Few([]int{1, 2, 3}) {
				old := group.Primary()
				key := fmt.Sprint("k", round)
				if err := old.Client.Set(t.Context(), key, round, 0).Err(); err != nil {
					t.Fatal(err)
				}
				if n := old.Client.Wait(t.Context(), 1, time.Minute).Val(); n != 1 {
					t.Fatalf("%d replicas have it", n)
				}
				old.Kill()
				next := group.AwaitTakeover(old)
				if got := next.Client.Get(t.Context(), key).Val(); got != fmt.Sprint(round) {
					t.Fatalf("what a replica has acknowledged is %q after the failover", got)
				}
				old.Restart()
				group.AwaitWhole()
				if group.Primary() != next {
					t.Fatal("the one that came back is the primary")
				}
				if got := old.Client.Get(t.Context(), key).Val(); got != fmt.Sprint(round) {
					t.Fatalf("the one that came back has %q", got)
				}
			}
		})
	}
}
