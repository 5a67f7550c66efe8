package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The contended part of `make bench`: ten processes, one client each, take turns on one lock for a while. They start
// together, and what counts is the window after a short time to settle.

const contenders = 10

func measureContended(ctx context.Context, e effort, s *servers) (*section, error) {
	apart := &squad{on: e.cores.client}
	inside := &squad{on: append(slices.Clone(e.cores.server), e.cores.client...)}
	defer apart.stop()
	defer inside.stop()
	var matches []*match
	for _, hold := range []time.Duration{time.Millisecond, 0} {
		add := func(where, kind string, on *server, squad *squad) {
			matches = append(matches, &match{
				name: kind, where: where, kind: kind, server: on, squad: squad, hold: hold, window: e.Window,
				settle: settleTime, clients: contenders,
			})
		}
		add("Redis", signalboxKind, s.redis, apart)
		add("Redis", redsyncKind, s.redis, apart)
		add("Redis", redislockKind, s.redis, apart)
		add("engine", signalboxKind, s.engine, apart)
		add("engine in process", signalboxKind, nil, inside)
	}
	for range e.Rounds {
		for _, m := range matches {
			if err := m.play(ctx); err != nil {
				return nil, fmt.Errorf("contended: %w", err)
			}
			if len(m.faults) > 0 {
				return nil, fmt.Errorf("contended, %s on %s: %s", m.name, m.where, m.faults[0])
			}
		}
	}
	return contendedSection(matches), nil
}

func contendedSection(matches []*match) *section {
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
	for _, m := range matches {
		var overlaps, disorders int64
		for _, b := range m.bouts {
			overlaps, disorders = overlaps+b.overlaps, disorders+b.disorders
		}
		of := func(f func(bout) float64, digits int) string { return number(m.median(f), digits) }
		out.row(m.where, m.kind, m.hold.String(),
			of(func(b bout) float64 { return b.rate }, 0), of(func(b bout) float64 { return b.longestMs }, 1),
			of(func(b bout) float64 { return b.p50Ms }, 2), of(func(b bout) float64 { return b.p99Ms }, 2),
			of(func(b bout) float64 { return b.fairness }, 3), of(sentPerTurn, 2),
			of(func(b bout) float64 { server, _ := b.cpuPerTurn(); return server }, 0),
			of(func(b bout) float64 { _, clients := b.cpuPerTurn(); return clients }, 0),
			fmt.Sprint(overlaps), fmt.Sprint(disorders))
		if m.kind == signalboxKind {
			contendedAims(out, m, float64(overlaps+disorders))
		}
	}
	return out
}

func sentPerTurn(b bout) float64 { return b.perTurn(b.sent) }

func contendedAims(out *section, m *match, faults float64) {
	where := fmt.Sprintf("%s, hold %v: ", m.where, m.hold)
	if m.hold > 0 {
		limit := 1.5 * contenders * float64(m.hold.Milliseconds())
		out.atMost(where+"longest wait, ms", limit, m.series(func(b bout) float64 { return b.longestMs }))
		// What the machine does to a sleeper, it does to one who waits: ten times over if it is the holder.
		out.know(where+"the longest hold in truth, ms", m.series(func(b bout) float64 { return b.keptMs }))
		out.know(where+"a hold in truth, ms", m.series(func(b bout) float64 { return b.heldMs }))
	}
	out.atMost(where+"max/min turns per client", 1.05, m.series(func(b bout) float64 { return b.fairness }))
	out.atMost(where+"commands sent per turn", 3, m.series(sentPerTurn))
	out.atMost(where+"turns that overlapped or had a token out of order", 0, []float64{faults})
}
