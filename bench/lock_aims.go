package main

import (
	"strings"
	"time"

	"github.com/signalbox-io/signalbox"
)

// The aims of the design, over the matches of a part.

// find returns the one match that is like this; nil if it was not wanted.
func find(matches []*match, kind, where string, clients int, hold time.Duration) *match {
	for _, m := range matches {
		if m.kind == kind && m.where == where && m.clients == clients && m.hold == hold {
			return m
		}
	}
	return nil
}

// ratio divides round by round. A match that was not played has no rounds.
func ratio(above, below *match, of func(bout) float64) []float64 {
	if above == nil || below == nil {
		return nil
	}
	a, b := above.series(of), below.series(of)
	n := min(len(a), len(b))
	for i := range n {
		b[i] = max(b[i], 1e-9)
	}
	return ratiosOf(a[:n], b[:n])
}

func rateOf(b bout) float64 { return b.rate }

func uncontendedAims(out *section, matches []*match) {
	peers := []string{redsyncKind, redislockLinearKind, rueidislockKind, bookKind, bookLuaKind}
	inside := find(matches, signalboxKind, "engine in process", 1, 0)
	for _, placement := range []string{twoCores, sameCore} {
		where := "Redis" + placement
		ours := find(matches, signalboxKind, where, 1, 0)
		out.atLeast("uncontended, "+where+": rate, x two bare EVALSHA", 0.95,
			ratio(ours, find(matches, bareKind, where, 1, 0), rateOf))
		out.atMost("uncontended, "+where+": commands sent", 2, ours.series(sentPerTurn))
		on := "engine" + placement
		out.know("uncontended, "+on+": rate, x two bare EVALSHA", ratio(find(matches, signalboxKind, on, 1, 0),
			find(matches, bareKind, on, 1, 0), rateOf))
		var best *match
		for _, kind := range peers {
			if m := find(matches, kind, where, 1, 0); best == nil || m.median(rateOf) > best.median(rateOf) {
				best = m
			}
		}
		out.know("uncontended, "+where+": rate, x the best peer ("+best.name+")", ratio(ours, best, rateOf))
		out.atLeast("engine in process: rate, x the best peer on "+where+" ("+best.name+")", 20,
			ratio(inside, best, rateOf))
	}
}

func mutexAims(out *section, matches []*match) {
	for _, where := range []string{"Redis", "engine"} {
		switch matches[0].hold {
		case 0:
			tenWithoutHold(out, matches, where)
		case time.Millisecond:
			tenWithHold(out, matches, where)
		default:
			if m := find(matches, signalboxKind, where, 20, 10*time.Millisecond); m != nil {
				out.atMost(where+", 20 clients, hold 10ms: longest wait, ms", 1.3*200, m.series(longestOf))
			}
		}
	}
	neverBroken(out, matches)
}

func longestOf(b bout) float64 { return b.longestMs }

func tenWithoutHold(out *section, matches []*match, where string) {
	ours := find(matches, signalboxKind, where, 10, 0)
	if ours == nil {
		return
	}
	name := where + ", 10 clients, hold 0s: "
	// The book's lock is on Redis, whatever ours is on.
	out.atLeast(name+"rate, x the book's Lua lock", 1, ratio(ours, find(matches, bookLuaKind, "Redis", 10, 0), rateOf))
	out.atMost(name+"most acquires of a client, x least", 1.05, ours.series(func(b bout) float64 { return b.fairness }))
	out.atMost(name+"commands sent per acquire", 3, ours.series(sentPerTurn))
}

func tenWithHold(out *section, matches []*match, where string) {
	hold := time.Millisecond
	ours := find(matches, signalboxKind, where, 10, hold)
	if ours == nil {
		return
	}
	name := where + ", 10 clients, hold 1ms: "
	out.atLeast(name+"rate, x that of one client", 1, ratio(ours, find(matches, signalboxKind, where, 1, hold), rateOf))
	out.atMost(name+"longest wait, ms", 15, ours.series(longestOf))
	out.know(name+"a hold in truth, ms", ours.series(func(b bout) float64 { return b.heldMs }))
	out.know(name+"the longest hold in truth, ms", ours.series(func(b bout) float64 { return b.keptMs }))
	out.atMost(name+"CPU per acquire, x the book's Lua lock", 0.25,
		ratio(ours, find(matches, bookLuaKind, "Redis", 10, hold), func(b bout) float64 {
			server, clients := b.cpuPerTurn()
			return server + clients
		}))
}

// neverBroken is about all of Signalbox's matches together.
func neverBroken(out *section, matches []*match) {
	var broken []float64
	for _, m := range matches {
		if !strings.HasPrefix(m.kind, signalboxKind) {
			continue
		}
		for _, n := range m.faulty() {
			broken = []float64{n + median(broken)}
		}
	}
	out.atMost(out.Title+": locks of Signalbox that two had, or with tokens out of order", 0, broken)
}

func semaphoreAims(out *section, matches []*match) {
	for _, where := range []string{"Redis", "engine"} {
		name := where + ", semaphore of 5, 50 clients, hold 1ms: "
		ours := find(matches, signalboxSemaphore, where, semaphoreClients, time.Millisecond)
		// Two bare scripts are two round trips.
		roundTripMs := 500 / max(find(matches, bareKind, where, 1, 0).median(rateOf), 1)
		out.atLeast(name+"rate, x 5 / (hold in truth + a round trip)", 0.9, ours.series(func(b bout) float64 {
			return b.rate * (b.heldMs + roundTripMs) / 1000 / semaphoreLimit
		}))
		out.know(name+"a hold in truth, ms", ours.series(func(b bout) float64 { return b.heldMs }))
		out.atMost(name+"acquires over the limit", 0, ours.faulty())
	}
}

func crowdAims(out *section, matches []*match) {
	peer := find(matches, redsyncKind, "Redis", crowdSize, 0)
	for _, where := range []string{"Redis", "engine"} {
		ours := find(matches, signalboxHandoff, where, crowdSize, 0)
		out.atLeast(where+", 100 goroutines, LocalHandoff: rate, x redsync on Redis", 10, ratio(ours, peer, rateOf))
	}
	neverBroken(out, matches)
}

func patienceAims(out *section, matches []*match, patience time.Duration) {
	beat := signalbox.DefaultClaim / 3
	beats := patience.Seconds() / beat.Seconds()
	// Heartbeats are aligned, and one more or less can fall into the window.
	limit := 8.0/7 + 1/beats
	for _, m := range matches {
		if m.kind != signalboxKind {
			continue
		}
		out.atMost(m.where+", waiting: heartbeats and renewals per waiter and "+beat.String(), limit,
			m.series(func(b bout) float64 { return b.beats / waiters / beats }))
		out.atMost(m.where+", waiting: commands sent besides", 0, m.series(func(b bout) float64 { return b.sent - b.beats }))
	}
}
