package main

import (
	"slices"
	"time"
)

// The arithmetic of turns: what one client notes, and what all of them say together.

// turns is what one client found in the window.
type turns struct {
	Count   int
	Waits   []time.Duration // of the turns that began in the window, and what it still waited for when that ended
	Held    time.Duration   // sum over the turns,
	Longest time.Duration   // and the longest
	Over    int             // turns with more holders than the limit
	Peak    int             // most holders seen
	Fault   string          // why it stopped early
}

// window is the time that counts.
type window struct{ begin, end time.Time }

func (w window) has(t time.Time) bool { return !t.Before(w.begin) && t.Before(w.end) }

// note takes down a turn: asked for, got, and given back. All of its wait counts, also what was before the window:
// whoever waits since then waits that long. One that was got after the window is waited for to the window's end.
func (t *turns) note(w window, asked, got, back time.Time) {
	switch {
	case !got.Before(w.end):
		t.unfinished(w, asked)
	case w.has(got):
		t.Count++
		t.Waits = append(t.Waits, got.Sub(asked))
		t.Held += back.Sub(got)
		t.Longest = max(t.Longest, back.Sub(got))
	}
}

// unfinished takes down an acquire that was still waiting when the window ended. It would have waited longer.
func (t *turns) unfinished(w window, asked time.Time) {
	if asked.Before(w.end) {
		t.Waits = append(t.Waits, w.end.Sub(asked))
	}
}

// shares are how much of its fair part the least and the most favoured client had: 1 is fair.
func shares(counts []int) (smallest, largest float64) {
	all := 0
	for _, n := range counts {
		all += n
	}
	if all == 0 {
		return 0, 0
	}
	fair := float64(all) / float64(len(counts))
	return float64(slices.Min(counts)) / fair, float64(slices.Max(counts)) / fair
}

// quantile is of sorted values; q is from 0 to 1.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*q), len(sorted)-1)]
}

// processReport is what a process of contestants says after a bout.
type processReport struct {
	Clients             []turns
	CPU                 time.Duration // in the window
	Calls               calls         // of an engine in process
	Overlaps, Disorders int64
}

// bout is one run of one case, over all clients.
type bout struct {
	turns                       int
	rate                        float64 // turns per second
	sent, inner                 float64 // commands in the window, from clients and from scripts
	beats                       float64 // scripts among the sent; the first call of each is an EVAL
	smallest, largest, fairness float64 // shares; most turns of a client over least
	longestMs, p50Ms, p99Ms     float64
	heldMs, keptMs              float64 // a hold in truth, and the longest
	serverCores, clientCores    float64 // CPU time per time
	overlaps, disorders         int64
	over, peak                  int // semaphores: turns with too many holders, and the most at once
	fault                       string
}

func (b bout) perTurn(v float64) float64 { return v / max(float64(b.turns), 1) }

// cpuPerTurn is in microseconds, of the server and the clients.
func (b bout) cpuPerTurn() (server, clients float64) {
	if b.rate == 0 {
		return 0, 0
	}
	return b.serverCores / b.rate * 1e6, b.clientCores / b.rate * 1e6
}

func sum(reports []processReport, length time.Duration, delta calls, kind string, serverCPU time.Duration) bout {
	var b bout
	var waits []time.Duration
	var counts []int
	var cpu, held, kept time.Duration
	for _, r := range reports {
		cpu += r.CPU
		// The witness is shared memory: what one process reads last is what all saw.
		b.overlaps, b.disorders = max(b.overlaps, r.Overlaps), max(b.disorders, r.Disorders)
		for _, t := range r.Clients {
			waits, counts = append(waits, t.Waits...), append(counts, t.Count)
			b.turns += t.Count
			held, kept = held+t.Held, max(kept, t.Longest)
			b.over, b.peak = b.over+t.Over, max(b.peak, t.Peak)
			if t.Fault != "" {
				b.fault = t.Fault
			}
		}
	}
	slices.Sort(waits)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.rate = float64(b.turns) / length.Seconds()
	b.sent, b.inner, b.beats = float64(delta.sent(kind)), float64(delta.inner(kind)), float64(delta["evalsha"]+delta["eval"])
	b.smallest, b.largest = shares(counts)
	if len(counts) > 0 {
		b.fairness = float64(slices.Max(counts)) / max(float64(slices.Min(counts)), 1)
	}
	b.longestMs, b.p50Ms, b.p99Ms = ms(quantile(waits, 1)), ms(quantile(waits, 0.5)), ms(quantile(waits, 0.99))
	b.heldMs, b.keptMs = b.perTurn(ms(held)), ms(kept)
	b.serverCores, b.clientCores = serverCPU.Seconds()/length.Seconds(), cpu.Seconds()/length.Seconds()
	return b
}
