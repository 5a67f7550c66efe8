package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// The fast lanes of enqueue.lua leave what the rest of it leaves. Two queues get the same calls, one of them without the
// lanes, and after each call they must have given the same answer and messages and have the same keys with the same expiry.

// without has the enqueues of a lab go without fast lanes.
type without struct{ *lab }

var withoutLanes = newScript(strings.Replace(enqueueText, "local fast = ", "local fast = false and ", 1))

func (w without) Do(ctx context.Context, command transport.Command) (any, error) {
	switch command.Words[1] {
	case enqueueScript.digest:
		command.Words[1] = withoutLanes.digest
	case enqueueScript.text:
		command.Words[1] = withoutLanes.text
	}
	return w.lab.Do(ctx, command)
}

// twins are two queues that are called alike.
type twins struct {
	*testing.T
	r    *rand.Rand
	both [2]*lab
	held [2]map[string][]Claim // by worker
	n    int
	said []string

	numberedLast []Item // of the sequence's call last
	last         int64
}

func TestFastLanesLeaveWhatTheRestLeaves(t *testing.T) {
	if withoutLanes.digest == enqueueScript.digest {
		t.Fatal("the fast lanes begin otherwise")
	}
	for seed := range cases.Count(60) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			w := &twins{T: t, r: rand.New(rand.NewPCG(1, uint64(seed))), both: [2]*lab{newLab(t), newLab(t)}}
			w.both[1].transport = without{w.both[1]}
			for i := range w.held {
				w.held[i] = map[string][]Claim{}
			}
			for range 60 {
				w.step()
				w.compare()
			}
		})
	}
}

func (w *twins) step() {
	pause := []time.Duration{0, time.Microsecond, 3 * time.Millisecond, 2 * time.Second, 70 * time.Second}[w.r.IntN(40)*5/40]
	if pause > time.Second && w.r.IntN(3) > 0 {
		pause = 0
	}
	for _, l := range w.both {
		l.pass(pause)
	}
	switch w.r.IntN(10) {
	case 0:
		field := []string{"turns", "limit", "limit\tk\ta", "limit\te"}[w.r.IntN(4)]
		value := []string{"1", "", ""}[w.r.IntN(3)]
		w.do("configure "+field+" "+value, func(l *lab, _ map[string][]Claim) any { return l.Configure(l.t.Context(), field, value) })
	case 1, 2, 3:
		w.work("p/" + strconv.Itoa(1+w.r.IntN(2)))
	default:
		w.enqueue()
	}
}

func (w *twins) do(what string, call func(*lab, map[string][]Claim) any) {
	w.Helper()
	w.said = append(w.said, what)
	first, second := fmt.Sprint(call(w.both[0], w.held[0])), fmt.Sprint(call(w.both[1], w.held[1]))
	if first != second {
		w.Fatalf("%s: the answers differ:\n%s\n%s", strings.Join(w.said, "\n"), first, second)
	}
}

func (w *twins) enqueue() {
	items := make([]Item, 1+w.r.IntN(6)*w.r.IntN(2)/2)
	for i := range items {
		w.n++
		item := Item{ID: fmt.Sprint("j", w.n), Rest: "{}"}
		item.Lane = Lane{Kind: []string{"a", "b"}[w.r.IntN(2)], Key: []string{"", "", "x", "y"}[w.r.IntN(4)]}
		switch w.r.IntN(20) {
		case 0:
			item.Priority = w.r.IntN(3) - 1
		case 1:
			item.Delay = time.Second
		case 2:
			item.Lane.Cost = "slot=2"
		case 3:
			item.Lane.Tags = []string{"t"}
		}
		items[i] = item
	}
	if w.r.IntN(3) == 0 {
		w.numbered(items)
		return
	}
	back := int64(0)
	if w.r.IntN(15) == 0 {
		back = w.r.Int64N(3)
	}
	var what []string
	for _, item := range items {
		what = append(what, fmt.Sprintf("%s %q %s %v %d", item.ID, item.Lane.text(), item.Lane.Cost, item.Delay, item.Priority))
	}
	w.do(fmt.Sprintf("enqueue %s, %d calls back", strings.Join(what, ", "), back), func(l *lab, _ map[string][]Claim) any {
		l.calls[""]++
		outcomes, err := l.Enqueue(l.t.Context(), max(l.calls[""]-back, 1), items)
		if l.calls[""] -= back; back > 0 {
			l.calls[""] += back
		}
		return fmt.Sprint(outcomes, err)
	})
}

// numbered enqueues with ids of the caller's, most of them new ones, in a sequence: the next call, or one again.
func (w *twins) numbered(items []Item) {
	for i := range items {
		items[i].UniqueField = "id"
		if w.r.IntN(20) == 0 {
			items[i].ID = fmt.Sprint("j", 1+w.r.IntN(w.n))
		}
	}
	number := int64(w.n)
	if w.r.IntN(8) == 0 && len(w.numberedLast) > 0 {
		items, number = w.numberedLast, w.last-w.r.Int64N(2)
	}
	w.numberedLast, w.last = items, max(w.last, number)
	w.do(fmt.Sprintf("call %d enqueues %v", number, items), func(l *lab, _ map[string][]Claim) any {
		outcomes, past, err := l.EnqueueNumbered(l.t.Context(), "outbox", max(number, 1), items)
		return fmt.Sprint(outcomes, past, err)
	})
}

func (w *twins) work(id string) {
	slots, done, retry, kinds := 1+w.r.IntN(5), w.r.IntN(4), w.r.IntN(6) == 0, []string{"a,b", "a"}[w.r.IntN(9)/8]
	w.do(fmt.Sprintf("work %s slots %d kinds %s done %d retry %v", id, slots, kinds, done, retry), func(l *lab, held map[string][]Claim) any {
		answer := l.work(id, room("slot:"+strconv.Itoa(slots)), func(r *Report) {
			r.Kinds, r.Inventory = kinds, []string{}
			for _, c := range held[id][:min(done, len(held[id]))] {
				r.Done = append(r.Done, Done{ID: c.ID, Token: c.Token, Verb: "done"})
				if retry {
					r.Done[len(r.Done)-1].Verb = "back"
				}
			}
		})
		if answer.Unknown {
			held[id], l.calls[id] = nil, 0
		} else {
			held[id] = append(slices.Clone(answer.Missing), answer.Claims...)
		}
		return *answer
	})
}

func (w *twins) compare() {
	w.Helper()
	first, second := w.both[0].dump(), w.both[1].dump()
	for i := range max(len(first), len(second)) {
		if i >= len(first) || i >= len(second) || first[i] != second[i] {
			w.Fatalf("%s\nthey differ:\n%q\n%q", strings.Join(w.said, "\n"), first[min(i, len(first)):min(i+3, len(first))],
				second[min(i, len(second)):min(i+3, len(second))])
		}
	}
}

// dump is everything that there is, and what was published since the last time.
func (l *lab) dump() (all []string) {
	keys, _ := texts(l.raw("KEYS", "*"))
	slices.Sort(keys)
	for _, key := range keys {
		var words []string
		switch l.raw("TYPE", key) {
		case "hash":
			flat, _ := texts(l.raw("HGETALL", key))
			for i := 0; i < len(flat); i += 2 {
				words = append(words, flat[i]+" = "+flat[i+1])
			}
			slices.Sort(words)
		case "zset":
			words, _ = texts(l.raw("ZRANGE", key, "0", "-1", "WITHSCORES"))
		default:
			words = append(words, fmt.Sprint(l.raw("GET", key)))
		}
		if strings.HasSuffix(key, ":producer:producer") {
			all = append(all, key) // a lane that a repeated call comes upon remembers the last one for longer
		} else {
			all = append(all, fmt.Sprint(key, " ", l.raw("PTTL", key)))
		}
		all = append(all, words...)
	}
	for _, words := range l.messages() {
		all = append(all, fmt.Sprint("message ", words))
	}
	return all
}
