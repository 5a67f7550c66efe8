package main

import (
	"context"
	"fmt"
	"time"
)

// The part snapshot: what clients notice of BGSAVE, and what memory it takes. Redis forks: the kernel copies each page
// that is written to meanwhile. The engine hands over each object before it changes.

type snapshots struct {
	keys                       int
	idle, during               struct{ rate, p999, worst both }
	alone, busy                both // seconds that the snapshot took
	beforeMB, extraMB, extraPC both
	writeRate                  both
	touched                    both // how often each key was written during the snapshot
}

func newSnapshots() *snapshots {
	s := &snapshots{alone: both{}, busy: both{}, beforeMB: both{}, extraMB: both{}, extraPC: both{}, writeRate: both{}, touched: both{}}
	for _, w := range []*struct{ rate, p999, worst both }{&s.idle, &s.during} {
		w.rate, w.p999, w.worst = both{}, both{}, both{}
	}
	return s
}

func (s *snapshots) name() string { return "snapshot" }

func (s *snapshots) measure(ctx context.Context, b *durableBench, server string) error {
	s.keys = b.plan.Keys
	on, err := startKeeper(ctx, server, b.cores.server, b.data(), "appendonly=no", "save=")
	if err != nil {
		return err
	}
	defer on.end()
	if _, err := drive(b.cores.client, fillOf(on, b.plan.Keys)); err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	took, err := on.save(ctx, savePollEvery, nil)
	if err != nil {
		return err
	}
	s.alone.add(server, took.Seconds())
	if err := s.readers(ctx, b, on); err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	if err := s.writers(ctx, b, on); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// savePollEvery is how exactly the end of a snapshot is seen.
const savePollEvery = 20 * time.Millisecond

// fillOf writes every key once.
func fillOf(on *server, keys int) driveConfig {
	return driveConfig{
		Addr: on.addr, Connections: 8, Pipeline: 32, Keys: keys, ValueBytes: durableValueBytes, Write: true, Operations: keys,
	}
}

// readers compares GET of keys at random before a snapshot and during one.
func (s *snapshots) readers(ctx context.Context, b *durableBench, on *server) error {
	d, err := startDriver(b.cores.client, driveConfig{
		Addr: on.addr, Connections: loadConnections, Pipeline: 1, Keys: b.plan.Keys, ValueBytes: durableValueBytes,
	})
	if err != nil {
		return err
	}
	defer d.stop()
	time.Sleep(b.plan.Idle / 4)
	if _, err := d.window(); err != nil { // the beginning is no measure
		return err
	}
	time.Sleep(b.plan.Idle)
	idle, err := d.window()
	if err != nil {
		return err
	}
	took, err := on.save(ctx, savePollEvery, nil)
	if err != nil {
		return err
	}
	during, err := d.window()
	if err != nil {
		return err
	}
	s.busy.add(on.name, took.Seconds())
	s.idle.rate.add(on.name, idle.rate())
	s.idle.p999.add(on.name, idle.P999Ms)
	s.idle.worst.add(on.name, idle.MaxMs)
	s.during.rate.add(on.name, during.rate())
	s.during.p999.add(on.name, during.P999Ms)
	s.during.worst.add(on.name, during.MaxMs)
	return nil
}

// writers sees how much more memory is in use during a snapshot than before, while every key is written again and
// again.
func (s *snapshots) writers(ctx context.Context, b *durableBench, on *server) error {
	config := fillOf(on, b.plan.Keys)
	// Before is at the same work without a snapshot: what garbage and free space the writes leave is not the snapshot's.
	if _, err := drive(b.cores.client, config); err != nil {
		return err
	}
	config.Operations = 0
	d, err := startDriver(b.cores.client, config)
	if err != nil {
		return err
	}
	defer d.stop()
	var before, peak int64
	for range 10 {
		time.Sleep(b.plan.Idle / 10)
		before = max(before, on.process.memory())
	}
	if _, err := d.window(); err != nil {
		return err
	}
	if _, err := on.save(ctx, savePollEvery, func() { peak = max(peak, on.process.memory()) }); err != nil {
		return err
	}
	w, err := d.window()
	if err != nil || before == 0 {
		return err
	}
	const mb = 1 << 20
	s.writeRate.add(on.name, w.rate())
	s.touched.add(on.name, w.Operations/float64(b.plan.Keys))
	s.beforeMB.add(on.name, float64(before)/mb)
	s.extraMB.add(on.name, float64(max(peak-before, 0))/mb)
	s.extraPC.add(on.name, 100*float64(max(peak-before, 0))/float64(before))
	return nil
}

func (s *snapshots) section() *section {
	out := &section{
		Title: fmt.Sprintf("Snapshots: BGSAVE of %d keys of %d bytes", s.keys, durableValueBytes),
		Note: fmt.Sprintf("GET of keys at random, %d clients, -P 1, from a loader of this program, before a snapshot and during "+
			"one; then SET of all keys in turn, in an order of no pattern, from 8 clients at -P 32. Server and snapshot share "+
			"one core. Memory is of all processes of the server, what they share counted once (PSS): the most during the "+
			"snapshot, over the most at the same work before.", loadConnections),
		Columns: []string{"what", "Redis", "engine", "ratio"},
	}
	s.idle.rate.row(out, "GET/s, idle", 0)
	s.during.rate.row(out, "GET/s, during the snapshot", 0)
	s.idle.p999.row(out, "GET p99.9, ms, idle", 2)
	s.during.p999.row(out, "GET p99.9, ms, during the snapshot", 2)
	s.idle.worst.row(out, "GET longest, ms, idle", 1)
	s.during.worst.row(out, "GET longest, ms, during the snapshot", 1)
	s.alone.row(out, "snapshot alone, s", 2)
	s.busy.row(out, "snapshot with the readers, s", 2)
	if len(s.beforeMB) > 0 {
		s.writeRate.row(out, "SET/s, during the snapshot", 0)
		s.touched.row(out, "writes of each key during it", 2)
		s.beforeMB.row(out, "memory before, MB", 0)
		s.extraMB.row(out, "memory more, MB", 0)
	}
	out.atMost("GET during a snapshot: p99.9, x Redis", 1, s.during.p999.ratios())
	out.atLeast("GET during a snapshot: rate, x Redis", 1, s.during.rate.ratios())
	out.atMost("snapshot under writes: memory more, % of before", 30, s.extraPC[engineName])
	out.know("snapshot under writes: memory more, % of before, Redis", s.extraPC[redisName])
	out.know("snapshot with readers: time, x Redis", s.busy.ratios())
	return out
}
