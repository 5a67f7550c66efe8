package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The subcommand engine: every aim for the engine's speed and memory in one table, ours beside redis-server.
//
// A group is what shares its servers: they are started once, and in each round every test of the group measures one
// server after the other on the same core, the other one first in the next round. So what a ratio compares stood side
// by side in time. A new aim is a test with its rows in one of the groups, or a new group and a line in engineGroups.

// enginePlan is how much is measured.
type enginePlan struct {
	Pairs   int
	Seconds float64 // of a run of redis-benchmark on Redis, roughly
	Members int     // of a large collection, and keys of a memory row
	Small   int     // small collections
	Keys    int     // of a large table
	Idle    int     // connections
	Settle  time.Duration
	Mix     float64 // seconds of paced requests
}

var (
	fullEngine = enginePlan{
		Pairs: 5, Seconds: 0.6, Members: 1_000_000, Small: 100_000, Keys: 10_000_000, Idle: 5000, Settle: 6 * time.Second, Mix: 4,
	}
	quickEngine = enginePlan{
		Pairs: 2, Seconds: 0.25, Members: 1_000_000, Small: 100_000, Keys: 1_000_000, Idle: 5000, Settle: 3 * time.Second, Mix: 2,
	}
)

// engineBench is one run.
type engineBench struct {
	plan  enginePlan
	cores cores
	begin time.Time
	pair  *servers // of all groups that need no server of their own
	grown map[string]*server
	share []float64 // of its core that a pacer had, by window
	slow  float64   // how fast the last run on Redis was, beside what is expected; at most 1
}

func (b *engineBench) on(name string) *server {
	if name == redisName {
		return b.pair.redis
	}
	return b.pair.engine
}

// paced notes how much a window is to be trusted.
func (b *engineBench) paced(p paced) { b.share = append(b.share, 100*p.Share) }

// engineGroup is a number of tests. Only tests is needed.
type engineGroup struct {
	tests []*engineTest
	most  int // pairs, of what takes minutes; 0: as many as planned
	open  func(ctx context.Context, b *engineBench) error
	// round measures the tests on both servers in this order; nil: each by its own measure.
	round func(ctx context.Context, b *engineBench, tests []*engineTest, order []string) error
	close func()
}

// engineTest is what is measured at once: some rows.
type engineTest struct {
	name    string
	rows    []*engineRow
	measure func(ctx context.Context, b *engineBench, server string) error
}

func engineGroups(b *engineBench) []*engineGroup {
	return []*engineGroup{
		loadGroup(b), singleGroup(b), insideGroup(b), ledgerGroup(b), idleGroup(b), memoryGroup(b), expiryGroup(b),
		largeGroup(b), removalGroup(b), growthGroup(b), mixGroup(b),
		replicatedGroup(b, 1), replicatedGroup(b, 3), applyGroup(b), fullSyncGroup(b), moveGroup(b),
	}
}

func runEngine(ctx context.Context, args []string) error {
	flags := newRunFlags("engine", enginePage, "two short pairs, and a tenth of the keys, seven minutes")
	flags.chosen("rows")
	flags.profiled("every child process, the engine too,")
	pattern, err := flags.parse(args)
	if err != nil {
		return err
	}
	b := &engineBench{plan: fullEngine, cores: availableCores(), begin: time.Now(), slow: 1}
	if flags.quick {
		b.plan = quickEngine
	}
	groups, err := b.chosen(pattern)
	if err != nil {
		return err
	}
	if flags.onlyList {
		return listTests(groups)
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	r, err := b.run(ctx, groups)
	if err != nil {
		return err
	}
	return flags.deliver(r, "make bench-engine", args, "The engine, measured")
}

func listTests(groups []*engineGroup) error {
	for _, g := range groups {
		for _, t := range g.tests {
			if _, err := fmt.Println(t.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen are the groups with the tests that are wanted.
func (b *engineBench) chosen(pattern *regexp.Regexp) ([]*engineGroup, error) {
	var groups []*engineGroup
	for _, g := range engineGroups(b) {
		g.tests = slices.DeleteFunc(g.tests, func(t *engineTest) bool { return !pattern.MatchString(t.name) })
		if len(g.tests) > 0 {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("no row has a name like %q; -list lists them", pattern)
	}
	return groups, nil
}

func (b *engineBench) run(ctx context.Context, groups []*engineGroup) (*report, error) {
	pair, err := startEnginePair(ctx, b.cores)
	if err != nil {
		return nil, err
	}
	defer pair.stop()
	b.pair, b.grown = pair, map[string]*server{}
	defer b.fell()
	r := &report{Machine: describeMachine(pair.redis.version, b.cores)}
	out := engineSection()
	for _, g := range groups {
		err := b.measure(ctx, g)
		switch {
		case ctx.Err() != nil: // who interrupts a long run wants what there is
			out.Note += " This run was interrupted: what is not here was not measured."
		case err != nil:
			return nil, err
		}
		for _, t := range g.tests {
			for _, row := range t.rows {
				row.tell(out)
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(b.share) > 0 {
		out.Note += fmt.Sprintf(" Whoever sends at a fixed rate had %s %% of its core: with less than 95 in the median, others "+
			"wanted it too, and latencies say more of them than of the servers.", spread(b.share, 0))
	}
	r.Sections = []*section{out}
	r.explain(engineReasons)
	r.Seconds = time.Since(b.begin).Seconds()
	r.LoadAfter = loadAverage()
	return r, nil
}

func (b *engineBench) measure(ctx context.Context, g *engineGroup) error {
	if g.close != nil {
		defer g.close()
	}
	if g.open != nil {
		if err := g.open(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", g.tests[0].name, err)
		}
	}
	pairs := b.plan.Pairs
	if g.most > 0 {
		pairs = min(pairs, g.most)
	}
	for round := range pairs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		order := []string{redisName, engineName}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		if g.round != nil {
			if err := b.attempt(g.tests, round, func() error { return g.round(ctx, b, g.tests, order) }); err != nil {
				return err
			}
			continue
		}
		for _, t := range g.tests {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			both := func() (err error) {
				for _, server := range order {
					if err := t.measure(ctx, b, server); err != nil {
						return fmt.Errorf("%s: %w", server, err)
					}
				}
				return nil
			}
			if err := b.attempt([]*engineTest{t}, round, both); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt measures a pair. What fails spoils its own pair only, of which no row keeps a half, unless a server is gone.
func (b *engineBench) attempt(tests []*engineTest, round int, measure func() error) error {
	name, begin := tests[0].name, time.Now()
	if len(tests) > 1 {
		name = fmt.Sprintf("%s and %d more", name, len(tests)-1)
	}
	err := measure()
	var found []string
	for _, t := range tests {
		for _, row := range t.rows {
			row.align(err)
			found = append(found, row.last())
		}
	}
	what := strings.Join(found, "; ")
	if err != nil {
		what = "FAILED: " + err.Error()
	}
	fmt.Fprintf(os.Stderr, "%4.0fs %s, pair %d of %d, %.1f s: %s\n", time.Since(b.begin).Seconds(), name, round+1,
		b.plan.Pairs, time.Since(begin).Seconds(), what)
	for _, one := range []*server{b.pair.redis, b.pair.engine} {
		select {
		case <-one.process.ended:
			return errors.Join(fmt.Errorf("%s: %s has ended", name, one.name), err)
		default:
		}
	}
	return nil
}
