package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A world is one history. Time is that of nobody's clock, from an origin; each client and the server reckon their own by it.
type world struct {
	random    *rand.Rand
	now       time.Duration
	events    events
	count     int
	server    *server
	resources []*resource
	clients   []*client
	claim     time.Duration
	ttl       time.Duration
	faultsEnd time.Duration // when the last fault begins,
	calm      time.Duration // and ends
	epoch     int           // counts what nobody can bear: memory lost, a clock set forward. What was granted before does not count
	forward   bool
	ids       int
	wrong     mutant
	trace     *strings.Builder // nil unless wanted
	failure   string
}

type resource struct {
	name  string
	limit int
	token int64            // the last
	fresh []int64          // of the last call
	known map[int64]bool   // tokens
	sure  map[string]int   // the epoch in which the server granted or renewed a lease last, by id
	alive map[string]*life // by id, those that may hold
}

// event is something that will happen. Of two at one time the one that was planned first is first.
type event struct {
	at     time.Duration
	number int
	do     func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = event{}
	*h = (*h)[:len(*h)-1]
	return last
}

// after plans something.
func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now + max(d, 0), w.count, do})
}

// origin is when histories begin.
const origin = 100 * time.Second

// play runs a history on a server, and returns what went wrong, and the trace if it is wanted.
func play(seed uint64, s *server, traced bool, wrong mutant) (failure, trace string) {
	w := &world{random: rand.New(rand.NewPCG(seed, 0)), now: origin, server: s, wrong: wrong}
	if traced {
		w.trace = &strings.Builder{}
	}
	s.begin(w)
	w.plan()
	for len(w.events) > 0 && w.failure == "" {
		next := heap.Pop(&w.events).(event)
		w.now = next.at
		if most := w.faultsEnd + 20*(w.ttl+w.claim+furthest); w.now > most {
			w.accuse("L5", "it goes on after %v", w.now-origin)
		}
		next.do()
	}
	if w.failure == "" {
		w.judgeEnd()
	}
	if traced {
		trace = w.trace.String()
	}
	return w.failure, trace
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%10.6f ", (w.now - origin).Seconds())
		fmt.Fprintf(w.trace, format+"\n", args...)
	}
}

// accuse notes the first promise that was broken.
func (w *world) accuse(promise, format string, args ...any) {
	if w.failure == "" {
		w.failure = promise + ": " + fmt.Sprintf(format, args...)
		w.note("%s", w.failure)
	}
}

// chance is true so often of a hundred times.
func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// between is a random span.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.random.Int64N(int64(max(most-least, 0))+1))
}
