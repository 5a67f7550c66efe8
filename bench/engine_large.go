package main

import (
	"context"
	"fmt"
	"strings"
)

// Commands on a collection of a million, and its removal, with PING beside: how long do others wait?

// largeCommands are on collections that stay, by their kinds as keys.
var largeCommands = []struct {
	words string
	array bool
}{
	{"SMEMBERS set", true},
	{"ZRANGE zset 0 -1", true},
	{"HGETALL hash", true},
	{"LRANGE list 0 -1", true},
	{"SORT list ALPHA LIMIT 0 10", true},
	{"SUNIONSTORE stored set", false},
	{"ZUNIONSTORE stored 1 zset", false},
}

func largeGroup(b *engineBench) *engineGroup {
	g := &engineGroup{}
	var pair *servers
	var ping pacers
	stop := stopPair(&pair)
	g.close = func() {
		ping.stop()
		stop()
	}
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		if pair, err = startEnginePair(ctx, b.cores); err != nil {
			return err
		}
		for _, s := range []*server{pair.redis, pair.engine} {
			for _, kind := range []string{kindSet, kindZset, kindHash, kindList} {
				if _, err := fill(b.cores.client, fillConfig{Addr: s.addr, Kind: kind, Count: b.plan.Members}); err != nil {
					return err
				}
			}
		}
		ping, err = besidePing(b, pair)
		return err
	}
	for _, c := range largeCommands {
		t := &engineTest{name: fmt.Sprintf("%s, of %d", c.words, b.plan.Members)}
		worst := t.row(t.name, "ms, worst PING beside", 1, ratioAtMost(1.1))
		answered := t.row(t.name, "ms until answered", 1, justKnow)
		t.measure = func(ctx context.Context, b *engineBench, server string) error {
			on := pair.redis
			if server == engineName {
				on = pair.engine
			}
			if err := on.do(ctx, "UNLINK", "stored"); err != nil {
				return err
			}
			p, err := ping[server].window(paceWindow{Seconds: 0.4, Command: strings.Fields(c.words), Lines: c.array})
			if err != nil {
				return err
			}
			b.paced(p)
			worst.add(server, p.Worst)
			answered.add(server, p.CommandMs)
			return nil
		}
		g.tests = append(g.tests, t)
	}
	return g
}

// removals are done to a collection of this kind, which is made before each.
var removals = []struct{ kind, words string }{
	{kindZset, "DEL zset"},
	{kindZset, "UNLINK zset"},
	{kindHash, "DEL hash"},
	{kindZset, "FLUSHALL ASYNC"},
}

func removalGroup(b *engineBench) *engineGroup {
	g := &engineGroup{}
	var pair *servers
	var ping pacers
	stop := stopPair(&pair)
	g.close = func() {
		ping.stop()
		stop()
	}
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		if pair, err = startEnginePair(ctx, b.cores); err == nil {
			ping, err = besidePing(b, pair)
		}
		return err
	}
	for _, c := range removals {
		t := &engineTest{name: fmt.Sprintf("%s, of %d", c.words, b.plan.Members)}
		if c.words == "FLUSHALL ASYNC" {
			t.name = fmt.Sprintf("%s, a sorted set of %d", c.words, b.plan.Members)
		}
		worst := t.row(t.name, "ms, worst PING beside", 2, ownAtMost(1, "ms"))
		t.measure = func(_ context.Context, b *engineBench, server string) error {
			on := pair.redis
			if server == engineName {
				on = pair.engine
			}
			if _, err := fill(b.cores.client, fillConfig{Addr: on.addr, Kind: c.kind, Count: b.plan.Members}); err != nil {
				return err
			}
			p, err := ping[server].window(paceWindow{Seconds: 0.6, Command: strings.Fields(c.words)})
			if err != nil {
				return err
			}
			b.paced(p)
			worst.add(server, p.Worst)
			return nil
		}
		g.tests = append(g.tests, t)
	}
	return g
}
