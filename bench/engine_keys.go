package main

import (
	"context"
	"fmt"
)

// A table of ten million keys: how it grows, and how long answers take when it is there.

const (
	growthPipeline = 32
	mixConnections = 50
	mixRate        = 30_000 // a second: a third of what a core can do
)

// grow fills a new server, which replaces the one that was filled before.
func (b *engineBench) grow(ctx context.Context, name string) (f filled, err error) {
	if old := b.grown[name]; old != nil {
		delete(b.grown, name)
		old.end()
	}
	s, err := startMeasured(ctx, name, b.cores, b.pair.folder)
	if err != nil {
		return f, err
	}
	b.grown[name] = s
	return fill(b.cores.client, fillConfig{Addr: s.addr, Kind: kindStrings, Count: b.plan.Keys, Pipeline: growthPipeline})
}

// fell ends the servers that were grown.
func (b *engineBench) fell() {
	for _, s := range b.grown {
		s.end()
	}
}

// collectorRows are about the engine's collector alone.
type collectorRows struct{ cycles, pause, assist, all, heap *engineRow }

func (t *engineTest) collectorRows() collectorRows {
	name := t.name + ", collector"
	return collectorRows{
		t.row(name, "cycles", 0, justKnow), t.row(name, "ms, longest pause of all", 3, justKnow),
		t.row(name, "% CPU in assists", 2, justKnow), t.row(name, "% CPU", 1, justKnow), t.row(name, "MB live", 0, justKnow),
	}
}

// add takes what the collector did since the last call. Redis has none.
func (r collectorRows) add(s *server) error {
	if s.name == redisName {
		return nil
	}
	c, err := s.collected()
	if err != nil {
		return err
	}
	r.cycles.add(engineName, c.Cycles)
	r.pause.add(engineName, c.WorstPauseMs)
	r.assist.add(engineName, c.Assist)
	r.all.add(engineName, c.All)
	r.heap.add(engineName, c.HeapBytes/1e6)
	return nil
}

func growthGroup(b *engineBench) *engineGroup {
	t := &engineTest{name: fmt.Sprintf("a table grows to %d keys", b.plan.Keys)}
	worst := t.row(t.name, fmt.Sprintf("ms, longest of all -P %d", growthPipeline), 2, ownAtMost(1, "ms"))
	rare := t.row(t.name, fmt.Sprintf("ms, p99.99 of -P %d", growthPipeline), 2, justKnow)
	rate := t.row(t.name, "keys/s", 0, justKnow)
	each := t.row(t.name, "bytes a key", 0, justKnow)
	rows := t.collectorRows()
	t.measure = func(ctx context.Context, b *engineBench, server string) error {
		f, err := b.grow(ctx, server)
		if err != nil {
			return err
		}
		now, _, err := b.grown[server].process.resident()
		if err != nil {
			return err
		}
		worst.add(server, f.Most)
		rare.add(server, f.P9999)
		rate.add(server, float64(b.plan.Keys)/f.Seconds)
		each.add(server, now/float64(b.plan.Keys))
		return rows.add(b.grown[server])
	}
	return &engineGroup{tests: []*engineTest{t}, most: 2}
}

// mixGroup is about servers that have grown, with GET and SET in turn at a fixed rate.
func mixGroup(b *engineBench) *engineGroup {
	g := &engineGroup{most: 2}
	var mix pacers
	g.close = func() { mix.stop() }
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		for _, name := range []string{redisName, engineName} {
			if b.grown[name] == nil {
				if _, err := b.grow(ctx, name); err != nil {
					return err
				}
			}
		}
		pair := &servers{redis: b.grown[redisName], engine: b.grown[engineName]}
		mix, err = startPacers(b, pair, paceConfig{Connections: mixConnections, Rate: mixRate, Keys: b.plan.Keys})
		return err
	}
	base := fmt.Sprintf("GET and SET of %d keys, %d a second", b.plan.Keys, mixRate)
	for _, command := range [][]string{nil, {"MEMORY", "PURGE"}} {
		t := &engineTest{name: base}
		if command != nil {
			t.name += ", MEMORY PURGE beside (a collection)"
		}
		rows := []*engineRow{
			t.row(t.name, "ms, p50", 3, justKnow), t.row(t.name, "ms, p99", 3, justKnow), t.row(t.name, "ms, p99.9", 3, justKnow),
			t.row(t.name, "ms, p99.99", 3, justKnow), t.row(t.name, "ms, longest", 2, justKnow),
		}
		collector := t.collectorRows()
		t.measure = func(_ context.Context, b *engineBench, server string) error {
			on := b.grown[server]
			if server == engineName {
				if _, err := on.collected(); err != nil { // what was before is not of this window
					return err
				}
			}
			p, err := mix[server].window(paceWindow{Seconds: b.plan.Mix, Command: command})
			if err != nil {
				return err
			}
			b.paced(p)
			for i, value := range []float64{p.P50, p.P99, p.P999, p.P9999, p.Worst} {
				rows[i].add(server, value)
			}
			return collector.add(on)
		}
		g.tests = append(g.tests, t)
	}
	return g
}
