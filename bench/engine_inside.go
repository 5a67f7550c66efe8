package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine"
)

// The engine in process. Beside it is Redis over loopback with one connection and no client library, the best there is.

const insideKeys = 100_000

// insideConfig is what the role inside is told; it measures with one goroutine, and with one for each core.
type insideConfig struct {
	Write   bool
	Seconds float64
}

type insideResult struct{ One, All float64 } // operations per second

func insideRole(ctx context.Context, config []byte) error {
	var c insideConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{})
	if err != nil {
		return err
	}
	keys, value := make([]string, insideKeys), strings.Repeat("x", 64)
	for i := range keys {
		keys[i] = fmt.Sprintf("key:%012d", i)
		if _, err := e.Do(ctx, "SET", keys[i], value); err != nil {
			return errors.Join(err, e.Close())
		}
	}
	request := func(key string) []string { return []string{"GET", key} }
	if c.Write {
		request = func(key string) []string { return []string{"SET", key, value} }
	}
	// More than one warms up.
	span := time.Duration(c.Seconds * float64(time.Second))
	_, err = together(ctx, e, 1, span/4, keys, request)
	var found insideResult
	if err == nil {
		found.One, err = together(ctx, e, 1, span, keys, request)
	}
	if err == nil {
		found.All, err = together(ctx, e, runtime.GOMAXPROCS(0), span, keys, request)
	}
	return errors.Join(err, say(found), e.Close())
}

// together is how many calls a second so many goroutines make.
func together(ctx context.Context, e *engine.Engine, goroutines int, span time.Duration, keys []string, request func(string) []string) (float64, error) {
	counts, faults := make([]int, goroutines), make([]error, goroutines)
	begin := time.Now()
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			n := 0
			for ; n%256 != 0 || time.Since(begin) < span; n++ {
				if _, err := e.Do(ctx, request(keys[scattered(n*goroutines+g, len(keys))])...); err != nil {
					faults[g] = err
					break
				}
			}
			counts[g] = n
		})
	}
	all.Wait()
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / time.Since(begin).Seconds(), errors.Join(faults...)
}

func insideGroup(*engineBench) *engineGroup {
	g := &engineGroup{}
	for _, write := range []bool{false, true} {
		name := "engine.Do GET"
		if write {
			name = "engine.Do SET"
		}
		t := &engineTest{name: name + " in process"}
		one := t.row(name+", 1 goroutine; Redis over loopback", "op/s", 0, ratioAtLeast(10))
		all := t.row(name+", GOMAXPROCS goroutines; Redis over loopback", "op/s", 0, ratioAtLeast(10))
		grows := t.row(name+", GOMAXPROCS goroutines; on the left 1 goroutine", "op/s", 0, ratioAtLeast(1.1))
		t.measure = func(ctx context.Context, b *engineBench, server string) error {
			if server == redisName {
				rate, err := loopback(ctx, b, write)
				one.add(server, rate)
				all.add(server, rate)
				return err
			}
			var found insideResult
			p, err := startRole(b.everywhere(), "inside", insideConfig{write, b.plan.Seconds / 2})
			if err != nil {
				return err
			}
			defer p.stop()
			if err := p.hear(&found); err != nil {
				return err
			}
			one.add(server, found.One)
			all.add(server, found.All)
			grows.add(redisName, found.One)
			grows.add(server, found.All)
			return nil
		}
		g.tests = append(g.tests, t)
	}
	return g
}

func (b *engineBench) everywhere() []int {
	return append(slices.Clone(b.cores.server), b.cores.client...)
}

// loopback is what one connection does on Redis.
func loopback(ctx context.Context, b *engineBench, write bool) (float64, error) {
	on := b.pair.redis
	if err := flush(ctx, on); err != nil {
		return 0, err
	}
	config := driveConfig{
		Addr: on.addr, Connections: 1, Pipeline: 100, Keys: insideKeys, ValueBytes: 64, Write: true, Operations: insideKeys,
	}
	if _, err := drive(b.cores.client, config); err != nil {
		return 0, err
	}
	config.Pipeline, config.Write, config.Operations = 1, write, b.operations(25e3)
	w, err := drive(b.cores.client, config)
	return w.rate(), err
}

// ledgerGroup has the match of bench-locks that is about the engine in process.
func ledgerGroup(*engineBench) *engineGroup {
	t := &engineTest{name: "ledger acquire and release in process"}
	rows := map[string]*engineRow{}
	for _, placement := range []string{twoCores, sameCore} {
		rows[placement] = t.row(t.name+"; the best library on Redis"+placement, "pairs/s", 0, ratioAtLeast(20))
	}
	peers := []string{redsyncKind, redislockLinearKind, rueidislockKind, bookKind, bookLuaKind}
	l := &lockBench{plan: fullLocks}
	var ours *match
	theirs := map[string][]*match{}
	g := &engineGroup{tests: []*engineTest{t}}
	g.open = func(_ context.Context, b *engineBench) error {
		l.cores, l.servers, l.begin = b.cores, b.pair, b.begin
		l.apart, l.beside, l.inside = &squad{on: b.cores.client}, &squad{on: b.cores.server}, &squad{on: b.everywhere()}
		short := func(kind string, on *server, q *squad) *match {
			m := l.match(kind, on, q, 1)
			m.window = l.plan.ShortWindow
			return m
		}
		ours = short(signalboxKind, nil, l.inside)
		for _, kind := range peers {
			theirs[twoCores] = append(theirs[twoCores], short(kind, b.pair.redis, l.apart))
			theirs[sameCore] = append(theirs[sameCore], short(kind, b.pair.redis, l.beside))
		}
		return nil
	}
	play := func(ctx context.Context, m *match) (float64, error) {
		if m.server != nil {
			if err := flush(ctx, m.server); err != nil {
				return 0, err
			}
		}
		if err := m.play(ctx); err != nil {
			return 0, err
		}
		return m.bouts[len(m.bouts)-1].rate, nil
	}
	g.round = func(ctx context.Context, _ *engineBench, _ []*engineTest, _ []string) error {
		rate, err := play(ctx, ours)
		if err != nil {
			return err
		}
		for placement, row := range rows {
			best := 0.0
			for _, m := range theirs[placement] {
				peer, err := play(ctx, m)
				if err != nil {
					return err
				}
				best = max(best, peer)
			}
			row.add(redisName, best)
			row.add(engineName, rate)
		}
		return nil
	}
	g.close = func() {
		for _, q := range []*squad{l.apart, l.beside, l.inside} {
			if q != nil {
				q.stop()
			}
		}
	}
	return g
}
