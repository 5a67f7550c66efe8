package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The group memory: each kind of data on a server of its own, which has had nothing else. In a pair all servers are
// filled one after the other and then left alone together, since what is waited for is that nothing happens any more.

// memoryKind is data of which the memory is measured.
type memoryKind struct {
	kind, name string
	small      bool // of as many as there are small collections
	removed    string
}

var memoryKinds = []memoryKind{
	{kindStrings, "strings, keys of 16 and values of 16 bytes", false, kindUnlinked},
	{kindMixed, "strings, keys of 16 and values of 3 to 64 bytes", false, kindUnlinked},
	{kindZset, "members of one sorted set, of 14 bytes", false, ""},
	{kindSet, "members of one set, of 14 bytes", false, ""},
	{kindHash, "fields of one hash, of 14 bytes, values of 16", false, ""},
	{kindList, "elements of one list, of 16 bytes", false, ""},
	{kindHashes, "small hashes of 10 fields", true, kindUnlinkedC},
	{kindLists, "small lists of 10 elements", true, kindUnlinkedC},
	{kindSets, "small sets of 10 members", true, kindUnlinkedC},
	{kindZsets, "small sorted sets of 10 members", true, kindUnlinkedC},
}

func (k memoryKind) items(plan enginePlan) int {
	if k.small {
		return plan.Small
	}
	return plan.Members
}

// memoryRows are those of a kind.
type memoryRows struct {
	each, most, idle, purged *engineRow
}

// memorySubject is a server with data.
type memorySubject struct {
	kind         memoryKind
	name         string
	server       *server
	before, full float64
	rows         memoryRows
}

func memoryGroup(b *engineBench) *engineGroup {
	g := &engineGroup{}
	kinds, rows := map[*engineTest]memoryKind{}, map[*engineTest]memoryRows{}
	for _, k := range memoryKinds {
		t := &engineTest{name: fmt.Sprintf("memory, %d %s", k.items(b.plan), k.name)}
		rows[t] = memoryRows{
			t.row(t.name, "bytes each", 0, ratioAtMost(1.1)), t.row(t.name, "bytes each at most meanwhile", 0, justKnow),
			t.row(t.name, "% given back after removal", 0, ratioAtLeast(0.9)),
			t.row(t.name, "% given back after MEMORY PURGE", 0, justKnow),
		}
		kinds[t] = k
		g.tests = append(g.tests, t)
	}
	g.round = func(ctx context.Context, b *engineBench, tests []*engineTest, order []string) (err error) {
		var subjects []*memorySubject
		defer func() {
			for _, s := range subjects {
				s.server.end()
			}
		}()
		for _, t := range tests {
			for _, name := range order {
				s := &memorySubject{kind: kinds[t], name: name, rows: rows[t]}
				if s.server, err = startMeasured(ctx, name, b.cores, b.pair.folder); err != nil {
					return err
				}
				subjects = append(subjects, s)
				if err := s.load(b); err != nil {
					return fmt.Errorf("%s, %s: %w", name, s.kind.name, err)
				}
			}
		}
		return b.weigh(ctx, subjects)
	}
	return g
}

func (s *memorySubject) load(b *engineBench) (err error) {
	if s.before, _, err = s.server.process.resident(); err != nil {
		return err
	}
	_, err = fill(b.cores.client, fillConfig{Addr: s.server.addr, Kind: s.kind.kind, Count: s.kind.items(b.plan)})
	return err
}

// weigh reads the memory of all when they rest, and again when the data is gone.
func (b *engineBench) weigh(ctx context.Context, subjects []*memorySubject) error {
	processes := make([]*process, len(subjects))
	for i, s := range subjects {
		processes[i] = s.server.process
	}
	untilSteady(processes, b.plan.Settle)
	for _, s := range subjects {
		now, most, err := s.server.process.resident()
		if err != nil {
			return err
		}
		s.full = now
		items := float64(s.kind.items(b.plan))
		s.rows.each.add(s.name, (now-s.before)/items)
		s.rows.most.add(s.name, (most-s.before)/items)
	}
	for _, s := range subjects {
		if err := s.remove(ctx, b); err != nil {
			return fmt.Errorf("%s, removing %s: %w", s.name, s.kind.name, err)
		}
	}
	untilSteady(processes, b.plan.Settle)
	for _, s := range subjects {
		if err := s.givenBack(s.rows.idle); err != nil {
			return err
		}
		if err := s.server.do(ctx, "MEMORY", "PURGE"); err != nil {
			return err
		}
	}
	time.Sleep(b.plan.Settle / 4)
	for _, s := range subjects {
		if err := s.givenBack(s.rows.purged); err != nil {
			return err
		}
	}
	return nil
}

func (s *memorySubject) remove(ctx context.Context, b *engineBench) error {
	if s.kind.removed == "" {
		return s.server.do(ctx, "DEL", s.kind.kind)
	}
	_, err := fill(b.cores.client, fillConfig{Addr: s.server.addr, Kind: s.kind.removed, Count: s.kind.items(b.plan)})
	return err
}

func (s *memorySubject) givenBack(row *engineRow) error {
	now, _, err := s.server.process.resident()
	if err == nil {
		row.add(s.name, max(100*(s.full-now)/(s.full-s.before), 0.1))
	}
	return err
}

const (
	expiryPatience = 30 * time.Second       // for a million keys to be gone
	expiryLead     = 200 * time.Millisecond // of PINGs before the moment
)

// fillWithEnd fills a server with keys that all end at one moment, which is not yet.
func (b *engineBench) fillWithEnd(ctx context.Context, on *server) (time.Time, error) {
	for last := 4 * time.Second; last < expiryPatience*4; {
		if err := flush(ctx, on); err != nil {
			return time.Time{}, err
		}
		at := time.Now().Add(last)
		config := fillConfig{Addr: on.addr, Kind: kindExpiring, Count: b.plan.Members, At: at.UnixMilli()}
		f, err := fill(b.cores.client, config)
		if err != nil {
			return at, err
		}
		if time.Until(at) > expiryLead {
			return at, nil
		}
		last = max(2*last, time.Duration(2*f.Seconds*float64(time.Second)))
	}
	return time.Time{}, errors.New("filling took longer than keys last")
}

// expiryGroup has keys that all end at the same moment.
func expiryGroup(b *engineBench) *engineGroup {
	t := &engineTest{name: fmt.Sprintf("%d keys expire at once", b.plan.Members)}
	gone := t.row(t.name, "s until gone", 2, ownAtMost(5, "s"))
	worst := t.row(t.name, "ms, worst PING beside", 2, ratioAtMost(1))
	late := t.row(t.name, "ms, p99.9 of PING beside", 2, justKnow)
	var ping pacers
	g := &engineGroup{tests: []*engineTest{t}, close: func() { ping.stop() }}
	g.open = func(_ context.Context, b *engineBench) (err error) {
		ping, err = besidePing(b, b.pair)
		return err
	}
	t.measure = func(ctx context.Context, b *engineBench, server string) error {
		on := b.on(server)
		at, err := b.fillWithEnd(ctx, on)
		if err != nil {
			return err
		}
		time.Sleep(time.Until(at) - expiryLead)
		type result struct {
			paced
			err error
		}
		beside := make(chan result, 1)
		go func() {
			p, err := ping[server].window(paceWindow{Seconds: 4})
			beside <- result{p, err}
		}()
		took, err := untilEmpty(ctx, on, at)
		p := <-beside
		b.paced(p.paced)
		if err != nil || p.err != nil {
			return fmt.Errorf("%w; beside it: %w", err, p.err)
		}
		gone.add(server, took.Seconds())
		worst.add(server, p.Worst)
		late.add(server, p.P999)
		return nil
	}
	return g
}

// untilEmpty waits until a server has no key, and says how long that is after a moment.
func untilEmpty(ctx context.Context, on *server, after time.Time) (time.Duration, error) {
	client := backend{Addr: on.addr}.client()
	defer shut(client)
	for {
		keys, err := client.DBSize(ctx).Result()
		took := time.Since(after)
		if err != nil || keys == 0 {
			return took, err
		}
		if took > expiryPatience {
			return took, fmt.Errorf("%d keys are still there", keys)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
