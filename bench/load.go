package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// The load part: the engine and Redis under redis-benchmark, in turns, each alone on the server's core. The scripts are
// the library's own: they are overheard from a Box at work, with the arguments it sends.
//
// Operations per second say little at -P 1, where redis-benchmark itself is the limit; CPU per operation does then.

const (
	loadConnections = 50
	loadIDs         = "load:__rand_int__" // redis-benchmark puts a number in
	loadRange       = "100000"
)

type loadTest struct {
	name     string
	expected [2]float64 // operations per second on Redis, at -P 1 and at -P 16: the first guess
	args     []string   // for redis-benchmark; nil: cycles
	fill     []string   // arguments of a run before, which is not measured
	script   bool
	leases   string // the key of the leases, if there must be more of them afterwards,
	fewer    bool   // or fewer
	measured [2]loadSeries
}

// loadSeries is what the rounds found, Redis and the engine side by side.
type loadSeries struct {
	redis, engine []loadRun
}

type loadRun struct {
	rate float64
	cpu  float64 // microseconds of server CPU per operation
}

var pipelines = [2]int{1, 16}

func measureLoad(ctx context.Context, e effort, s *servers) (*section, error) {
	scripts, err := overhear(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	tests := loadTests(scripts)
	for round := range e.LoadRounds {
		for _, t := range tests {
			for i := range pipelines {
				if err := t.compare(ctx, e, s, scripts, i, round%2 == 1); err != nil {
					return nil, fmt.Errorf("load: %s -P %d: %w", t.name, pipelines[i], err)
				}
			}
		}
	}
	return loadSection(tests), nil
}

func loadTests(s *overheard) []*loadTest {
	eval := func(digest string, c scriptCall, id string) []string {
		args := []string{"EVALSHA", digest, strconv.Itoa(len(c.keys))}
		return slices.Concat(args, c.keys, c.withID(id))
	}
	acquire := eval(s.acquire.digest, s.acquire, loadIDs)
	return []*loadTest{
		{name: "GET", args: []string{"-t", "get"}, fill: []string{"-t", "set"}, expected: [2]float64{90e3, 900e3}},
		{name: "SET", args: []string{"-t", "set"}, expected: [2]float64{90e3, 700e3}},
		{name: "INCR", args: []string{"-t", "incr"}, expected: [2]float64{90e3, 1e6}},
		{name: "ZADD", args: []string{"-t", "zadd"}, expected: [2]float64{90e3, 400e3}},
		{
			name: "EVALSHA return 1", args: []string{"EVALSHA", s.nothing, "1", "load"}, script: true,
			expected: [2]float64{90e3, 500e3},
		},
		{
			name: "EVALSHA acquire, grants", args: acquire, script: true, leases: s.acquire.keys[1],
			expected: [2]float64{50e3, 60e3},
		},
		{
			name: "EVALSHA acquire, renews", args: eval(s.acquire.digest, s.acquire, "load:1"), script: true,
			leases: s.acquire.keys[1], expected: [2]float64{60e3, 80e3},
		},
		{
			name: "EVALSHA release", args: eval(s.release.digest, s.release, loadIDs), fill: acquire, script: true,
			leases: s.acquire.keys[1], fewer: true, expected: [2]float64{60e3, 80e3},
		},
		{name: "EVALSHA acquire and release", script: true, expected: [2]float64{50e3, 60e3}},
	}
}

// compare runs one test on both servers, with as many operations on the one as on the other.
func (t *loadTest) compare(
	ctx context.Context, e effort, s *servers, scripts *overheard, i int, engineFirst bool,
) error {
	n := e.LoadSeconds * t.guess(i)
	if len(t.measured[i].redis) == 0 {
		pilot := loadSeries{}
		for _, one := range []*server{s.redis, s.engine} {
			run, err := t.run(ctx, e, one, scripts, i, n/16)
			if err != nil {
				return fmt.Errorf("on %s: %w", one.name, err)
			}
			pilot.add(one == s.engine, run)
		}
		n = e.LoadSeconds * math.Sqrt(pilot.redis[0].rate*pilot.engine[0].rate)
	}
	order := []*server{s.redis, s.engine}
	if engineFirst {
		slices.Reverse(order)
	}
	for _, one := range order {
		run, err := t.run(ctx, e, one, scripts, i, n)
		if err != nil {
			return fmt.Errorf("on %s: %w", one.name, err)
		}
		t.measured[i].add(one == s.engine, run)
	}
	return nil
}

// guess is the rate by which the length of a run is chosen: between those of the two.
func (t *loadTest) guess(i int) float64 {
	m := t.measured[i]
	if len(m.redis) == 0 {
		return t.expected[i]
	}
	return math.Sqrt(m.redis[0].rate * m.engine[0].rate)
}

func (s *loadSeries) add(engine bool, run loadRun) {
	if engine {
		s.engine = append(s.engine, run)
	} else {
		s.redis = append(s.redis, run)
	}
}

func (t *loadTest) run(
	ctx context.Context, e effort, on *server, scripts *overheard, i int, operations float64,
) (loadRun, error) {
	client := backend{Addr: on.addr}.client()
	defer shut(client)
	if err := client.FlushAll(ctx).Err(); err != nil {
		return loadRun{}, err
	}
	n := max(int(operations)/(loadConnections*16)*loadConnections*16, loadConnections*16)
	if t.args == nil {
		return runCycles(e, on, scripts, pipelines[i], n)
	}
	if t.fill != nil {
		if _, err := benchmark(e, on, 16, n, t.fill); err != nil {
			return loadRun{}, err
		}
	}
	leases, err := t.countLeases(ctx, client)
	if err != nil {
		return loadRun{}, err
	}
	cpu := on.process.cpu()
	rate, err := benchmark(e, on, pipelines[i], n, t.args)
	if err != nil {
		return loadRun{}, err
	}
	cpu = on.process.cpu() - cpu
	// redis-benchmark does not mind answers that are errors.
	left, err := t.countLeases(ctx, client)
	if err != nil {
		return loadRun{}, err
	}
	if t.leases != "" && (left == leases || (left < leases) != t.fewer) {
		return loadRun{}, fmt.Errorf("the scripts did not work: %d leases before, %d after", leases, left)
	}
	return loadRun{rate, float64(cpu.Microseconds()) / float64(n)}, nil
}

func (t *loadTest) countLeases(ctx context.Context, client *redis.Client) (int64, error) {
	if t.leases == "" {
		return 0, nil
	}
	return client.ZCard(ctx, t.leases).Result()
}

func benchmark(e effort, on *server, pipeline, n int, args []string) (float64, error) {
	return redisBenchmark(e.cores.client, on, loadConnections, pipeline, n, args)
}

func loadSection(tests []*loadTest) *section {
	out := &section{
		Title: fmt.Sprintf("Load: the engine beside Redis, %d connections", loadConnections),
		Note: "redis-benchmark -d 64 -r " + loadRange + ", but for acquire and release in turns, which a loader of this " +
			"program makes. CPU is the server's, user and system, in µs per operation. Medians; ratios are of neighbours.",
		Columns: []string{"what", "-P", "Redis op/s", "engine op/s", "ratio", "Redis CPU", "engine CPU", "ratio"},
	}
	for i, pipeline := range pipelines {
		for _, t := range tests {
			m := t.measured[i]
			rates, cpus := ratiosOf(m.rates()), ratiosOf(m.cpus())
			engineRates, redisRates := m.rates()
			engineCPUs, redisCPUs := m.cpus()
			out.row(t.name, strconv.Itoa(pipeline), count(median(redisRates)), count(median(engineRates)), spread(rates, 2),
				number(median(redisCPUs), 2), number(median(engineCPUs), 2), spread(cpus, 2))
			what := fmt.Sprintf("%s -P %d: ", t.name, pipeline)
			least := []float64{0.95, 1}[i]
			if t.script {
				least = 0.5
			}
			out.atLeast(what+"rate, x Redis", least, rates)
			if !t.script {
				out.atMost(what+"CPU per operation, x Redis", 1, cpus)
			}
		}
	}
	return out
}

func (s *loadSeries) rates() (engine, redis []float64) {
	for i := range s.redis {
		engine, redis = append(engine, s.engine[i].rate), append(redis, s.redis[i].rate)
	}
	return engine, redis
}

func (s *loadSeries) cpus() (engine, redis []float64) {
	for i := range s.redis {
		engine, redis = append(engine, s.engine[i].cpu), append(redis, max(s.redis[i].cpu, 0.001))
	}
	return engine, redis
}

// scriptCall is a script call as the library makes it. The digest is the same on every server.
type scriptCall struct {
	digest     string
	keys, argv []string
	id         string
}

func (c scriptCall) withID(id string) []string {
	argv := slices.Clone(c.argv)
	for i := range argv {
		if argv[i] == c.id {
			argv[i] = id
		}
	}
	return argv
}

// overheard are the calls of a Box that acquires without waiting and releases, of a semaphore with room for all, and of
// a mutex.
type overheard struct {
	nothing                                      string // the digest of a script that does nothing
	acquire, release, mutexAcquire, mutexRelease scriptCall
}

// overhear makes the library work on both servers, which then know the scripts.
func overhear(ctx context.Context, s *servers) (*overheard, error) {
	var heard *overheard
	for _, one := range []*server{s.redis, s.engine} {
		client := backend{Addr: one.addr}.client()
		defer shut(client)
		ear := &ear{}
		client.AddHook(ear)
		box := signalbox.New(client)
		defer shut(box)
		ids := make([]string, 2)
		for i, limit := range []int{math.MaxInt32, 1} {
			lease, err := box.Semaphore(fmt.Sprintf("load%d", i), limit).TryAcquire(ctx)
			if err != nil {
				return nil, err
			}
			ids[i] = lease.ID()
			if err := lease.Release(ctx); err != nil {
				return nil, err
			}
		}
		nothing, err := client.ScriptLoad(ctx, "return 1").Result()
		if err != nil {
			return nil, err
		}
		// The first acquire and release may have been sent twice: by digest, then with the text.
		calls := ear.distinct()
		if len(calls) != 4 {
			return nil, fmt.Errorf("the library made %d script calls, expected 4", len(calls))
		}
		for i := range calls {
			calls[i].id = ids[i/2]
		}
		heard = &overheard{nothing, calls[0], calls[1], calls[2], calls[3]}
	}
	return heard, nil
}

// ear is a hook that notes the EVALSHA a client sends.
type ear struct {
	mu    sync.Mutex
	calls []scriptCall
}

func (e *ear) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *ear) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := e.note(cmd); err != nil {
				return err
			}
		}
		return next(ctx, cmds)
	}
}

func (e *ear) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := e.note(cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (e *ear) note(cmd redis.Cmder) error {
	if cmd.Name() != "evalsha" {
		return nil
	}
	args := cmd.Args()
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = fmt.Sprint(arg)
	}
	keys, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, scriptCall{digest: words[1], keys: words[3 : 3+keys], argv: words[3+keys:]})
	return nil
}

func (e *ear) distinct() []scriptCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.CompactFunc(e.calls, func(a, b scriptCall) bool {
		return a.digest == b.digest && strings.Join(a.argv, " ") == strings.Join(b.argv, " ")
	})
}
