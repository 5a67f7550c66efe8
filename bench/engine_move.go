package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/move"
)

// A move of all keys from the engine to a redis-server, beside the time that a redis-server takes to synchronise with another
// one that has as many: from its first question until the target follows, and until the callers are there, with each key
// compared in between. The source has the server's core, the target and who moves have the clients'.

func moveGroup(b *engineBench) *engineGroup {
	keys := b.plan.Keys / 10
	g := &engineGroup{}
	var pair *servers
	g.close = stopPair(&pair)
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		if pair, err = startEnginePair(ctx, b.cores); err != nil {
			return err
		}
		for _, s := range []*server{pair.redis, pair.engine} {
			if _, err := fill(b.cores.client, fillConfig{Addr: s.addr, Kind: kindStrings, Count: keys}); err != nil {
				return err
			}
			if err := patientPrimary(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	for _, by := range []string{move.ByReplicaOf, move.ByRestore} {
		t := &engineTest{name: fmt.Sprintf("move of %d keys by %s", keys, strings.ToUpper(by))}
		copied, took := t.row(t.name, "s until it follows", 2, ratioAtMost(2)), t.row(t.name, "s in all, each key compared", 2, justKnow)
		pause := t.row(t.name, "ms that writes wait", 1, ownAtMost(50, "ms"))
		t.measure = func(ctx context.Context, b *engineBench, server string) error {
			folder, err := os.MkdirTemp(pair.folder, "target-") // a replica leaves a snapshot there
			if err != nil {
				return err
			}
			to, err := startRedis(ctx, b.cores.client, folder)
			if err != nil {
				return err
			}
			defer to.process.kill()
			if server == redisName {
				begin := time.Now()
				err := to.follows(ctx, pair.redis)
				for _, row := range []*engineRow{took, copied} {
					row.add(server, time.Since(begin).Seconds())
				}
				return err
			}
			m, err := moveTo(b, pair.engine, to, by)
			took.add(server, m.Seconds)
			copied.add(server, m.Copied)
			pause.add(server, m.PauseMs)
			return errors.Join(err, pair.engine.do(ctx, "REPLICAOF", "NO", "ONE")) // it was closed
		}
		g.tests = append(g.tests, t)
	}
	return g
}

type moving struct{ From, To, By string }

// moved is what a move took, and until its target followed.
type moved struct {
	Seconds, Copied, PauseMs float64
	Fault                    string
}

func moveTo(b *engineBench, from, to *server, by string) (m moved, err error) {
	p, err := startRole(b.cores.client, "move", moving{"redis://" + from.addr, "redis://" + to.addr, by})
	if err != nil {
		return m, err
	}
	defer p.stop()
	if err := p.hear(&m); err != nil {
		return m, err
	}
	if m.Fault != "" {
		return m, errors.New(m.Fault)
	}
	return m, nil
}

func moveRole(ctx context.Context, config []byte) error {
	var c moving
	if err := decode(config, &c); err != nil {
		return err
	}
	var m moved
	o := move.Options{By: c.By, Check: move.CheckAll, Pause: 2 * time.Second, MaxSkew: time.Second, Tell: func(e move.Event) {
		switch {
		case e.Step == move.StepCheck && m.Copied == 0:
			m.Copied = e.Seconds
		case e.Step == move.StepCutOver:
			m.PauseMs = e.PauseMs
		case e.Step == move.StepDone:
			m.Seconds = e.Seconds
		}
	}}
	var err error
	if o.From.Client, o.From.Place, err = address.One(c.From); err != nil {
		return err
	}
	defer shut(o.From.Client)
	if o.To.Client, o.To.Place, err = address.One(c.To); err != nil {
		return err
	}
	defer shut(o.To.Client)
	if err := move.Run(ctx, o); err != nil {
		m.Fault = err.Error()
	}
	return say(m)
}
