package main

import (
	"context"
	"fmt"
	"strconv"
)

// The part writes: SET while the append-only file is on.

// writeTest is one row.
type writeTest struct {
	policy                string
	connections, pipeline int
	expected              float64 // operations per second, roughly
	rates, cpus           both
}

func (t *writeTest) String() string {
	clients := "1 client"
	if t.connections > 1 {
		clients = strconv.Itoa(t.connections) + " clients"
	}
	return fmt.Sprintf("SET, %s, %s, -P %d", t.policy, clients, t.pipeline)
}

type writes struct{ tests []*writeTest }

func newWrites() *writes {
	w := &writes{}
	for _, t := range []writeTest{
		{policy: "always", connections: 50, pipeline: 1, expected: 60e3},
		{policy: "always", connections: 50, pipeline: 16, expected: 400e3},
		{policy: "always", connections: 1, pipeline: 1, expected: 5e3},
		{policy: "everysec", connections: 50, pipeline: 1, expected: 70e3},
		{policy: "everysec", connections: 50, pipeline: 16, expected: 500e3},
	} {
		t.rates, t.cpus = both{}, both{}
		w.tests = append(w.tests, &t)
	}
	return w
}

func (w *writes) name() string { return "writes" }

// measure starts a server for each test: what another has written is not its business.
func (w *writes) measure(ctx context.Context, b *durableBench, server string) error {
	for _, t := range w.tests {
		if err := b.anew(); err != nil {
			return err
		}
		if err := t.measure(ctx, b, server); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

func (t *writeTest) measure(ctx context.Context, b *durableBench, server string) error {
	s, err := startKeeper(ctx, server, b.cores.server, b.data(),
		"save=", "appendonly=yes", "appendfsync="+t.policy, "auto-aof-rewrite-percentage=0")
	if err != nil {
		return err
	}
	defer s.end()
	run := func(n int) (float64, error) {
		n = max(n/(t.connections*t.pipeline), 1) * t.connections * t.pipeline
		return redisBenchmark(b.cores.client, s, t.connections, t.pipeline, n, []string{"-t", "set"})
	}
	// The first run warms up, and says how many operations are enough.
	rate, err := run(int(b.plan.Seconds * t.expected / 8))
	if err != nil {
		return err
	}
	n := int(b.plan.Seconds * rate)
	cpu := s.process.cpu()
	if rate, err = run(n); err != nil {
		return err
	}
	t.rates.add(server, rate)
	t.cpus.add(server, float64((s.process.cpu()-cpu).Microseconds())/float64(n))
	return nil
}

func (w *writes) section() *section {
	out := &section{
		Title: "Writes: SET with the append-only file on",
		Note: "redis-benchmark -t set -d 64 -r " + loadRange + ". CPU is the server's, user and system, in µs per operation. " +
			"With always an answer says that the change is on the disk: who asks at the same time shares one fsync.",
		Columns: []string{"what", "Redis op/s", "engine op/s", "ratio", "Redis CPU", "engine CPU", "ratio"},
	}
	for _, t := range w.tests {
		out.row(t.String(), count(median(t.rates[redisName])), count(median(t.rates[engineName])), spread(t.rates.ratios(), 2),
			number(median(t.cpus[redisName]), 2), number(median(t.cpus[engineName]), 2), spread(t.cpus.ratios(), 2))
		out.atLeast(t.String()+": rate, x Redis", 1, t.rates.ratios())
	}
	return out
}
