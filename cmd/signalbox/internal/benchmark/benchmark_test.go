package benchmark_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// bench is a real Redis with one key of somebody else, and a connection for measuring.
func bench(t *testing.T, args ...string) (*benchmark.Server, *redis.Client) {
	t.Helper()
	addr := difftest.Redis(t, args...).Addr
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { must(t, client.Close()) })
	must(t, client.Set(t.Context(), "key:000000000000", "somebody else's", 0).Err())
	server, err := benchmark.Connect(t.Context(), "redis://"+addr)
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	return server, client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// short settings measure nothing well and everything once.
func short() benchmark.Settings {
	s := benchmark.DefaultSettings()
	s.Duration = 10 * time.Millisecond
	s.Locks.Clients = []int{1, 3}
	s.Commands.Clients, s.Commands.RandomKeys, s.Commands.Pipeline = 3, 100, 4
	s.Semaphores.Clients = 6
	return s
}

var everything = []benchmark.Part{benchmark.Locks, benchmark.Pipelining, benchmark.Commands, benchmark.Semaphores}

// onlyTheirs asserts that the server holds what it held before.
func onlyTheirs(t *testing.T, client *redis.Client) {
	t.Helper()
	keys, err := client.Keys(t.Context(), "*").Result()
	must(t, err)
	if !slices.Equal(keys, []string{"key:000000000000"}) || client.Get(t.Context(), keys[0]).Val() != "somebody else's" {
		t.Errorf("left on the server: %q", keys)
	}
}

func TestEveryPartIsMeasuredAndNothingIsLeft(t *testing.T) {
	server, client := bench(t, "--unixsocket", t.TempDir()+"/redis.sock")
	settings := short()
	settings.Rounds = 2
	var told []benchmark.Progress
	settings.Progress = func(p benchmark.Progress) { told = append(told, p) }
	r, err := benchmark.Run(t.Context(), server, settings, everything...)
	must(t, err)
	onlyTheirs(t, client)
	if r.Server.Name != "redis" || !strings.HasPrefix(r.Server.Version, "7.") {
		t.Errorf("the server is %v", r.Server)
	}
	if len(r.Locks) != 3*2 || len(r.Pipelining) != 4*2 || len(r.Commands) != len(benchmark.CommandTests()) || len(r.Semaphores) != 5*3 {
		t.Fatalf("%d locks, %d links, %d commands, %d semaphores", len(r.Locks), len(r.Pipelining), len(r.Commands), len(r.Semaphores))
	}
	for _, row := range r.Commands {
		if row.Requests == 0 || row.RequestsPerSecond <= 0 || row.LatencyP50 <= 0 || row.LatencyMax < row.LatencyP50 {
			t.Errorf("%+v", row)
		}
	}
	for _, row := range r.Pipelining {
		if row.Calls == 0 || row.RoundTrip <= 0 || row.RoundTripWanted > 40*time.Millisecond && row.RoundTrip < 20*time.Millisecond {
			t.Errorf("%+v", row)
		}
	}
	for _, row := range r.Locks {
		if row.Tries < row.Acquires || row.Most < row.Fewest || row.Lock == "signalbox" && row.Tries != row.Acquires {
			t.Errorf("%+v", row)
		}
	}
	if cells := len(r.Locks) + len(r.Pipelining) + len(r.Commands) + len(r.Semaphores); len(told) != 2*cells || told[0].All != 2*cells {
		t.Errorf("%d cells in 2 rounds, progress was told %d times, of %d", cells, len(told), told[0].All)
	}
}

func TestInterruptedRunLeavesNothing(t *testing.T) {
	server, client := bench(t)
	interrupted := errors.New("interrupted")
	for _, part := range everything {
		settings := short()
		settings.Duration = time.Hour
		ctx, cancel := context.WithCancelCause(t.Context())
		settings.Progress = func(benchmark.Progress) {
			// The keys of others are there before; the cell is at work when it has made some.
			go func() {
				for client.DBSize(ctx).Val() < 2 && ctx.Err() == nil {
				}
				cancel(interrupted)
			}()
		}
		if part == benchmark.Commands {
			settings.Commands.Tests = []string{"get"} // it fills keys first
		}
		if _, err := benchmark.Run(ctx, server, settings, part); !errors.Is(err, interrupted) {
			t.Errorf("%s: %v", part, err)
		}
		onlyTheirs(t, client)
	}
}

func TestSemaphoresWithSkewedClocks(t *testing.T) {
	server, _ := bench(t)
	settings := short()
	settings.Semaphores = benchmark.SemaphoreSettings{Clients: 12, Limit: 2, Skews: []time.Duration{10 * time.Millisecond}}
	over := map[string]int64{}
	// The unfair one lets too many in sooner or later; on a busy machine a cell may be over before.
	for round := 0; round < 200 && over["basic (6.3.1)"] == 0; round++ {
		r, err := benchmark.Run(t.Context(), server, settings, benchmark.Semaphores)
		must(t, err)
		for _, row := range r.Semaphores {
			over[row.Semaphore] += row.OverLimit
			if row.Semaphore == "signalbox" && (row.OverLimit > 0 || row.MostHolders > 2) {
				t.Errorf("ours: %+v", row)
			}
		}
	}
	if over["basic (6.3.1)"] == 0 {
		t.Error("the unfair semaphore never let too many in")
	}
}

func TestCommandsEndAfterSoManyRequests(t *testing.T) {
	server, client := bench(t)
	settings := short()
	settings.Commands = benchmark.CommandSettings{Tests: []string{"ping_mbulk", "lrange"}, Clients: 2, Pipeline: 8, Requests: 1000, ValueBytes: 10}
	r, err := benchmark.Run(t.Context(), server, settings, benchmark.Commands)
	must(t, err)
	if len(r.Commands) != 5 {
		t.Errorf("%d tests", len(r.Commands))
	}
	for _, row := range r.Commands {
		if row.Requests != 1000 {
			t.Errorf("%s: %d requests", row.Command, row.Requests)
		}
	}
	onlyTheirs(t, client)
}

func TestServerThatRefusesIsTold(t *testing.T) {
	server, client := bench(t)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	settings := short()
	settings.Commands.Tests = []string{"lpush"}
	_, err := benchmark.Run(t.Context(), server, settings, benchmark.Commands)
	if err == nil || !strings.Contains(err.Error(), "LPUSH: the server says: OOM") {
		t.Errorf("%v", err)
	}
}

func TestURLsThatAreNoSingleServer(t *testing.T) {
	for _, url := range []string{"redis+cluster://a:1,b:2", "redis+sentinel://a:1/m", "http://a", "redis://:geheim@%zz"} {
		_, err := benchmark.Connect(t.Context(), url)
		if !errors.Is(err, benchmark.ErrURL) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestPasswordAndDatabase(t *testing.T) {
	_, client := bench(t)
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "ann", "on", ">geheim", "~*", "&*", "+@all").Err())
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", ">anders").Err())
	server, err := benchmark.Connect(t.Context(), "redis://ann:geheim@"+client.Options().Addr+"/3")
	must(t, err)
	defer func() { must(t, server.Close()) }()
	settings := short()
	settings.Commands.Tests = []string{"set", "get"}
	_, err = benchmark.Run(t.Context(), server, settings, benchmark.Commands)
	must(t, err)
	onlyTheirs(t, client)
}
