package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// Real Sentinels watch engines, which are processes of their own: this test binary, started again with a
// configuration file.

const engineConfig = "ENGINE_TEST_CONFIG"

func TestMain(m *testing.M) {
	path := os.Getenv(engineConfig)
	if path == "" {
		topology.Main(m)
		return
	}
	flag.Parse()
	if err := serveConfig(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveConfig serves an engine until the process is killed.
func serveConfig(path string) error {
	config, err := engine.ReadConfig(path)
	if err != nil {
		return err
	}
	doors, _, err := config.Listen()
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{Config: config, Dir: config.Dir(), Port: doors[0].Addr().(*net.TCPAddr).Port, Log: func(_ int, line string) {
		fmt.Println(time.Now().Format("15:04:05.000"), line)
	}})
	if err != nil {
		return err
	}
	return errors.Join(e.Serve(doors[0]), e.Close())
}

// engineProcess starts an engine that can be killed, with arguments as redis-server takes them.
func engineProcess(t testing.TB, extraArgs ...string) *difftest.Server {
	t.Helper()
	return difftest.StartConfigured(t, append([]string{"--enable-debug-command", "yes"}, extraArgs...), func(path string) []string { return []string{"env", engineConfig + "=" + path, os.Args[0]} })
}

// TestSentinelWatchesEngines kills the primary of two engines, then of an engine and a Redis, round after round: Sentinel
// promotes the other one, and makes what comes back its replica.
func TestSentinelWatchesEngines(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]func(testing.TB, ...string) *difftest.Server{
		"engines": {engineProcess}, "an engine and a Redis": {engineProcess, difftest.Redis},
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
