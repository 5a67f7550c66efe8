package main

import (
	"fmt"
	"slices"
	"strconv"
)

// A row is one number of both servers, pair by pair, and what is wanted of it.

// wish is what is wanted: of the ratio, engine to Redis, or of the engine's own number.
type wish struct {
	text string // empty: just to know
	own  bool
	met  func(float64) bool
}

var justKnow = wish{}

func ratioAtLeast(bound float64) wish {
	return wish{"≥ " + number(bound, 2) + " ×", false, func(v float64) bool { return v >= bound }}
}

func ratioAtMost(bound float64) wish {
	return wish{"≤ " + number(bound, 2) + " ×", false, func(v float64) bool { return v <= bound }}
}

func ownAtMost(bound float64, unit string) wish {
	return wish{fmt.Sprintf("≤ %g %s", bound, unit), true, func(v float64) bool { return v <= bound }}
}

type engineRow struct {
	what, unit string
	digits     int
	values     both
	want       wish
	pairs      int    // that are whole
	fault      string // of a pair that is not
}

func (t *engineTest) row(what, unit string, digits int, want wish) *engineRow {
	r := &engineRow{what: what, unit: unit, digits: digits, values: both{}, want: want}
	t.rows = append(t.rows, r)
	return r
}

func (r *engineRow) add(server string, value float64) { r.values.add(server, value) }

// align ends a pair; one that failed is dropped. A row may be of the engine alone.
func (r *engineRow) align(failed error) {
	if failed == nil {
		r.pairs = len(r.values[engineName])
		return
	}
	r.fault = failed.Error()
	for _, server := range []string{redisName, engineName} {
		r.values[server] = r.values[server][:min(r.pairs, len(r.values[server]))]
	}
}

// isPaired says that no server has been measured of the next pair.
func (r *engineRow) isPaired() bool { return len(r.values[redisName]) == len(r.values[engineName]) }

func (r *engineRow) alone() bool { return len(r.values[redisName]) == 0 }

// last is what the last pair found, for the eyes of who waits.
func (r *engineRow) last() string {
	ours := r.values[engineName]
	if len(ours) == 0 {
		return r.unit + " -"
	}
	text := number(ours[len(ours)-1], r.digits) + " " + r.unit
	if r.alone() {
		return text
	}
	theirs := r.values[redisName]
	return fmt.Sprintf("%s, Redis %s", text, number(theirs[len(theirs)-1], r.digits))
}

// tell adds the row to the table, and what was wanted to the aims.
func (r *engineRow) tell(out *section) {
	name := r.what + ": " + r.unit
	redis, ours := r.values[redisName], r.values[engineName]
	if len(ours) == 0 {
		out.row(r.what, r.unit, "-", "-", "-", "-", "0", r.want.text, "not measured: "+r.fault)
		if r.want.text != "" {
			out.aim(name, r.want.text, nil, r.want.met)
		}
		return
	}
	left, middle, span := "-", "-", "-"
	judged := ours
	if !r.alone() {
		ratios := r.values.ratios()
		left, middle = number(median(redis), r.digits), number(median(ratios), 2)
		span = number(slices.Min(ratios), 2) + ".." + number(slices.Max(ratios), 2)
		if !r.want.own {
			judged = ratios
		}
	}
	verdict := ""
	if r.want.text != "" {
		out.aim(name, r.want.text, judged, r.want.met)
		verdict = "MISS"
		if out.Aims[len(out.Aims)-1].Pass {
			verdict = "pass"
		}
	}
	out.row(r.what, r.unit, left, number(median(ours), r.digits), middle, span, strconv.Itoa(len(ours)), r.want.text, verdict)
}

func engineSection() *section {
	return &section{
		Title: "The engine beside Redis",
		Note: "Medians of pairs, one server after the other, in turn, each alone on its core; ratio is the engine's to " +
			"Redis's, pair by pair. µs CPU are of the server, user and system, for an operation. Bytes are resident memory " +
			"more than before, divided by the items. \"Worst PING beside\" is the longest of 5,000 a second while the " +
			"command runs, from the moment at which it was due.",
		Columns: []string{"what", "unit", "Redis", "engine", "ratio", "lowest..highest", "pairs", "wanted", ""},
		InRows:  true,
	}
}

// engineReasons say why rows miss; keys as those of reasons.
var engineReasons = map[string]string{
	"*: p99 ms": "connections that are ready are served in rounds, each once, as on Redis; what makes a round longer here was not " +
		"looked for: the collector at work is a guess. Tried: an event loop instead of a goroutine for each connection, since Go's poller " +
		"hands out last first what is ready (kept: p99 of SET in pipelines of 16 from 2.1 times Redis's to 0.9, of GET from 2.0 to 1.0, " +
		"at one request per packet from 1.2 to 0.9); read and write without the scheduler's bookkeeping (p99 of GET at -P 1 from 1.34 to " +
		"0.91 ms, kept); a smaller share for the collector (nothing for GET, which makes no garbage).",
	"*-P 1: µs CPU":  singleReason,
	"*-P 1: op/s":    singleReason,
	"*-P 16: µs CPU": pipelineReason,
	"*-P 16: op/s":   pipelineReason,
	"EVALSHA":        scriptReason,
	"PING -P 16":     wayReason, "LPUSH -P 16": wayReason, "RPUSH -P 16": wayReason, "LPOP -P 16": wayReason, "RPOP -P 16": wayReason,
	"engine.Do GET, GOMAXPROCS goroutines; on the left": lockReason,
	"engine.Do SET, GOMAXPROCS goroutines; on the left": lockReason,
	"ledger acquire and release in process": "a cycle is about 26 µs, of which the library and the call are more than a third and the " +
		"interpreter the rest; the aim leaves 8 µs beside a peer on another core, and 3 beside one on the same. Tried: a cheaper bridge " +
		"between scripts and commands (33 to 28 µs, kept); globals as constants and variables in registers (28.5 to 25.6 µs, kept); " +
		"the slow lane as one function (kept); no context in the interpreter (3 to 6 %, rejected: loops would pay). Acquire and release " +
		"in Go, known by their SHA1, would be the same logic twice and just reach the first.",
	"memory, 1000000 strings": "key, entry and object are three allocations, where Redis has the value within its object, too, and " +
		"garbage that the collector has not taken yet is in the figure. Tried: text or number within the object, without a pointer " +
		"(kept: keys and values of 16 bytes from 139 to 105 for Redis's 124, values of 3 to 64 from 164 to 119 for 138, integers from 131 " +
		"to 88 for 91); a fixed share for the collector (142 to 140), a share by cost (no change), one copy of a key that expires (kept). " +
		"Not tried: the key within the object.",
	"memory, 100000 small": "the packed row is as small as Redis's, and 24 bytes of header lead to it (32 of a list); the rest is key, object " +
		"and entry, and a twelfth for the collector's own tables. Tried: packed rows (hashes from 5.3 times to 1.31, sorted sets " +
		"from 7.6 to 1.56; kept), a row as long as the first command needs, arguments copied once, headers of half the size, a " +
		"list of one chunk without a directory, changes in place where nobody has looked (all kept: hashes from 395 to 327, lists " +
		"from 353 to 253, sorted sets from 306 to 245); no room for more in a row that grows (16 bytes less for hashes filled field by " +
		"field, for a seventh more time; rejected); header and row in one allocation (by count 8 bytes less for hashes and 8 more " +
		"for sorted sets; rejected); garbage that goes at rest (kept), a fixed share for the collector (345 for 357).",
	"1000000 keys expire": "ticks that expire keys run for 2 ms and rest for one. The wait was memory going back to the system in one " +
		"call, 25 ms on the only processor, after a collection in the midst of it, which had the rest of the keys to read. Tried: giving " +
		"back in parts of 2 MB (kept), not before deletions rest (kept): the longest wait with a core to itself went from 25 to 8 ms, " +
		"where Redis has 29; what is left is sweeping. A second GOMAXPROCS meanwhile was rejected: the system's turns are 4 to 8 ms.",
	"SORT list ALPHA": "a look at each element, 24 ms of the engine's time where Redis takes 790. Tried: ranks that are numbers without " +
		"pointers (kept), the first eight bytes of a text as such a number (kept), dropping what is not among the first (kept).",
	"SUNIONSTORE": "a copy of the table, 32 ms of the engine's time where Redis takes 550. Tried: no " +
		"second set to see what is new (kept), no hashing (kept), texts that are shared (kept).",
	"one client, set, same core": sameCoreReason, "one client, get, same core": sameCoreReason,
	"DEL ": freeReason, "UNLINK ": freeReason, "FLUSHALL ": freeReason,
	"a table grows": "the collector's marking: on one processor Go marks either in a second thread while the loop waits, and the loop, when " +
		"it is woken, has to get the core back from it, or, if the loop does not wait, for a quarter of the time in turns that are a " +
		"twelfth as long as it has been at it (Go's fractional worker; at most 10 ms). Seen in gctrace: the longest answers were those " +
		"of each collection, and grew with the heap, from 4 to 29 ms at 1,500,000 keys where the system did not preempt. " +
		"Tried: a loop that holds its processor while it waits briefly, so that " +
		"marking comes in turns (from 29 to 9 ms there, kept); a loop that looks again and again instead of waiting (9 ms, no better); no " +
		"collection at all (GOGC=off: that series is gone, two stalls of 9 and 10 ms beside one of 29 are there, not explained). The " +
		"turns are the runtime's own; less to mark would help: keys and values in fewer allocations.",
}

const (
	wayReason = "there is next to nothing to do but to parse and to answer, a microsecond in all. Tried: no copy of requests " +
		"and replies (kept), buffers lent for a batch (kept), the calls to the system without bookkeeping (kept), an event loop, whose replies " +
		"are written when a round has run (kept)."
	singleReason = "read and write, which both servers call, are most of it; beside them the loop waits in epoll_wait as Redis does, and yields " +
		"the processor once a round if it is the only one (160 ns). Tried: an event loop instead of a goroutine for each connection, which cost a switch for each " +
		"batch (kept); read and write without the scheduler's bookkeeping (a tenth of the time, kept); buffers lent for a batch (kept)."
	pipelineReason = "in pipelines the keys' places in memory decide: of INCR, 30 % was the look-up. Tried: entries in pages, linked by " +
		"position (kept); the hash beside each entry, so that keys are compared once (kept); replies and requests without a copy or an " +
		"allocation (kept); a string in one piece with its object, a number as a number, INCR and SET where the value is (kept: a line of " +
		"the cache less, no digits to read, and no garbage); an event loop (kept: SET and GET from 0.80 and 0.78 times Redis's rate to 1.12 " +
		"and 1.02). Not tried: to touch the keys of a whole batch ahead."
	sameCoreReason = "with one P, Go's monitor took it away from the loop while that waited in epoll_wait, as soon as others wanted the core: " +
		"three switches between threads for a request instead of one. With two others on the core the CPU time was 19.8 µs for Redis's 12.3, the " +
		"rate 0.49 times; with none 10.2 for 10.4, and 1.0. Tried: a wait of 50 or 100 µs that the runtime does not know of " +
		"(23 µs: setting a timer costs that on a virtual machine, rejected); sched_yield and another look (9.7 µs, but half of Redis's rate beside " +
		"others, rejected); to look once before waiting (no change alone, kept); to hold the P while waits are brief, with one tick a millisecond as " +
		"the bound (13.3 µs, and 1.07 times Redis's rate, beside two others; kept)."
	scriptReason = "the scripts run in an interpreter written in Go. Tried: the functions of a script made when it is loaded, not in each run " +
		"(kept: transitions of the slow lane in 0.54 to 0.67 of the time, 47 allocations for 150); globals as constants of its code, and " +
		"what the fast lane uses in registers until the slow one begins (kept: the fast lane in 0.71 of the time); a cheaper bridge to " +
		"commands (9 to 14 % of the fast lane, kept); functions made only when needed (12 % on Redis, kept); no context in the interpreter (3 " +
		"to 6 %, rejected: loops would pay). Where p99 misses it is the collector, at whose work rounds are longer. Without it p99 of " +
		"release went from 2.1 times Redis's to 1.5; with a third of the garbage, as it is now, it is 0.9 to 1.7."
	lockReason = "one lock is the order of all commands, and a call in process is little else than its command, so that what the lock guards " +
		"goes from one core's cache to the other's with each call. Decoding outside the lock and copying once are kept. Tried: to spin before " +
		"parking (GET with two goroutines 0.61 to 0.79 times one, where it was 0.82 to 0.88; rejected); calls in a queue without a lock, which " +
		"whoever has the lock runs (0.54 to 0.63; rejected); the same, where who waits looks at the lock seldom (0.98 to 1.11, SET 0.76 to 1.01, " +
		"with the other core spinning all the while; rejected). A lock for each database or slot would end the one order that transactions, " +
		"scripts and blocking rest on."
	freeReason = "the command itself only drops a pointer (0.1 to 0.3 ms; 1 ms with a processor that others want). What holds others up is " +
		"one collection with its sweeping, 3 to 4 ms for 87 MB of dead sorted set where the system does not preempt. Tried: giving back in parts of 2 MB " +
		"with rests between them (longest wait from 11.8 to 2.2 ms, kept); no further collection meanwhile (there was one every 10 ms, which " +
		"held others up for 2 ms each: these are gone, kept); loops that look again and again while the collection runs (3.3 ms for 2.9, no better); " +
		"a loop that holds its processor while it waits (3.2 for 3.2, kept for another reason); a second GOMAXPROCS for that long (8 ms: the " +
		"system's turns), for good (a tenth to a fifth of the throughput of pipelines); a thread of its own with the lowest priority (not " +
		"built: it may hold the runtime's locks). Sweeping is the runtime's own."
)
