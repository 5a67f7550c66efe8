package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The group load: redis-benchmark with 50 connections, -d 64, at -P 1 and -P 16. Both servers get as many operations.

// command is what redis-benchmark is told to send.
type command struct {
	name    string
	args    []string
	fill    []string // sent before, as often, and not measured
	filled  int      // how often the fill is sent; 0: as often as the command
	keys    string
	rates   [2]float64 // of Redis, roughly: for how many operations a run has
	script  bool
	changes string // a sorted set of which the length must change: redis-benchmark does not mind answers
	cycles  bool   // acquire and release in turns, by a loader of this program
}

const (
	manyKeys  = "3000000"
	lockCycle = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then " +
		"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end end return 0"
)

// leastShare of the usual operations is done however slow the machine is: fewer tell nothing.
const leastShare = 0.25

// keysFilled is how many random keys are set so that nine of ten are there.
const keysFilled = 250_000

// commands are all that the aims name. Scripts are added when the servers know them.
func commands() []*command {
	fast := func(p16 float64) [2]float64 { return [2]float64{90e3, p16} }
	named := func(name string, p16 float64, fill ...string) *command {
		return &command{name: strings.ToUpper(name), args: []string{"-t", name}, rates: fast(p16), fill: fill}
	}
	get := named("get", 900e3, "-t", "set")
	get.filled = keysFilled
	list := []*command{
		{name: "PING", args: []string{"-t", "ping_mbulk"}, rates: fast(1.3e6)},
		named("set", 700e3), get, named("incr", 1e6), named("lpush", 900e3),
		named("rpush", 900e3), named("lpop", 900e3, "-t", "lpush"), named("rpop", 900e3, "-t", "lpush"),
		named("sadd", 950e3), named("hset", 800e3), named("spop", 900e3, "-t", "sadd"), named("zadd", 400e3),
		named("zpopmin", 900e3, "-t", "zadd"),
	}
	large := func(name string, p16 float64, fill ...string) {
		c := named(name, p16, fill...)
		c.name, c.keys = c.name+" of 3 M", manyKeys
		list = append(list, c)
	}
	large("sadd", 700e3)
	large("spop", 500e3, "-t", "sadd")
	large("zadd", 320e3)
	large("zpopmin", 600e3, "-t", "zadd")
	for _, n := range []struct {
		length int
		rates  [2]float64
	}{{100, [2]float64{64e3, 150e3}}, {300, [2]float64{38e3, 60e3}}, {500, [2]float64{26e3, 40e3}}, {600, [2]float64{22e3, 33e3}}} {
		list = append(list, &command{
			name: fmt.Sprintf("LRANGE_%d", n.length), args: []string{"LRANGE", "mylist", "0", strconv.Itoa(n.length - 1)},
			fill: []string{"-t", "lpush"}, filled: 1000, rates: n.rates,
		})
	}
	list = append(list, &command{name: "MSET of 10", args: []string{"-t", "mset"}, rates: [2]float64{74e3, 180e3}})
	return append(list, sketchesAndPlaces()...)
}

// sketchesAndPlaces are commands on one HyperLogLog, and on places that are a few hundred metres apart.
func sketchesAndPlaces() []*command {
	pfadd := []string{"PFADD", "sketch", "element:__rand_int__"}
	geoadd := []string{"GEOADD", "places", "__rand_int__e-5", "__rand_int__e-5", "place:__rand_int__"}
	return []*command{
		{name: "PFADD", args: pfadd, rates: [2]float64{90e3, 800e3}},
		{name: "PFCOUNT", args: []string{"PFCOUNT", "sketch"}, fill: pfadd, filled: keysFilled, rates: [2]float64{90e3, 800e3}},
		{name: "GEOADD", args: geoadd, rates: [2]float64{85e3, 280e3}},
		{name: "GEOSEARCH", args: []string{"GEOSEARCH", "places", "FROMLONLAT", "0.5", "0.5", "BYRADIUS", "1", "km"}, fill: geoadd, filled: keysFilled, rates: [2]float64{50e3, 80e3}},
	}
}

// scriptCommands are those of the library, overheard, and the lock of most libraries in one script.
func scriptCommands() []*command {
	return []*command{
		{name: "EVALSHA lock cycle", script: true, rates: [2]float64{90e3, 250e3}},
		{name: "EVALSHA ledger acquire", script: true, rates: [2]float64{50e3, 70e3}},
		{name: "EVALSHA ledger release", script: true, rates: [2]float64{60e3, 90e3}},
		{name: "EVALSHA ledger acquire and release in turn", script: true, cycles: true, rates: [2]float64{50e3, 70e3}},
	}
}

// teach gives the script commands their arguments, and the servers the scripts.
func teach(ctx context.Context, b *engineBench, list []*command) (*overheard, error) {
	heard, err := overhear(ctx, b.pair)
	if err != nil {
		return nil, err
	}
	var cycle string
	for _, one := range []*server{b.pair.redis, b.pair.engine} {
		client := backend{Addr: one.addr}.client()
		defer shut(client)
		if cycle, err = client.ScriptLoad(ctx, lockCycle).Result(); err != nil {
			return nil, err
		}
	}
	eval := func(c scriptCall) []string {
		return slices.Concat([]string{"EVALSHA", c.digest, strconv.Itoa(len(c.keys))}, c.keys, c.withID(loadIDs))
	}
	for _, c := range list {
		switch {
		case !c.script || c.cycles:
		case strings.HasSuffix(c.name, "lock cycle"):
			c.args = []string{"EVALSHA", cycle, "1", "lock:__rand_int__", "token:0123456789", "30000"}
		case strings.HasSuffix(c.name, "acquire"):
			c.args, c.changes = eval(heard.acquire), heard.acquire.keys[1]
		default:
			c.args, c.fill, c.changes = eval(heard.release), eval(heard.acquire), heard.acquire.keys[1]
		}
	}
	return heard, nil
}

func loadGroup(*engineBench) *engineGroup {
	g := &engineGroup{}
	list := append(commands(), scriptCommands()...)
	var heard *overheard
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		heard, err = teach(ctx, b, list)
		return err
	}
	for _, c := range list {
		if c.keys == "" {
			c.keys = loadRange
		}
		for i, pipeline := range pipelines {
			t := &engineTest{name: fmt.Sprintf("%s -P %d", c.name, pipeline)}
			rate := t.row(t.name, "op/s", 0, ratioAtLeast([]float64{0.95, 1}[i]))
			cpu := t.row(t.name, "µs CPU", 2, ratioAtMost([]float64{1.1, 1}[i]))
			late := &engineRow{values: both{}}
			if !c.cycles {
				late = t.row(t.name, "p99 ms", 2, ratioAtMost(1.5))
			}
			var collected func(*server) error
			if t.name == "SET -P 16" {
				collected = t.collectorRows().add
			}
			n := 0
			t.measure = func(ctx context.Context, b *engineBench, server string) error {
				if rate.isPaired() {
					n = b.operations(c.rates[i])
				}
				result, used, err := c.run(ctx, b, b.on(server), heard, i, n)
				if err != nil {
					return err
				}
				if collected != nil {
					if err := collected(b.on(server)); err != nil {
						return err
					}
				}
				if server == redisName {
					b.slow = min(max(result.rate/c.rates[i], leastShare), 1)
				}
				rate.add(server, result.rate)
				cpu.add(server, max(used, 0.001))
				late.add(server, max(result.p99Ms, 0.001))
				return nil
			}
			g.tests = append(g.tests, t)
		}
	}
	return g
}

// operations is how many a pair has of which a second sees so many on Redis, as far as the last pair shows.
func (b *engineBench) operations(rate float64) int {
	const whole = loadConnections * 16
	return max(int(b.plan.Seconds*rate*b.slow)/whole, 1) * whole
}

// run measures the command n times on a server that is empty but for the fill; used is CPU, in µs per operation.
func (c *command) run(
	ctx context.Context, b *engineBench, on *server, heard *overheard, i, n int,
) (result benchmarked, used float64, err error) {
	client := backend{Addr: on.addr}.client()
	defer shut(client)
	if err := client.FlushAll(ctx).Err(); err != nil {
		return result, 0, err
	}
	if c.cycles {
		run, err := runCycles(effort{cores: b.cores}, on, heard, pipelines[i], n)
		return benchmarked{rate: run.rate}, run.cpu, err
	}
	if c.fill != nil {
		times := n
		if c.filled > 0 {
			times = c.filled
		}
		if _, err := (benchmarkRun{b.cores.client, loadConnections, 16, times, c.keys, c.fill}).on(on); err != nil {
			return result, 0, fmt.Errorf("filling: %w", err)
		}
	}
	before, err := lookAt(ctx, client, c.changes)
	if err != nil {
		return result, 0, err
	}
	cpu := on.process.ran()
	if result, err = (benchmarkRun{b.cores.client, loadConnections, pipelines[i], n, c.keys, c.args}).on(on); err != nil {
		return result, 0, err
	}
	cpu = on.process.ran() - cpu
	after, err := lookAt(ctx, client, c.changes)
	if err != nil {
		return result, 0, err
	}
	return result, float64(cpu.Microseconds()) / float64(n), before.spoiled(after, c.changes != "")
}

// sight is what shows whether answers were good.
type sight struct {
	errors string
	length int64
}

func lookAt(ctx context.Context, client *redis.Client, key string) (s sight, err error) {
	info, err := client.Info(ctx, "stats").Result()
	if err != nil {
		return s, err
	}
	if s.errors = infoField(info, "total_error_replies:"); s.errors == "" {
		return s, errors.New("the server does not count its error replies")
	}
	if key != "" {
		s.length, err = client.ZCard(ctx, key).Result()
	}
	return s, err
}

func (s sight) spoiled(after sight, changes bool) error {
	switch {
	case s.errors != after.errors:
		return fmt.Errorf("error replies: %s before, %s after", s.errors, after.errors)
	case changes && s.length == after.length:
		return fmt.Errorf("the scripts did not work: %d leases before and after", s.length)
	}
	return nil
}
