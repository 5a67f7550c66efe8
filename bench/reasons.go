package main

import (
	"slices"
	"strings"
)

// reasons says why aims are missed, as far as it is known. A key is the beginning of what an aim is about, or, behind a
// star, its end; the longest that fits is taken.
var reasons = map[string]string{
	"uncontended, Redis": "an acquire and its release run 6 commands in their scripts, for the server's time, the fencing " +
		"token and the expiry; a bare script runs none, and the peers' two to four. The server's time for them is what is missing, " +
		"and it weighs more where the round trip is shorter.",
	"engine in process: rate": "two bare EVALSHA in process, in the row above, bound it: without a network what is left is " +
		"the client library, the protocol and the interpreter, and then the 6 commands of the two scripts.",
	"Redis, 10 clients, hold 0s: rate":      orderReason,
	"engine, 10 clients, hold 0s: rate":     orderReason,
	"Redis, 10 clients, hold 1ms: rate":     handoffReason,
	"engine, 10 clients, hold 1ms: rate":    handoffReason,
	"Redis, 10 clients, hold 1ms: CPU":      contendedCPUReason,
	"engine, 10 clients, hold 1ms: CPU":     contendedCPUReason,
	"Redis, 10 clients, hold 1ms: longest":  longestReason,
	"engine, 10 clients, hold 1ms: longest": longestReason,
	"Redis, semaphore of 5":                 semaphoreReason,
	"engine, semaphore of 5":                semaphoreReason,
	"Redis, waiting: commands":              firstRenewalReason,
	"engine, waiting: commands":             firstRenewalReason,
	"a mutex held, beside redislock's": "a key of redislock holds 22 random bytes. The line of a mutex has the fencing token, the " +
		"limit, who holds it since when and until when, and in which process; it is a field of a hash, since a second lease or a " +
		"waiter makes more of it.",
}

const (
	orderReason = "in strict order each turn goes to another process, which has to be woken. Who releases the Lua lock takes it " +
		"again at once if nobody is quicker, so its shares differ and ours do not."
	handoffReason = "one client goes on by itself after its release; of ten, another process has to hear that it is its " +
		"turn and to be woken on the clients' core, which is two steps of the scheduler for each acquire."
	contendedCPUReason = "an acquire that waits, with its release and the handoff, runs 16 commands in scripts and wakes a " +
		"process; that is the server's and the client's share of each turn, however long the others wait. Pollers pay by " +
		"waiting time instead: the longer the hold and the queue, the better the comparison becomes."
	longestReason = "the aim is ten turns of 1.5 ms. A hold takes 1.04 ms in truth and a handoff a third of one, which is 14 ms for " +
		"ten; the rest is the scheduler's, once in the window: see the longest hold in truth, of clients that wanted 1 ms."
	semaphoreReason = "a permit that is given back is on its way for longer than the round trip that the aim allows: the " +
		"release runs the handoff in its script, and one of 50 processes on the clients' cores has to be woken."
)

const firstRenewalReason = "the holder's first renewal: a script that the server does not know yet is sent whole, by EVAL after EVALSHA."

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
	"SET, everysec, 50 clients, -P 1:": everySecondReason,
	"SET, always, 50 clients, -P 1:":   alwaysReason,
	"SET, always, 1 client, -P 1:":     aloneReason,
	"loading the append-only file": "each request runs as a command of its own, and the index of the keys grows step by step " +
		"beside it: nobody knows beforehand how many there will be, as a snapshot says. In a profile the index is a third.",
	"GET during a snapshot: p99.9": snapshotReason,
	"GET during a snapshot: rate": "the snapshot has a third of the core while clients want something. Two processes of Redis " +
		"share a core by halves; if others want it too, they have two parts of it and the engine one.",
}

// What was tried stands with each, and what it gave: A/B on one core at real-time priority, medians.
const (
	alwaysReason = "a sync is a call that takes long enough for Go's scheduler to give the processor to another thread, and to take it " +
		"back afterwards. Tried: the loop commits itself, not a goroutine in its place (processor time 1.5 times Redis's before, 1.04 to 1.09 after; " +
		"rate 0.55 to 0.75 before, 0.9 to 1.0 after; it stayed); fdatasync without the scheduler's bookkeeping (0.9 times Redis's time; a disk that hangs " +
		"would hang the whole process); the kernel syncs, and says when it has (0.86 times the time, but half the rate where others " +
		"want the processor, since a thread of the kernel has to have its turn)."
	aloneReason = "what one client waits for is the disk; of the processor's time a fifth to a third more than Redis's goes to threads of Go's scheduler " +
		"that look after a call that takes long, twice for each request: the sync, and waiting for the next one. Tried: the loop commits itself (1.3 to " +
		"1.5 times before, 1.2 to 1.3 after; it stayed); fdatasync without the scheduler's bookkeeping (1.0 times, and a disk that hangs would hang the whole " +
		"process); the loop parked in Go's poller (1.15 times, within the noise); the kernel syncs (0.8 times, and 0.6 times the rate)."
	everySecondReason = "once a second the log is synced; a window of the short form is shorter, and has one sync or none. Between syncs the " +
		"processor's time is Redis's (0.97 to 1.03 times). Tried: the sync by the kernel, so that it does not keep the only processor from " +
		"clients (a goroutine beside it stands still for 0.4 ms instead of 3.4; it stayed); the loop parked in Go's poller (1.04 times the time; no); " +
		"no new channel for each commit (no difference; no)."
	snapshotReason = "the window is short: one moment in which all 50 clients wait is more than a thousandth of its requests. Three were in a trace: " +
		"the sync of the file and that of its folder, which kept the only processor for 12 ms (now the kernel's, beside clients); the first turn of " +
		"the snapshot, of 4 ms (now 1 ms); the collector's, of 4 to 7 ms on a busy machine (as before)."
)

// queueReasons are those of the subcommand queue. What was tried stands with each, in processor time of the server.
var queueReasons = map[string]string{
	"enqueue, one by one, a producer": "a job by itself is a script of 11 commands; a bare script runs none, and asynq's three. Tried: a lane that makes no " +
		"functions (38 to 23 µs a call, kept; a bare script takes 10.5). See docs/decisions/037.",
	"enqueue, batches of 100 from one producer": "a producer makes one call at a time, so that its own time for a job (1.5 µs) and the server's (4.3) come one " +
		"after the other; asynq's ten goroutines have the server run while they get ready. So a third of asynq's 12.8 µs is for both, and a job is two " +
		"entries and ten words on the server. Tried: a batch is copied once (5.0 to 4.1 KB a job enqueued and run, kept).",
	"1,000 keys limited to two": "a key has a lane of its own, so a job by itself is looked for, and its lane and its key change their places in the index and " +
		"the counts: 98 commands a call where 50 jobs of one lane take 43, and 25 µs a job of the server for 7. See docs/decisions/037.",
	"enqueue to start, idle worker": "the call that enqueues also finds the worker, claims for it and tells it: 25 commands, in a lane of its own, and then a " +
		"message has to wake the worker's process.",
	"one worker process: jobs/s": "processor time a job, in the rows below, says what a machine of one's own would give: server and worker each have a core. Tried: " +
		"half of the slots a call, so that both are busy at once (a fifth more on a machine that others use, within its noise; kept).",
	"one worker process: µs CPU": "a call is about 44 commands, 1 µs a job where it moves 50; the rest is a job's own: entries in 3 keys, written and removed, and " +
		"its words in and out. Tried: one link for what is claimed at once, and fewer words (7.5 to 6.3 µs a job, kept); a library of functions would save " +
		"0.3. See docs/decisions/037.",
	"enqueue, one by one, ten goroutines": "the goroutines share calls, of up to ten jobs, and each call has its fixed part, as above. Tried: whoever was answered may " +
		"join the next call before it is made (0.21 to 0.11 calls a job, kept).",
	"100000 delayed": "a call that finds jobs due takes in 100 of them. On a machine that others use a single ZRANGEBYLEX was seen to take 13 ms, so that a long " +
		"reply says little there: see who sends the PINGs.",
	"10,000 agents log in": "a log-in is two calls, so that one that comes late claims nothing. Tried: no look for lanes where there are none (a seventh " +
		"less, kept), 16 calls at once of a program instead of all (a third of its own time less, kept), and up to 32 of those that wait for their turn in one " +
		"(298 to 125 µs of the server, 191 to 69 of the program, on a machine that others use, kept). See docs/decisions/037.",
	"call ended to the next one offered": "one call ends the first and brings the second: 53 commands, 142 µs of the server. Then a handler, a worker and whoever " +
		"reads its offers are woken in turn. Tried: no look for workers without a rank (a hundred records a call less, kept).",
	"outbox, a transaction a job": "a transaction costs PostgreSQL 110 µs with the relay, and River's 161, which nobody relays; Redis has 10 more, on the same core. " +
		"Tried: jobs gather for 5 to 10 ms (0.08 to 0.02 calls a job, 169 to 110 µs of PostgreSQL, kept). See docs/decisions/039.",
	"outbox, transactions of 100": "a job costs PostgreSQL 5 µs with the relay, and River's 9; Redis has 5 more, and the program twice River's time, since it relays " +
		"what River leaves to its workers. Tried: rows of several jobs (8 to 5 µs, 278 to 80 bytes of its log, kept), a fast lane for the relay's calls (7 to 5 µs " +
		"of Redis, kept). See docs/decisions/039.",
	"ten worker processes": "a worker takes what it has room for, so shares are as even as the turns that the scheduler gives ten processes on one core; calls " +
		"are smaller than those of one process, and each has its fixed part.",
}
