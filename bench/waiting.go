package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
)

// The waiting part: one holds, nine wait, and nothing changes. All that may be sent is that each waiter says once per
// third of the claim time that it still lives. Those of one Box for one name are one heartbeat, unless they want to hear of
// their places: so nobody here asks for that, and whether they wait is seen on the server.

type waitingConfig struct {
	Addr  string
	Name  string
	Boxes int
	Each  int // waiters of a box; 0: one
	Known int // waiters of the name when all of these wait; 0: one for each box but the holder's
	Wait  time.Duration
	Hold  bool // the first box holds
}

func waitingRole(ctx context.Context, config []byte) (err error) {
	var c waitingConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	b, err := openBackend(c.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting sync.WaitGroup
	known, last := c.Known, (*signalbox.Box)(nil)
	for i := range c.Boxes {
		client := b.client()
		box := signalbox.New(client)
		defer func() { err = errors.Join(err, box.Close(), client.Close()) }()
		mutex := box.Mutex(c.Name)
		last = box
		if c.Hold && i == 0 {
			if _, err := mutex.Acquire(ctx); err != nil {
				return err
			}
			continue
		}
		for range max(c.Each, 1) {
			if c.Known == 0 {
				known++
			}
			waiting.Go(func() {
				for ctx.Err() == nil {
					// It is never its turn: the error is that of the context. Or the server had too much to do, so try again.
					_, _ = mutex.Acquire(ctx)
				}
			})
		}
	}
	// Deferred calls run backwards: the waiters end before the boxes close.
	defer waiting.Wait()
	defer cancel()
	for {
		state, err := last.Inspect(ctx, c.Name)
		if err != nil {
			return err
		}
		if state.Waiters >= known {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := say("ready"); err != nil {
		return err
	}
	if b.engine != nil {
		sent, err := callsDuring(ctx, b, c.Wait)
		if err := errors.Join(err, say(sent)); err != nil {
			return err
		}
	}
	dismissed()
	return nil
}

// callsDuring counts what arrives in a while, after subscriptions have settled.
func callsDuring(ctx context.Context, b backend, while time.Duration) (calls, error) {
	client := b.client()
	defer shut(client)
	time.Sleep(time.Second)
	before, err := countCalls(ctx, client)
	if err != nil {
		return nil, err
	}
	time.Sleep(while)
	after, err := countCalls(ctx, client)
	return after.since(before), err
}

// measureWaiting runs the three at the same time: they have nothing to do.
func measureWaiting(ctx context.Context, e effort, s *servers) (*section, error) {
	addresses := []string{s.redis.addr, s.engine.addr, ""}
	found, errs := make([]calls, 3), make([]error, 3)
	var all sync.WaitGroup
	for i, addr := range addresses {
		all.Go(func() { found[i], errs[i] = countWaiting(ctx, e, addr) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("waiting: %w", err)
	}
	out := &section{
		Title: fmt.Sprintf("Waiting: %d clients wait for %v while one holds", contenders-1, e.Wait),
		Note: fmt.Sprintf("A waiter is heard from every %v, or up to an eighth sooner. The columns count commands sent.",
			signalbox.DefaultClaim/3),
		Columns: []string{"where", "heartbeats", "per waiter and heartbeat time", "anything else"},
	}
	beats := float64(contenders-1) * e.Wait.Seconds() / (signalbox.DefaultClaim / 3).Seconds()
	for i, name := range []string{"Redis", "engine", "engine in process"} {
		other := found[i].sent("") - found[i]["evalsha"]
		per := float64(found[i]["evalsha"]) / beats
		out.row(name, fmt.Sprint(found[i]["evalsha"]), number(per, 2), others(found[i]))
		// One beat more or less can fall into the time that is watched.
		limit := 8.0/7 + 1/(e.Wait.Seconds()/(signalbox.DefaultClaim/3).Seconds())
		out.atMost(name+": heartbeats per waiter and heartbeat time", limit, []float64{per})
		out.atMost(name+": commands sent besides", 0, []float64{float64(other)})
	}
	return out, nil
}

// others names the commands that are no heartbeats and that no script calls.
func others(c calls) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if name != "evalsha" && (calls{name: 1}).sent("") > 0 {
			names = append(names, fmt.Sprintf("%s %d", name, c[name]))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func countWaiting(ctx context.Context, e effort, addr string) (calls, error) {
	config := waitingConfig{Addr: addr, Name: "waiting", Boxes: 1, Wait: e.Wait, Hold: true}
	processes := contenders
	if addr == "" {
		processes, config.Boxes = 1, contenders
	}
	var first *process
	for i := range processes {
		config.Hold = i == 0
		p, err := startRole(e.cores.client, "waiting", config)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		// The holder is ready before the others ask.
		var word string
		if err := p.hear(&word); err != nil {
			return nil, err
		}
		if first == nil {
			first = p
		}
	}
	if addr != "" {
		return callsDuring(ctx, backend{Addr: addr}, e.Wait)
	}
	sent := calls{}
	err := first.hear(&sent)
	return sent, err
}
