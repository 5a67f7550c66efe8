package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// The subcommand scale: what each transition costs a redis-server, how that grows with the number of names and of waiters,
// and what the sum of it is for systems larger than this machine can be. A transition's cost is what the server itself says
// (commandstats: time within scripts, commands, messages), so nothing of the client and little of the machine is in it. What
// a command costs besides, on its socket, is measured once, with PING. The large systems are reckoned from the two, not run.

// scalePlan is how much is measured.
type scalePlan struct {
	Names, Waiters []int
	Sample         int // transitions a figure is the mean of, at least
}

var (
	fullScale  = scalePlan{Names: []int{100, 1_000, 10_000, 100_000}, Waiters: []int{10, 100, 1_000, 10_000}, Sample: 5_000}
	quickScale = scalePlan{Names: []int{100, 1_000, 10_000}, Waiters: []int{10, 100, 1_000}, Sample: 1_000}
)

const (
	scaleTTL      = time.Hour // nothing ends while it is measured
	idsOfAProcess = 100
	inPipeline    = 500 // transitions
)

// cost is that of one transition to the server.
type cost struct {
	scriptUs, commands, bytes, messages float64
}

// census is the costs at one size: of the number of names, or of waiters.
type census struct {
	size  int
	costs map[string]cost
	bytes map[string]float64 // of memory, for each of them
}

type scaleBench struct {
	plan           scalePlan
	server         *server
	client         *redis.Client
	ledger         *ledger.Ledger
	socketUs       float64
	names, waiters []census
	peers          map[string]float64 // bytes of a mutex that is held, of other libraries
}

func runScale(ctx context.Context, args []string) (err error) {
	flags := newRunFlags("scale", scalePage, "a decade less")
	if _, err := flags.parse(args); err != nil {
		return err
	}
	begin, on := time.Now(), availableCores()
	folder, err := os.MkdirTemp("", "signalbox-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b := &scaleBench{plan: fullScale}
	if flags.quick {
		b.plan = quickScale
	}
	if b.server, err = startRedis(ctx, on.server, folder); err != nil {
		return err
	}
	defer b.server.process.kill()
	b.client = backend{Addr: b.server.addr}.clientOf(50)
	defer shut(b.client)
	b.ledger = ledger.New(goredis.New(b.client))
	r := &report{Machine: describeMachine(b.server.version, on)}
	if err := b.measure(ctx); err != nil {
		return err
	}
	r.Sections = []*section{b.each(), b.byNames(), b.byWaiters(), b.memories(), b.laws(), b.systems()}
	r.explain(reasons)
	r.Seconds, r.LoadAfter = time.Since(begin).Seconds(), loadAverage()
	return flags.deliver(r, "make bench-scale", args, "How far one server goes")
}

func (b *scaleBench) measure(ctx context.Context) error {
	if err := b.socket(ctx); err != nil {
		return err
	}
	for _, n := range b.plan.Names {
		c, err := b.holdNames(ctx, n)
		if err != nil {
			return fmt.Errorf("%d names: %w", n, err)
		}
		b.names = append(b.names, c)
		fmt.Fprintf(os.Stderr, "%d names held\n", n)
	}
	if err := b.holdOthers(ctx); err != nil {
		return fmt.Errorf("other libraries: %w", err)
	}
	for _, n := range b.plan.Waiters {
		c, err := b.wait(ctx, n)
		if err != nil {
			return fmt.Errorf("%d waiters: %w", n, err)
		}
		b.waiters = append(b.waiters, c)
		fmt.Fprintf(os.Stderr, "%d waiters of one name\n", n)
	}
	return nil
}

// socket is what a command costs the server besides what it does, when fifty clients keep it busy.
func (b *scaleBench) socket(ctx context.Context) error {
	const clients, each = 50, 4_000
	before, errs := b.server.process.cpu(), make(chan error, clients)
	for range clients {
		go func() {
			for range each {
				if err := b.client.Ping(ctx).Err(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var err error
	for range clients {
		err = errors.Join(err, <-errs)
	}
	b.socketUs = float64((b.server.process.cpu() - before).Microseconds()) / (clients * each)
	return err
}

// counters are what the server has counted so far.
type counters struct{ scriptUs, commands, bytes, messages float64 }

func (b *scaleBench) counted(ctx context.Context) (t counters, err error) {
	info, err := b.client.Info(ctx, "commandstats", "stats").Result()
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "total_net_input_bytes" || name == "total_net_output_bytes":
			n, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				return t, err
			}
			t.bytes += n
		case strings.HasPrefix(name, "cmdstat_"):
			var callsOf, us float64
			if _, err := fmt.Sscanf(rest, "calls=%f,usec=%f", &callsOf, &us); err != nil {
				return t, fmt.Errorf("%q: %w", line, err)
			}
			switch name = strings.TrimPrefix(name, "cmdstat_"); name {
			case "evalsha", "eval":
				t.scriptUs += us
			case "info", "hello", "ping", "client|setinfo", "flushall":
			case "publish":
				t.messages += callsOf
				t.commands += callsOf
			default:
				t.commands += callsOf
			}
		}
	}
	return t, nil
}

// costOf is the cost of each of n transitions, which do makes.
func (b *scaleBench) costOf(ctx context.Context, n int, do func() error) (cost, error) {
	before, err := b.counted(ctx)
	if err == nil {
		err = do()
	}
	if err != nil {
		return cost{}, err
	}
	after, err := b.counted(ctx)
	per := float64(n)
	return cost{
		(after.scriptUs - before.scriptUs) / per, (after.commands - before.commands) / per,
		(after.bytes - before.bytes) / per, (after.messages - before.messages) / per,
	}, err
}

func (b *scaleBench) memory(ctx context.Context) (float64, error) {
	info, err := b.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(infoField(info, "used_memory:"), 64)
}

func scaleRequest(r *ledger.Resource, id string, wait time.Duration) *ledger.AcquireRequest {
	return &ledger.AcquireRequest{
		Resource: r, ID: id, Weight: 1, Limit: 1, TTL: scaleTTL, Wait: wait, Claim: scaleTTL / 12, Owner: "host:12345",
	}
}

// named makes n resources.
func named(n int) ([]*ledger.Resource, error) {
	all := make([]*ledger.Resource, n)
	for i := range all {
		var err error
		if all[i], err = ledger.NewResource(fmt.Sprintf("invoice:%08d", i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// acquireSome, renewSome and releaseSome make one transition for each of some resources, in one pipeline.
func (b *scaleBench) acquireSome(ctx context.Context, some []*ledger.Resource) (err error) {
	requests := make([]*ledger.AcquireRequest, len(some))
	for i, r := range some {
		requests[i] = scaleRequest(r, "PROCESS:1", 0)
	}
	for _, result := range b.ledger.AcquireAll(ctx, requests) {
		err = errors.Join(err, result.Err)
	}
	return err
}

func (b *scaleBench) renewSome(ctx context.Context, some []*ledger.Resource) (err error) {
	requests := make([]ledger.RenewRequest, len(some))
	for i, r := range some {
		requests[i] = ledger.RenewRequest{Resource: r, Leases: []ledger.Renewal{{ID: "PROCESS:1", TTL: scaleTTL}}}
	}
	for _, result := range b.ledger.RenewAll(ctx, requests) {
		err = errors.Join(err, result.Err)
	}
	return err
}

func (b *scaleBench) releaseSome(ctx context.Context, some []*ledger.Resource) (err error) {
	requests := make([]ledger.ReleaseRequest, len(some))
	for i, r := range some {
		requests[i] = ledger.ReleaseRequest{Resource: r, ID: "PROCESS:1"}
	}
	for _, result := range b.ledger.ReleaseAll(ctx, requests) {
		err = errors.Join(err, result.Err)
	}
	return err
}

// holdNames measures with n names held: all are acquired, renewed and released.
func (b *scaleBench) holdNames(ctx context.Context, n int) (census, error) {
	c := census{size: n, costs: map[string]cost{}, bytes: map[string]float64{}}
	all, err := named(n)
	if err != nil {
		return c, err
	}
	if err := b.client.FlushAll(ctx).Err(); err != nil {
		return c, err
	}
	empty, err := b.memory(ctx)
	if err != nil {
		return c, err
	}
	rounds := max(1, b.plan.Sample/n)
	sums := map[string]cost{}
	for range rounds {
		for _, one := range []struct {
			what  string
			do    func(context.Context, []*ledger.Resource) error
			after string
		}{{"acquire", b.acquireSome, "held"}, {"renew", b.renewSome, ""}, {"release", b.releaseSome, "idle"}} {
			found, err := b.costOf(ctx, n*rounds, func() (err error) {
				for some := range slices.Chunk(all, inPipeline) {
					err = errors.Join(err, one.do(ctx, some))
				}
				return err
			})
			if err != nil {
				return c, err
			}
			sums[one.what] = sums[one.what].plus(found)
			if one.after == "" {
				continue
			}
			used, err := b.memory(ctx)
			if err != nil {
				return c, err
			}
			c.bytes[one.after] = (used - empty) / float64(n)
		}
	}
	c.costs = sums
	return c, nil
}

// holdOthers measures what a mutex that is held takes of memory when other libraries hold it, under names as long.
func (b *scaleBench) holdOthers(ctx context.Context) error {
	b.peers = map[string]float64{}
	n := min(10_000, last(b.names).size)
	for _, kind := range []string{redislockKind, redsyncKind} {
		if err := b.client.FlushAll(ctx).Err(); err != nil {
			return err
		}
		empty, err := b.memory(ctx)
		if err != nil {
			return err
		}
		for i := range n {
			name := fmt.Sprintf("invoice:%08d", i)
			if kind == redislockKind {
				_, err = redislock.New(b.client).Obtain(ctx, name, scaleTTL, nil)
			} else {
				err = redsync.New(redsyncpool.NewPool(b.client)).NewMutex(name, redsync.WithExpiry(scaleTTL)).LockContext(ctx)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		used, err := b.memory(ctx)
		if err != nil {
			return err
		}
		b.peers[kind] = (used - empty) / float64(n)
	}
	return nil
}

func (c cost) plus(d cost) cost {
	return cost{c.scriptUs + d.scriptUs, c.commands + d.commands, c.bytes + d.bytes, c.messages + d.messages}
}

// wait measures with n waiters of one name, of processes that have a hundred each: turns are handed on, and all say that
// they are there.
func (b *scaleBench) wait(ctx context.Context, n int) (census, error) {
	c := census{size: n, costs: map[string]cost{}, bytes: map[string]float64{}}
	if err := b.client.FlushAll(ctx).Err(); err != nil {
		return c, err
	}
	r, err := ledger.NewResource("one name")
	if err != nil {
		return c, err
	}
	id := func(i int) string { return fmt.Sprintf("PROCESS%08d:%d", i/idsOfAProcess, i%idsOfAProcess) }
	queue := func(i int) error {
		_, err := b.ledger.Acquire(ctx, scaleRequest(r, id(i), scaleTTL))
		return err
	}
	if err := queue(0); err != nil {
		return c, err
	}
	empty, err := b.memory(ctx)
	if err != nil {
		return c, err
	}
	for i := range n {
		if err := queue(i + 1); err != nil {
			return c, err
		}
	}
	used, err := b.memory(ctx)
	if err != nil {
		return c, err
	}
	c.bytes["waiter"] = (used - empty) / float64(n)
	turns := b.plan.Sample
	if c.costs["wait"], err = b.costOf(ctx, turns, func() error {
		for i := range turns {
			if err := queue(n + 1 + i); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return c, err
	}
	if c.costs["hand over"], err = b.costOf(ctx, turns, func() error {
		for i := range turns {
			if _, err := b.ledger.Release(ctx, r, id(i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return c, err
	}
	return c, b.beat(ctx, r, &c, turns, id)
}

// beat has those who wait, whose ids begin with that of `first`, heard from: first by id, then process by process.
func (b *scaleBench) beat(ctx context.Context, r *ledger.Resource, c *census, first int, id func(int) string) error {
	claim := scaleTTL / 12
	var processes []string
	versions := map[string]int64{}
	var err error
	c.costs["heartbeat of an id"], err = b.costOf(ctx, c.size, func() error {
		for i := first + 1; i <= first+c.size; {
			request := ledger.HeartbeatRequest{Resource: r, Claim: claim, Process: fmt.Sprintf("PROCESS%08d", i/idsOfAProcess)}
			for process := i / idsOfAProcess; i <= first+c.size && i/idsOfAProcess == process; i++ {
				request.IDs = append(request.IDs, id(i))
			}
			result := b.ledger.HeartbeatAll(ctx, []ledger.HeartbeatRequest{request})[0]
			if result.Err != nil {
				return result.Err
			}
			processes = append(processes, request.Process)
			versions[request.Process] = result.Version
		}
		return nil
	})
	if err != nil {
		return err
	}
	rounds := max(1, b.plan.Sample/len(processes))
	c.costs["heartbeat of a process"], err = b.costOf(ctx, rounds*len(processes), func() error {
		for range rounds {
			for _, process := range processes {
				request := ledger.StillRequest{Resource: r, Process: process, Claim: claim, Version: versions[process]}
				if result := b.ledger.StillAll(ctx, []ledger.StillRequest{request})[0]; result.Err != nil || !result.Same {
					return fmt.Errorf("the heartbeat of %s: %+v", process, result)
				}
			}
		}
		return nil
	})
	return err
}

// exponent is b of a·n^b, fitted by least squares to the logarithms.
func exponent(sizes []census, what func(census) float64) float64 {
	var sx, sy, sxx, sxy float64
	for _, c := range sizes {
		x, y := math.Log(float64(c.size)), math.Log(what(c))
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	n := float64(len(sizes))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
