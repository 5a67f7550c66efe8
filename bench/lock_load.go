package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
)

// The part load: what one process does to one redis-server when it has very many leases, or waiters, at once. Three
// things are measured, each round anew:
//
//	cycles   40,000 goroutines of one Box acquire and release a mutex of their own, once, beside a plain client that
//	         sends the same scripts in pipelines; with replies as fast as they come, and 10 ms later
//	close    a Box that holds 100,000 leases closes
//	waiters  20,000 of 20 processes wait for one name, and nothing changes
const (
	closedLeases   = 100_000
	idleWaiters    = 20_000
	idleProcesses  = 20
	renewalLatest  = unrelatedTTL / 2
	pipelinedOne   = "pipelined EVALSHA, one pipeline at a time"
	pipelinedFour  = "pipelined EVALSHA, four at a time"
	oneBox         = "signalbox, goroutines of one Box"
	manyKillsAfter = manyPatience + 3*time.Minute // a child that does not answer
)

// addedDelays are what a reply takes longer.
var addedDelays = []time.Duration{0, 10 * time.Millisecond}

// manyRun is one result and what the server saw of it.
type manyRun struct {
	manyResult
	connections int
	left        int // leases on the server afterwards
}

type loadRounds struct {
	bench  *lockBench
	cycles map[time.Duration]map[string][]manyRun
	closes []manyRun
	idle   []float64 // % of a core
}

func loadPart(b *lockBench) *lockPart {
	l := &loadRounds{bench: b, cycles: make(map[time.Duration]map[string][]manyRun)}
	for _, delay := range addedDelays {
		l.cycles[delay] = make(map[string][]manyRun)
	}
	return &lockPart{name: "load", rounds: b.plan.Rounds, other: l.round, sections: l.sections}
}

// round measures all once.
func (l *loadRounds) round(ctx context.Context) error {
	scripts, err := overhear(ctx, l.bench.servers)
	if err != nil {
		return err
	}
	for _, delay := range addedDelays {
		if err := l.cyclesWith(ctx, scripts, delay); err != nil {
			return fmt.Errorf("load, %v added to replies: %w", delay, err)
		}
	}
	run, err := l.run(ctx, "holding", manyConfig{Addr: l.bench.servers.redis.addr, Number: closedLeases})
	if err != nil {
		return fmt.Errorf("load, Close: %w", err)
	}
	l.closes = append(l.closes, run)
	l.note("Close of %d leases: %.1f s, %d left, %s", closedLeases, run.CloseTook.Seconds(), run.left, orNone(run.CloseFault))
	return l.waiters(ctx)
}

// cyclesWith lets the reference and the Box make as many cycles, as neighbours in time.
func (l *loadRounds) cyclesWith(ctx context.Context, scripts *overheard, delay time.Duration) (err error) {
	addr := l.bench.servers.redis.addr
	if delay > 0 {
		proxy, err := faultproxy.Listen(addr)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, proxy.Close()) }()
		proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Delay: delay}})
		addr = proxy.Addr()
	}
	config := manyConfig{
		Addr: addr, Number: l.bench.plan.Goroutines,
		Acquire: scripts.mutexAcquire.marked(), Release: scripts.mutexRelease.marked(),
	}
	for _, one := range []struct {
		what, role string
		together   int
	}{{pipelinedOne, "pipelined", 1}, {oneBox, "many", 0}, {pipelinedFour, "pipelined", 4}} {
		config.Together = one.together
		run, err := l.run(ctx, one.role, config)
		if err != nil {
			return fmt.Errorf("%s: %w", one.what, err)
		}
		if one.role == "pipelined" && run.left > 0 {
			return fmt.Errorf("%s: the scripts did not work: %d leases are left", one.what, run.left)
		}
		l.cycles[delay][one.what] = append(l.cycles[delay][one.what], run)
		l.note("%v added, %s: %.2f s, %d done, %d failed, %d connections", delay, one.what, run.Took.Seconds(), run.Done,
			run.Failed, run.connections)
	}
	return nil
}

// run has a child of a role do its work on a server that is empty.
func (l *loadRounds) run(ctx context.Context, role string, config manyConfig) (run manyRun, err error) {
	if err := flush(ctx, l.bench.servers.redis); err != nil {
		return run, err
	}
	p, err := startRole(l.bench.cores.client, role, config)
	if err != nil {
		return run, err
	}
	defer p.stop()
	guard := time.AfterFunc(manyKillsAfter, func() {
		_ = p.command.Process.Kill() // it may have ended already; what it does not say any more is an error below
	})
	defer guard.Stop()
	var word string
	if err := p.hear(&word); err != nil {
		return run, err
	}
	before, err := l.connections(ctx)
	if err != nil {
		return run, err
	}
	if err := errors.Join(p.tell("go"), p.hear(&run.manyResult)); err != nil {
		return run, err
	}
	if run.connections, err = l.connections(ctx); err != nil {
		return run, err
	}
	run.connections -= before + 1 // the last of which asks
	run.left, err = l.leases(ctx)
	return run, err
}

// connections is how many the server has accepted.
func (l *loadRounds) connections(ctx context.Context) (int, error) {
	client := backend{Addr: l.bench.servers.redis.addr}.client()
	defer shut(client)
	info, err := client.Info(ctx, "stats").Result()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(infoField(info, "total_connections_received:"))
}

// leases counts the mutexes that the server believes are held.
func (l *loadRounds) leases(ctx context.Context) (n int, err error) {
	client := backend{Addr: l.bench.servers.redis.addr}.client()
	defer shut(client)
	const held = `
local n = 0
for _, key in ipairs(redis.call('KEYS', 'signalbox:{*}')) do
  if string.find(redis.call('HGET', key, 'clock') or '', ' L ', 1, true) or redis.call('EXISTS', key .. ':leases') == 1 then
    n = n + 1
  end
end
return n`
	return client.Eval(ctx, held, nil).Int()
}

// waiters measures the server while a queue stands still.
func (l *loadRounds) waiters(ctx context.Context) error {
	redis := l.bench.servers.redis
	if err := flush(ctx, redis); err != nil {
		return err
	}
	for i := range idleProcesses + 1 {
		config := waitingConfig{Addr: redis.addr, Name: "idle", Boxes: 1, Each: idleWaiters / idleProcesses, Known: i * idleWaiters / idleProcesses, Hold: i == 0}
		p, err := startRole(l.bench.cores.client, "waiting", config)
		if err != nil {
			return err
		}
		defer p.kill() // nothing is left to tell
		var word string
		if err := p.hear(&word); err != nil { // it holds, or all its waiters are in the queue
			return err
		}
	}
	time.Sleep(2 * time.Second) // what joining caused is over
	cpu, begin := redis.process.ran(), time.Now()
	time.Sleep(l.bench.plan.IdleWindow)
	share := 100 * (redis.process.ran() - cpu).Seconds() / time.Since(begin).Seconds()
	l.idle = append(l.idle, share)
	l.note("%d waiters of %d processes: %.1f %% of a core", idleWaiters, idleProcesses, share)
	return nil
}

func (l *loadRounds) note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0fs load: %s\n", time.Since(l.bench.begin).Seconds(), fmt.Sprintf(format, args...))
}

func orNone(text string) string {
	if text == "" {
		return "no error"
	}
	first, _, _ := strings.Cut(text, "\n")
	return first
}

func (l *loadRounds) sections() []*section {
	return []*section{l.cyclesSection(), l.closeSection(), l.idleSection()}
}

func seriesOf(runs []manyRun, of func(manyRun) float64) []float64 {
	var values []float64
	for _, r := range runs {
		values = append(values, of(r))
	}
	return values
}

// perCycle is fair to a run that did not do all: those that failed are not done for nothing.
func perCycle(r manyRun) float64 { return r.Took.Seconds() * 1e6 / max(float64(r.Done), 1) }

func (l *loadRounds) cyclesSection() *section {
	out := &section{
		Title: fmt.Sprintf("Many at once: %d goroutines of one Box, a mutex for each, acquired and released once",
			l.bench.plan.Goroutines),
		Note: fmt.Sprintf("Beside them a plain client that sends the same scripts in pipelines of %d, acquires and then "+
			"releases. What is not done after %v has failed. The Box holds a lease of %v besides: by how much a renewal was later than due "+
			"at most. Medians of the rounds; time with [lowest..highest].", manyBatch, manyPatience, unrelatedTTL),
		Columns: []string{
			"added to replies", "what", "seconds", "µs per cycle", "done", "failed", "connections", "latest renewal, ms",
			"first error",
		},
	}
	for _, delay := range addedDelays {
		all := l.cycles[delay]
		for _, what := range []string{pipelinedOne, pipelinedFour, oneBox} {
			runs := all[what]
			late, fault := "", ""
			if what == oneBox {
				late = count(median(seriesOf(runs, latestMs)))
			}
			for _, r := range runs {
				fault = r.Fault
			}
			of := func(f func(manyRun) float64) float64 { return median(seriesOf(runs, f)) }
			out.row(delay.String(), what, spread(seriesOf(runs, func(r manyRun) float64 { return r.Took.Seconds() }), 2),
				number(of(perCycle), 1), count(of(func(r manyRun) float64 { return float64(r.Done) })), count(of(failed)),
				count(of(func(r manyRun) float64 { return float64(r.connections) })), late, fault)
		}
		name, ours := fmt.Sprintf("%v added to replies: ", delay), all[oneBox]
		cost := seriesOf(ours, perCycle)
		out.atMost(name+"time of a cycle, x "+pipelinedOne, 1.5, ratiosOf(cost, seriesOf(all[pipelinedOne], perCycle)))
		out.know(name+"time of a cycle, x "+pipelinedFour, ratiosOf(cost, seriesOf(all[pipelinedFour], perCycle)))
		out.atMost(name+"cycles that failed", 0, seriesOf(ours, failed))
		out.atMost(name+"latest renewal of another lease, ms", float64(renewalLatest.Milliseconds()), seriesOf(ours, latestMs))
		out.atMost(name+"other leases lost", 0, seriesOf(ours, func(r manyRun) float64 {
			if r.Lost {
				return 1
			}
			return 0
		}))
	}
	return out
}

func failed(r manyRun) float64 { return float64(r.Failed) }

func latestMs(r manyRun) float64 { return float64(r.Latest.Milliseconds()) }

func (l *loadRounds) closeSection() *section {
	out := &section{
		Title:   fmt.Sprintf("Close of a Box that holds %d leases", closedLeases),
		Note:    "Each is of a name of its own. Left: leases on the server when Close has returned.",
		Columns: []string{"seconds", "left", "error"},
	}
	took := seriesOf(l.closes, func(r manyRun) float64 { return r.CloseTook.Seconds() })
	left := seriesOf(l.closes, func(r manyRun) float64 { return float64(r.left) })
	fault, faults := "", []float64{}
	for _, r := range l.closes {
		n := 0.0
		if r.CloseFault != "" {
			n, fault = 1, r.CloseFault
		}
		faults = append(faults, n)
	}
	out.row(spread(took, 2), spread(left, 0), orNone(fault))
	out.atMost("Close: seconds", 5, took)
	out.atMost("Close: leases left", 0, left)
	out.atMost("Close: errors", 0, faults)
	return out
}

func (l *loadRounds) idleSection() *section {
	out := &section{
		Title: fmt.Sprintf("%d waiters of %d processes for one name, while nothing changes", idleWaiters, idleProcesses),
		Note: fmt.Sprintf("The server's processor time over %v, in %% of a core: heartbeats, and the renewals of who holds.",
			l.bench.plan.IdleWindow),
		Columns: []string{"waiters", "processes", "server CPU"},
	}
	out.row(strconv.Itoa(idleWaiters), strconv.Itoa(idleProcesses), spread(l.idle, 1))
	out.atMost("waiters: server CPU, % of a core", 3, l.idle)
	return out
}
