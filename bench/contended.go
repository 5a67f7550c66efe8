package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// The contended part: ten processes, one client each, take turns on one lock for a while. They start together, and
// what counts is the window after a short time to settle. A turn that begins in the window and ends after it counts as
// a wait, so that a client that starves shows.
//
// That nobody shares the lock is watched in memory all processes share: one word counts who is inside, another has the
// last fencing token.

const contenders = 10

type contendedConfig struct {
	Addr   string
	Kind   string
	Name   string // of the lock
	Shared string // file; empty: all clients are in this process
	Hold   time.Duration
	Window time.Duration
}

const (
	settleTime = 200 * time.Millisecond
	startDelay = 50 * time.Millisecond
)

// contendedResult is of one client.
type contendedResult struct {
	Turns  int
	Waits  []time.Duration
	Held   time.Duration // sum over the turns,
	Kept   time.Duration // and the longest
	CPU    time.Duration // of its process
	Faults string
}

// witness is the memory that all contenders share.
type witness struct {
	inside, token, overlaps, disorders atomic.Int64
}

func openWitness(path string) (*witness, error) {
	if path == "" {
		return new(witness), nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer shut(file)
	memory, err := mapShared(file.Fd(), int(unsafe.Sizeof(witness{})))
	if err != nil {
		return nil, err
	}
	return (*witness)(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

func (w *witness) enter(token int64) {
	if w.inside.Add(1) != 1 {
		w.overlaps.Add(1)
	}
	if before := w.token.Swap(token); token != 0 && token <= before {
		w.disorders.Add(1)
	}
}

func (w *witness) exit() { w.inside.Add(-1) }

// contendedRole is one client of a server, or all clients of an engine in process.
func contendedRole(ctx context.Context, config []byte) (err error) {
	var c contendedConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	watch, err := openWitness(c.Shared)
	if err != nil {
		return err
	}
	b, err := openBackend(c.Addr)
	if err != nil {
		return err
	}
	clients := 1
	if c.Addr == "" {
		clients = contenders
	}
	defer func() { err = errors.Join(err, b.close()) }()
	contestants := make([]*contestant, clients)
	for i := range contestants {
		if contestants[i], err = newContestant(ctx, b, c, watch); err != nil {
			return err
		}
	}
	if err := say("ready"); err != nil {
		return err
	}
	var begin time.Time
	if err := listen(&begin); err != nil {
		return err
	}
	results := make([]contendedResult, clients)
	var all sync.WaitGroup
	for i, contestant := range contestants {
		all.Go(func() { results[i] = contestant.compete(ctx, begin) })
	}
	if err := reportWindow(ctx, b, c, begin); err != nil {
		return err
	}
	all.Wait()
	for _, contestant := range contestants {
		err = errors.Join(err, contestant.close())
	}
	return errors.Join(err, say(results), say([2]int64{watch.overlaps.Load(), watch.disorders.Load()}))
}

// reportWindow says how many commands the engine of this process took in the window; servers are asked by the parent.
func reportWindow(ctx context.Context, b backend, c contendedConfig, begin time.Time) error {
	if b.engine == nil {
		return nil
	}
	sent, err := sentInWindow(ctx, b, c.Kind, begin, c.Window)
	return errors.Join(err, say(sent))
}

func sentInWindow(ctx context.Context, b backend, kind string, begin time.Time, window time.Duration) (int64, error) {
	client := b.client()
	defer shut(client)
	time.Sleep(time.Until(begin))
	before, err := countCalls(ctx, client)
	if err != nil {
		return 0, err
	}
	time.Sleep(time.Until(begin.Add(window)))
	after, err := countCalls(ctx, client)
	return after.since(before).sent(kind), err
}

// contestant is one client that takes turns.
type contestant struct {
	config contendedConfig
	locker *locker
	watch  *witness
	close  func() error
}

func newContestant(ctx context.Context, b backend, c contendedConfig, watch *witness) (*contestant, error) {
	client := b.client()
	// The first command of a client opens its connection, which is not what is measured.
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	l, err := newLocker(c.Kind, client, c.Name)
	if err != nil {
		return nil, err
	}
	return &contestant{c, l, watch, func() error { return errors.Join(l.close(), client.Close()) }}, nil
}

// compete takes turns until the window is over.
func (p *contestant) compete(ctx context.Context, begin time.Time) contendedResult {
	var r contendedResult
	end := begin.Add(p.config.Window)
	time.Sleep(time.Until(begin.Add(-settleTime)))
	cpu, counting := time.Duration(0), false
	for now := time.Now(); now.Before(end); now = time.Now() {
		if !counting && !now.Before(begin) {
			cpu, counting = ownCPU(), true
		}
		held, err := p.obtain(ctx, end)
		if err != nil {
			r.Faults = err.Error()
			return r
		}
		got := time.Now()
		if held == nil {
			r.Waits = append(r.Waits, got.Sub(now))
			break
		}
		p.watch.enter(held.Token())
		if p.config.Hold > 0 {
			time.Sleep(p.config.Hold)
		}
		p.watch.exit()
		kept := time.Since(got)
		if err := held.Release(ctx); err != nil {
			r.Faults = err.Error()
			return r
		}
		if counting {
			r.Waits = append(r.Waits, got.Sub(now))
		}
		if counting && got.Before(end) {
			r.Turns++
			r.Held += kept
			r.Kept = max(r.Kept, kept)
		}
	}
	r.CPU = ownCPU() - cpu
	return r
}

// obtain asks as often as the library makes it necessary; nil without an error if the window is over meanwhile.
func (p *contestant) obtain(ctx context.Context, end time.Time) (held, error) {
	for {
		held, err := p.locker.acquire(ctx)
		if err == nil {
			return held, nil
		}
		if !errors.Is(err, errAgain) {
			return nil, err
		}
		if time.Now().After(end) {
			return nil, nil
		}
	}
}

// bout is one run of one case, over all clients.
type bout struct {
	rate, commands, fairness, longestMs, p50Ms, p99Ms, heldMs, keptMs float64
	serverCPU, clientCPU                                              float64 // microseconds per turn
	overlaps, disorders                                               int64
}

type contendedCase struct {
	name, kind string
	server     *server // nil: an engine in process
	hold       time.Duration
	bouts      []bout
}

func (c *contendedCase) series(of func(bout) float64) []float64 {
	var values []float64
	for _, b := range c.bouts {
		values = append(values, of(b))
	}
	return values
}

func measureContended(ctx context.Context, e effort, s *servers) (*section, error) {
	var cases []*contendedCase
	for _, hold := range []time.Duration{time.Millisecond, 0} {
		cases = append(
			cases,
			&contendedCase{name: "Redis", kind: signalboxKind, server: s.redis, hold: hold},
			&contendedCase{name: "Redis", kind: redsyncKind, server: s.redis, hold: hold},
			&contendedCase{name: "Redis", kind: redislockKind, server: s.redis, hold: hold},
			&contendedCase{name: "engine", kind: signalboxKind, server: s.engine, hold: hold},
			&contendedCase{name: "engine in process", kind: signalboxKind, hold: hold},
		)
	}
	for range e.Rounds {
		for _, c := range cases {
			b, err := c.run(ctx, e)
			if err != nil {
				return nil, fmt.Errorf("contended, %s on %s: %w", c.kind, c.name, err)
			}
			c.bouts = append(c.bouts, b)
		}
	}
	return contendedSection(cases), nil
}

func contendedSection(cases []*contendedCase) *section {
	out := &section{
		Title: fmt.Sprintf("Contended: %d processes, one client each, take turns on one lock", contenders),
		Note: "Waits in ms, CPU in µs per turn; the clients of the engine in process are goroutines with a Box each, on all " +
			"cores, so that its CPU is that of both. The peers poll: redsync every 50 to 250 ms, redislock every 1 ms; " +
			"where the clients have one core, that is what stops redislock.",
		Columns: []string{
			"where", "what", "hold", "turns/s", "longest wait", "p50", "p99", "max/min turns", "sent/turn",
			"server CPU", "client CPU", "held together", "tokens out of order",
		},
	}
	for _, c := range cases {
		var overlaps, disorders int64
		for _, b := range c.bouts {
			overlaps, disorders = overlaps+b.overlaps, disorders+b.disorders
		}
		of := func(f func(bout) float64, digits int) string { return number(median(c.series(f)), digits) }
		out.row(c.name, c.kind, c.hold.String(),
			of(func(b bout) float64 { return b.rate }, 0), of(func(b bout) float64 { return b.longestMs }, 1),
			of(func(b bout) float64 { return b.p50Ms }, 2), of(func(b bout) float64 { return b.p99Ms }, 2),
			of(func(b bout) float64 { return b.fairness }, 3), of(func(b bout) float64 { return b.commands }, 2),
			of(func(b bout) float64 { return b.serverCPU }, 0), of(func(b bout) float64 { return b.clientCPU }, 0),
			fmt.Sprint(overlaps), fmt.Sprint(disorders))
		if c.kind == signalboxKind {
			contendedAims(out, c, float64(overlaps+disorders))
		}
	}
	return out
}

func contendedAims(out *section, c *contendedCase, faults float64) {
	where := fmt.Sprintf("%s, hold %v: ", c.name, c.hold)
	if c.hold > 0 {
		limit := 1.5 * contenders * float64(c.hold.Milliseconds())
		out.atMost(where+"longest wait, ms", limit, c.series(func(b bout) float64 { return b.longestMs }))
		// What the machine does to a sleeper, it does to one who waits: ten times over if it is the holder.
		out.know(where+"the longest hold in truth, ms", c.series(func(b bout) float64 { return b.keptMs }))
		out.know(where+"a hold in truth, ms", c.series(func(b bout) float64 { return b.heldMs }))
	}
	out.atMost(where+"max/min turns per client", 1.05, c.series(func(b bout) float64 { return b.fairness }))
	out.atMost(where+"commands sent per turn", 3, c.series(func(b bout) float64 { return b.commands }))
	out.atMost(where+"turns that overlapped or had a token out of order", 0, []float64{faults})
}

// run starts the clients, gives them a common time to begin, and sums up.
func (c *contendedCase) run(ctx context.Context, e effort) (bout, error) {
	config := contendedConfig{
		Kind: c.kind, Hold: c.hold, Window: e.Window, Name: fmt.Sprintf("contended %s %d", c.kind, time.Now().UnixNano()),
	}
	clients, on := 1, append(slices.Clone(e.cores.server), e.cores.client...)
	if c.server != nil {
		clients, on, config.Addr = contenders, e.cores.client, c.server.addr
		var err error
		if config.Shared, err = newSharedFile(); err != nil {
			return bout{}, err
		}
		defer removeShared(config.Shared)
	}
	processes := make([]*process, clients)
	for i := range processes {
		p, err := startRole(on, "contended", config)
		if err != nil {
			return bout{}, err
		}
		defer p.stop()
		processes[i] = p
	}
	var word string
	for _, p := range processes {
		if err := p.hear(&word); err != nil {
			return bout{}, err
		}
	}
	begin := time.Now().Add(startDelay + settleTime)
	for _, p := range processes {
		if err := p.tell(begin); err != nil {
			return bout{}, err
		}
	}
	return c.collect(ctx, config, processes, begin)
}

func newSharedFile() (string, error) {
	file, err := os.CreateTemp("", "signalbox-bench-witness-")
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(file.Truncate(int64(unsafe.Sizeof(witness{}))), file.Close())
}

func removeShared(path string) {
	_ = os.Remove(path) // what is left is in the system's folder for such things
}

// collect counts commands while the clients compete, and then hears them.
func (c *contendedCase) collect(
	ctx context.Context, config contendedConfig, processes []*process, begin time.Time,
) (bout, error) {
	var sent int64
	var serverCPU time.Duration
	var err error
	if c.server != nil {
		time.Sleep(time.Until(begin))
		serverCPU = c.server.process.cpu()
		sent, err = sentInWindow(ctx, backend{Addr: config.Addr}, c.kind, begin, config.Window)
		serverCPU = c.server.process.cpu() - serverCPU
	} else {
		err = processes[0].hear(&sent)
	}
	if err != nil {
		return bout{}, err
	}
	var results []contendedResult
	var faults [2]int64
	for _, p := range processes {
		var some []contendedResult
		if err := errors.Join(p.hear(&some), p.hear(&faults)); err != nil {
			return bout{}, err
		}
		results = append(results, some...)
	}
	b, err := sum(results, config.Window, sent, serverCPU)
	if c.server == nil {
		b.clientCPU /= contenders // every client reported the CPU of the one process
	}
	b.overlaps, b.disorders = faults[0], faults[1]
	return b, err
}

func sum(results []contendedResult, window time.Duration, sent int64, serverCPU time.Duration) (bout, error) {
	var waits []time.Duration
	var cpu, held, kept time.Duration
	turns, least, most := 0, results[0].Turns, 0
	for _, r := range results {
		if r.Faults != "" {
			return bout{}, errors.New(r.Faults)
		}
		waits = append(waits, r.Waits...)
		cpu, held, turns = cpu+r.CPU, held+r.Held, turns+r.Turns
		kept = max(kept, r.Kept)
		least, most = min(least, r.Turns), max(most, r.Turns)
	}
	if turns == 0 || len(waits) == 0 {
		return bout{}, errors.New("nobody had a turn")
	}
	slices.Sort(waits)
	n := float64(turns)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return bout{
		rate: n / window.Seconds(), commands: float64(sent) / n, fairness: float64(most) / max(float64(least), 1),
		longestMs: ms(waits[len(waits)-1]), p50Ms: ms(waits[len(waits)/2]), p99Ms: ms(waits[len(waits)*99/100]),
		heldMs: ms(held) / n, keptMs: ms(kept),
		serverCPU: float64(serverCPU.Microseconds()) / n, clientCPU: float64(cpu.Microseconds()) / n,
	}, nil
}
