package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// The uncontended part: one client, in a process of its own, acquires and releases a lock nobody else wants. Beside it,
// by the same client, two scripts that do nothing: what two round trips cost at best. The subjects take turns in short
// blocks, and each is compared with the bare scripts of its own round.

const cancelableKind = "signalbox, context that can end"

var uncontendedKinds = []string{bareKind, signalboxKind, cancelableKind, redsyncKind, redislockKind}

type uncontendedConfig struct {
	Addr   string
	Kinds  []string
	Blocks int
	Block  time.Duration
}

// uncontendedResult is of one subject, with a rate per block.
type uncontendedResult struct {
	Kind     string
	Rates    []float64 // cycles per second
	Allocs   float64   // per cycle
	Commands float64   // sent per cycle
}

func uncontendedRole(ctx context.Context, config []byte) (err error) {
	var c uncontendedConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	b, err := openBackend(c.Addr)
	if err != nil {
		return err
	}
	client := b.client()
	defer func() { err = errors.Join(err, client.Close(), b.close()) }()
	results := make([]uncontendedResult, len(c.Kinds))
	subjects := make([]*subject, len(c.Kinds))
	for i, kind := range c.Kinds {
		results[i].Kind = kind
		if subjects[i], err = newSubject(ctx, kind, client); err != nil {
			return err
		}
		if _, _, err := subjects[i].block(ctx, c.Block/2); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	for range c.Blocks {
		for i, s := range subjects {
			if err := s.measure(ctx, client, c.Block, &results[i]); err != nil {
				return fmt.Errorf("%s: %w", s.kind, err)
			}
		}
	}
	for i := range results {
		results[i].Allocs /= float64(c.Blocks)
		results[i].Commands /= float64(c.Blocks)
		err = errors.Join(err, subjects[i].close())
	}
	return errors.Join(err, say(results))
}

// subject is something that is done over and over by one goroutine.
type subject struct {
	kind  string
	cycle func(context.Context) error
	close func() error
}

func newSubject(ctx context.Context, kind string, client *redis.Client) (*subject, error) {
	lockKind := kind
	if kind == cancelableKind {
		lockKind = signalboxKind
	}
	l, err := newLocker(ctx, lockKind, client, "uncontended "+lockKind)
	if err != nil {
		return nil, err
	}
	return &subject{kind, func(ctx context.Context) error {
		held, err := l.acquire(ctx)
		if err != nil {
			return err
		}
		return held.Release(ctx)
	}, l.close}, nil
}

// block repeats the cycle for a while.
func (s *subject) block(ctx context.Context, length time.Duration) (cycles int, took time.Duration, err error) {
	if s.kind == cancelableKind {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	begin := time.Now()
	for took < length {
		for range 16 {
			if err := s.cycle(ctx); err != nil {
				return cycles, took, err
			}
			cycles++
		}
		took = time.Since(begin)
	}
	return cycles, took, nil
}

func (s *subject) measure(
	ctx context.Context, client *redis.Client, length time.Duration, into *uncontendedResult,
) error {
	before, err := countCalls(ctx, client)
	if err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	allocs := memory.Mallocs
	cycles, took, err := s.block(ctx, length)
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&memory)
	after, err := countCalls(ctx, client)
	if err != nil {
		return err
	}
	into.Rates = append(into.Rates, float64(cycles)/took.Seconds())
	into.Allocs += float64(memory.Mallocs-allocs) / float64(cycles)
	into.Commands += float64(after.since(before).sent(s.kind)) / float64(cycles)
	return nil
}

// measureUncontended compares on Redis and on the engine, with client and server on two cores and on one.
func measureUncontended(ctx context.Context, e effort, s *servers) (*section, error) {
	own := []string{bareKind, signalboxKind, cancelableKind}
	cases := []struct {
		name, addr string
		on         []int
		kinds      []string
		aims       bool
	}{
		{"Redis, two cores", s.redis.addr, e.cores.client, uncontendedKinds, true},
		{"Redis, same core", s.redis.addr, e.cores.server, uncontendedKinds, true},
		{"engine, two cores", s.engine.addr, e.cores.client, own, false},
		{"engine, same core", s.engine.addr, e.cores.server, own, false},
		{"engine in process", "", e.cores.client, own, false},
	}
	out := &section{
		Title: "Uncontended: one client acquires and releases",
		Note: "A cycle beside two EVALSHA of `return 1`, by the same client in the same process, in alternating blocks. " +
			"Median of the blocks [lowest..highest].",
		Columns: []string{"where", "what", "cycles/s", "x two bare EVALSHA", "commands sent", "allocations"},
	}
	for _, c := range cases {
		results, err := runUncontended(c.on, uncontendedConfig{c.addr, c.kinds, e.Blocks, e.Block})
		if err != nil {
			return nil, fmt.Errorf("uncontended, %s: %w", c.name, err)
		}
		for _, r := range results {
			ratios := ratiosOf(r.Rates, results[0].Rates)
			out.row(c.name, r.Kind, count(median(r.Rates)), spread(ratios, 2), number(r.Commands, 2), number(r.Allocs, 0))
			if c.aims && (r.Kind == signalboxKind || r.Kind == cancelableKind) {
				out.atLeast(c.name+": "+r.Kind+", x two bare EVALSHA", 0.95, ratios)
			}
			if c.aims && r.Kind == signalboxKind {
				out.atMost(c.name+": commands sent per acquire and release", 2, []float64{r.Commands})
			}
		}
	}
	return out, nil
}

func runUncontended(on []int, config uncontendedConfig) ([]uncontendedResult, error) {
	p, err := startRole(on, "uncontended", config)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	var results []uncontendedResult
	err = p.hear(&results)
	return results, err
}
