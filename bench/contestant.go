package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The children's side of a bout: a process in the role "contended" plays one bout after another, each as some clients
// of one lock. Client libraries are opened anew for each.

// contendedConfig is one bout, for one process.
type contendedConfig struct {
	Addr     string // empty: an engine in this process
	Kind     string
	Name     string // of the lock
	Shared   string // file; empty: all clients are in this process
	Hold     time.Duration
	Window   time.Duration
	Settle   time.Duration // before the window
	Clients  int           // of this process,
	Together bool          // as goroutines of one client library rather than with one each
	Limit    int           // of a semaphore; 0: a lock
}

func contendedRole(ctx context.Context, _ []byte) error {
	for {
		var c contendedConfig
		err := listen(&c)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = playBout(ctx, c)
		}
		if err != nil {
			return err
		}
	}
}

func playBout(ctx context.Context, c contendedConfig) (err error) {
	watch, err := openWitness(c.Shared)
	if err != nil {
		return err
	}
	b, err := openBackend(c.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	contestants, closers, err := newContestants(ctx, b, c, watch)
	if err != nil {
		return err
	}
	if err := say("ready"); err != nil {
		return err
	}
	var begin time.Time
	if err := listen(&begin); err != nil {
		return err
	}
	report := processReport{Clients: make([]turns, len(contestants))}
	var all sync.WaitGroup
	for i, contestant := range contestants {
		all.Go(func() { report.Clients[i] = contestant.compete(ctx, window{begin, begin.Add(c.Window)}) })
	}
	if err := report.watch(ctx, b, begin, c.Window); err != nil {
		return err
	}
	all.Wait()
	report.Overlaps, report.Disorders = watch.overlaps.Load(), watch.disorders.Load()
	for _, close := range closers {
		err = errors.Join(err, close())
	}
	return errors.Join(err, say(report))
}

// watch takes the CPU time of the window, and the commands of an engine in process; servers are asked by the parent.
func (r *processReport) watch(ctx context.Context, b backend, begin time.Time, length time.Duration) (err error) {
	time.Sleep(time.Until(begin))
	r.CPU = ownCPU()
	if b.engine != nil {
		r.Calls, err = callsInWindow(ctx, b, begin, length)
	}
	time.Sleep(time.Until(begin.Add(length)))
	r.CPU = ownCPU() - r.CPU
	return err
}

func callsInWindow(ctx context.Context, b backend, begin time.Time, length time.Duration) (calls, error) {
	client := b.client()
	defer shut(client)
	time.Sleep(time.Until(begin))
	before, err := countCalls(ctx, client)
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Until(begin.Add(length)))
	after, err := countCalls(ctx, client)
	return after.since(before), err
}

// contestant is one client that takes turns.
type contestant struct {
	config  contendedConfig
	acquire acquireFunc
	watch   *witness
	heads   headcount
}

func newContestants(
	ctx context.Context, b backend, c contendedConfig, watch *witness,
) (contestants []*contestant, closers []func() error, err error) {
	lockers, each := c.Clients, 1
	if c.Together {
		lockers, each = 1, c.Clients
	}
	for range lockers {
		pool := 0
		if c.Together {
			pool = each
		}
		client := b.clientOf(pool)
		// The first command of a client opens its connection, which is not what is measured.
		if err := client.Ping(ctx).Err(); err != nil {
			return nil, nil, err
		}
		l, err := newLocker(ctx, c.Kind, client, c.Name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Kind, err)
		}
		closers = append(closers, l.close, client.Close)
		for range each {
			heads := headcount{client, c.Name + ":heads"}
			contestants = append(contestants, &contestant{c, l.forGoroutine(), watch, heads})
		}
	}
	return contestants, closers, nil
}

// compete takes turns until the window is over.
func (p *contestant) compete(ctx context.Context, w window) (t turns) {
	waiting, cancel := context.WithDeadline(ctx, w.end)
	defer cancel()
	time.Sleep(time.Until(w.begin.Add(-p.config.Settle)))
	for asked := time.Now(); asked.Before(w.end); asked = time.Now() {
		held, err := p.obtain(waiting)
		got := time.Now()
		if err != nil {
			// What fails when the time is over, fails for that.
			if got.Before(w.end) {
				t.Fault = err.Error()
			}
			t.unfinished(w, asked)
			return t
		}
		if err := p.hold(ctx, w, &t, got, held.Token()); err != nil {
			t.Fault = err.Error()
			return t
		}
		back := time.Now()
		if err := held.Release(ctx); err != nil {
			if back.Before(w.end) {
				t.Fault = err.Error()
			}
			return t
		}
		t.note(w, asked, got, back)
	}
	return t
}

// hold is what happens under the lock. The witnesses do not look after the window: contexts end then, and rueidislock
// gives up a lock with the context it was asked for with.
func (p *contestant) hold(ctx context.Context, w window, t *turns, got time.Time, token int64) error {
	if !got.Before(w.end) {
		return nil
	}
	if p.config.Limit > 0 {
		n, err := p.heads.enter(ctx)
		if err != nil {
			return err
		}
		if t.Peak = max(t.Peak, n); n > p.config.Limit {
			t.Over++
		}
		p.sleep(w)
		return p.heads.exit(ctx)
	}
	if p.config.Kind == bareKind {
		return nil // that is no lock
	}
	p.watch.enter(token)
	p.sleep(w)
	p.watch.exit()
	return nil
}

// sleep holds for as long as asked, but not beyond the window.
func (p *contestant) sleep(w window) {
	if p.config.Hold > 0 {
		time.Sleep(min(p.config.Hold, max(time.Until(w.end), 0)))
	}
}

// obtain asks as often as the library makes it necessary.
func (p *contestant) obtain(ctx context.Context) (held, error) {
	for {
		held, err := p.acquire(ctx)
		if err == nil || !errors.Is(err, errAgain) || ctx.Err() != nil {
			return held, err
		}
	}
}
