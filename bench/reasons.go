package main

import (
	"slices"
	"strings"
)

// reasons says why aims are missed, as far as it is known. A key is the beginning of what an aim is about, or, behind a
// star, its end; the longest that fits is taken.
var reasons = map[string]string{
	"uncontended, Redis": "an acquire and its release run 13 commands in their scripts, for the queue, the fencing token " +
		"and the expiry; a bare script runs none, and the peers' two to four. The server's time for them is what is missing, " +
		"and it weighs more where the round trip is shorter.",
	"engine in process: rate": "two bare EVALSHA in process, in the row above, bound it: without a network what is left is " +
		"the client library, the protocol and the interpreter, and then the 13 commands of the two scripts.",
	"Redis, 10 clients, hold 1ms: rate":     handoffReason,
	"engine, 10 clients, hold 1ms: rate":    handoffReason,
	"Redis, 10 clients, hold 1ms: CPU":      contendedCPUReason,
	"engine, 10 clients, hold 1ms: CPU":     contendedCPUReason,
	"Redis, 10 clients, hold 1ms: longest":  longestReason,
	"engine, 10 clients, hold 1ms: longest": longestReason,
	"Redis, semaphore of 5":                 semaphoreReason,
	"engine, semaphore of 5":                semaphoreReason,
}

const (
	handoffReason = "one client goes on by itself after its release; of ten, another process has to hear that it is its " +
		"turn and to be woken on the clients' core, which is two steps of the scheduler for each acquire."
	contendedCPUReason = "an acquire that waits, with its release and the handoff, runs 40 commands in scripts and wakes a " +
		"process; that is the server's and the client's share of each turn, however long the others wait. Pollers pay by " +
		"waiting time instead: the longer the hold and the queue, the better the comparison becomes."
	longestReason = "the aim is ten turns of 1.5 ms. A hold takes 1.04 ms in truth and a handoff a third of one, which is 14 ms for " +
		"ten; the rest is the scheduler's, once in the window: see the longest hold in truth, of clients that wanted 1 ms."
	semaphoreReason = "a permit that is given back is on its way for longer than the round trip that the aim allows: the " +
		"release runs the handoff in its script, and one of 50 processes on the clients' cores has to be woken."
)

// explain gives every miss its reason.
func (r *report) explain(reasons map[string]string) {
	for _, s := range r.Sections {
		for i := range s.Aims {
			a := &s.Aims[i]
			if a.Aim == "" || a.Pass {
				continue
			}
			a.Reason = nearest(a.What, reasons)
		}
	}
}

// nearest is the reason with the longest key that fits.
func nearest(what string, reasons map[string]string) string {
	reason, best := "not explained yet", 0
	for key, text := range reasons {
		fit := 0
		if end, ok := strings.CutPrefix(key, "*"); ok && strings.HasSuffix(what, end) {
			fit = len(end)
		} else if strings.HasPrefix(what, key) {
			fit = len(key) + len(what)
		}
		if fit > best {
			reason, best = text, fit
		}
	}
	return reason
}

// missed are aims that are missed for the same reason.
type missed struct {
	reason string
	what   []string
}

// misses are in the order of the first aim of each reason.
func (s *section) misses() (all []missed) {
	for _, a := range s.Aims {
		if a.Reason == "" {
			continue
		}
		at := slices.IndexFunc(all, func(m missed) bool { return m.reason == a.Reason })
		if at < 0 {
			all, at = append(all, missed{reason: a.Reason}), len(all)
		}
		all[at].what = append(all[at].what, a.What)
	}
	return all
}

// durabilityReasons are those of the subcommand durability.
var durabilityReasons = map[string]string{
	"SET, everysec, 50 clients, -P 1": "the log is written once for each round of an event loop, as by Redis, but through a lock and " +
		"a turn to be taken, for there may be several loops. What that costs was not measured; with a goroutine for each connection, which " +
		"committed for itself, it was the switches.",
	"loading the append-only file": "each request runs as a command of its own, and the index of the keys grows step by step " +
		"beside it: nobody knows beforehand how many there will be, as a snapshot says. In a profile the index is a third.",
	"GET during a snapshot: rate": "the snapshot has a third of the core while clients want something. Two processes of Redis " +
		"share a core by halves; if others want it too, they have two parts of it and the engine one.",
}
