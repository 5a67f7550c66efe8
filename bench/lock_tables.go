package main

import (
	"fmt"
	"time"
)

// matchTable has a row for each match, in their order.
func matchTable(title, note string, matches []*match) *section {
	out := &section{
		Title: title,
		Note: note + " Waits in ms, those that had not ended with the window included; share 1 is fair; CPU in % of a core. " +
			"Medians of the rounds; acquires with [lowest..highest].",
		Columns: []string{
			"clients", "where", "what", "acquires/s", "sent/acquire", "in scripts", "longest wait", "p50", "p99",
			"smallest share", "largest share", "server CPU", "client CPU", "broken", "errors",
		},
	}
	for _, m := range matches {
		if len(m.bouts) == 0 {
			out.row(fmt.Sprint(m.clients), m.where, m.name, "none", "", "", "", "", "", "", "", "", "", "", errorsOf(m))
			continue
		}
		of := func(digits int, f func(bout) float64) string { return number(m.median(f), digits) }
		out.row(fmt.Sprint(m.clients), m.where, m.name, spread(m.rates(), 0), of(2, sentPerTurn),
			of(1, func(b bout) float64 { return b.perTurn(b.inner) }), of(1, func(b bout) float64 { return b.longestMs }),
			of(2, func(b bout) float64 { return b.p50Ms }), of(2, func(b bout) float64 { return b.p99Ms }),
			of(2, func(b bout) float64 { return b.smallest }), of(2, func(b bout) float64 { return b.largest }),
			of(0, func(b bout) float64 { return b.serverCores * 100 }),
			of(0, func(b bout) float64 { return b.clientCores * 100 }), brokenOf(m), errorsOf(m))
	}
	return out
}

// brokenOf tells whether the lock was one.
func brokenOf(m *match) string {
	var overlaps, disorders int64
	var turns, over, peak int
	for _, b := range m.bouts {
		overlaps, disorders = overlaps+b.overlaps, disorders+b.disorders
		turns, over, peak = turns+b.turns, over+b.over, max(peak, b.peak)
	}
	switch {
	case m.kind == bareKind:
		return ""
	case m.limit > 0 && over > 0:
		return fmt.Sprintf("%d (%.1f %%), up to %d of %d", over, 100*float64(over)/float64(max(turns, 1)), peak, m.limit)
	case overlaps+disorders > 0:
		return fmt.Sprintf("%d shared, %d tokens out of order", overlaps, disorders)
	}
	return "0"
}

func errorsOf(m *match) string {
	if len(m.faults) == 0 {
		return ""
	}
	return fmt.Sprintf("%d: %s", len(m.faults), m.faults[0])
}

// waitingTable is about what is sent while nothing changes.
func waitingTable(matches []*match, patience time.Duration) *section {
	out := &section{
		Title: fmt.Sprintf("What waiting costs: %d processes wait for %v for a lock that is held", waiters, patience),
		Note: "Commands while nothing changes, renewals of the holder included. A waiter of Signalbox says once in a while " +
			"that it still lives, and nothing else. CPU in % of a core.",
		Columns: []string{
			"where", "what", "commands sent", "in scripts", "per waiter and second", "server CPU", "client CPU", "errors",
		},
	}
	for _, m := range matches {
		if len(m.bouts) == 0 {
			out.row(m.where, m.name, "none", "", "", "", "", errorsOf(m))
			continue
		}
		sent := m.median(func(b bout) float64 { return b.sent })
		out.row(m.where, m.name, count(sent), count(m.median(func(b bout) float64 { return b.inner })),
			number(sent/waiters/patience.Seconds(), 2),
			number(m.median(func(b bout) float64 { return b.serverCores * 100 }), 1),
			number(m.median(func(b bout) float64 { return b.clientCores * 100 }), 1), errorsOf(m))
	}
	return out
}
