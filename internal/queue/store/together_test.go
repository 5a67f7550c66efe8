package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// Calls of workers that are made together do what they do one after the other. Two queues get the same calls, one of them apart,
// and after each step they must have given the same answers and messages and have the same keys with the same expiry.

// apart has the calls of a lab that are made together be made one after the other, at the same time.
type apart struct{ *lab }

func (a apart) Do(ctx context.Context, command transport.Command) (any, error) {
	keys, _ := command.Words[2].(int)
	words, args := command.Words[:3+keys], command.Words[3+keys:]
	if words[1] != workScript.digest && words[1] != workScript.text || args[0] != "" {
		return a.lab.Do(ctx, command)
	}
	a.engine.Advance(time.Microsecond)
	var answers []any
	for args = args[1:]; len(args) > 0; {
		n, _ := args[0].(int)
		var one []string
		for _, word := range slices.Concat(words, args[1:1+n]) {
			one = append(one, fmt.Sprint(word))
		}
		args = args[1+n:]
		answer, err := parseReply(a.engine.Do(one...))
		var refused *transport.ServerError
		if errors.As(err, &refused) && strings.HasPrefix(refused.Text, "LATE") {
			answer, err = []any{"late"}, nil
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func TestCallsTogetherAreCallsOneAfterTheOther(t *testing.T) {
	for seed := range cases.Count(40) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			w := &twins{T: t, r: rand.New(rand.NewPCG(2, uint64(seed))), both: [2]*lab{newLab(t), newLab(t)}}
			w.both[1].transport = apart{w.both[1]}
			for i := range w.held {
				w.held[i] = map[string][]Claim{}
			}
			if seed%2 == 0 {
				w.configured("placement", "longest")
			}
			for range 60 {
				w.stepTogether()
				w.compare()
			}
		})
	}
}

func (w *twins) configured(field, value string) {
	w.do("configure "+field+" "+value, func(l *lab, _ map[string][]Claim) any { return l.Configure(l.t.Context(), field, value) })
}

func (w *twins) stepTogether() {
	pause := []time.Duration{0, 3 * time.Millisecond, 2 * time.Second, 6 * time.Second}[w.r.IntN(12)/3]
	for _, l := range w.both {
		l.pass(pause)
	}
	switch w.r.IntN(8) {
	case 0:
		w.configured([]string{"limit", "limit\tk\ta", "limit\te"}[w.r.IntN(3)], []string{"2", "", ""}[w.r.IntN(3)])
	case 1, 2:
		w.enqueue()
	default:
		w.workTogether()
	}
}

// workTogether makes the next calls of some workers, some of which report, leave, or come late.
func (w *twins) workTogether() {
	const workers = 6
	var calls []func(l *lab, held map[string][]Claim) *Report
	var who, what []string
	for _, n := range w.r.Perm(workers)[:2+w.r.IntN(workers-1)] {
		id, slots, done, back, late := fmt.Sprint("p/", n), 1+w.r.IntN(4), w.r.IntN(3), w.r.IntN(4) == 0, w.r.IntN(12) == 0
		state := []string{"online", "online", "online", "online", "online", "away", "gone"}[w.r.IntN(7)]
		who, what = append(who, id), append(what, fmt.Sprint(id, " ", state, " slots ", slots, " done ", done, " back ", back, " late ", late))
		calls = append(calls, func(l *lab, held map[string][]Claim) *Report {
			l.calls[id]++
			r := &Report{
				Worker: id, Call: l.calls[id], Lease: 10 * time.Second, State: state, Room: "slot:" + strconv.Itoa(slots), Kinds: "a,b",
				Tags: []string{"", "t"}[n%2], Info: "{}", Register: l.calls[id] == 1, Inventory: []string{},
			}
			if state == "online" {
				r.Want = 3
			}
			if n >= 4 {
				r.Name, r.OfferFor = "agent", 5*time.Second // a name that the two want
			}
			for i, c := range held[id] {
				if r.Inventory = append(r.Inventory, c.ID); i < done {
					r.Done = append(r.Done, Done{ID: c.ID, Token: c.Token, Verb: "done"})
					if back {
						r.Done[i].Verb = "back"
					}
				}
			}
			if late && r.Call > 2 {
				r.Call -= 2
			}
			return r
		})
	}
	w.do("together: "+strings.Join(what, "; "), func(l *lab, held map[string][]Claim) any {
		var reports []*Report
		for _, call := range calls {
			reports = append(reports, call(l, held))
		}
		answers, err := l.WorkTogether(l.t.Context(), reports)
		must(l.t, err)
		var said []string
		for i, a := range answers {
			id := who[i]
			switch {
			case a == nil:
				said = append(said, "late")
				continue
			case a.Unknown || a.Taken > 0 || reports[i].State == "gone":
				held[id], l.calls[id] = nil, 0
			default:
				for _, d := range reports[i].Done {
					held[id] = slices.DeleteFunc(held[id], func(c Claim) bool { return c.ID == d.ID })
				}
				held[id] = slices.DeleteFunc(held[id], func(c Claim) bool { return slices.Contains(a.Lost, c.ID) })
				held[id] = slices.Concat(held[id], a.Missing, a.Claims)
			}
			slices.Sort(a.Lost)
			said = append(said, fmt.Sprintf("%+v", *a))
		}
		return strings.Join(said, "\n")
	})
}

// Who logs in together with others hears of a foreign key, too, before anything is written.
func TestAForeignKeyIsNamedToWorkersTogether(t *testing.T) {
	l := newLab(t)
	l.work("p/0")
	l.raw("DEL", l.key("stats"))
	l.raw("SET", l.key("stats"), "theirs")
	before := fmt.Sprint(l.dump())
	var reports []*Report
	for i := range 3 {
		reports = append(reports, &Report{
			Worker: fmt.Sprint("p/", i), Call: int64(2 - min(i, 1)), Lease: 15 * time.Second, State: "online", Room: "slot:1", Kinds: "note",
			Info: "{}", Register: i > 0,
		})
	}
	_, err := l.WorkTogether(t.Context(), reports)
	if !errors.Is(err, ledger.ErrWrongType) || !strings.Contains(err.Error(), l.key("stats")) {
		t.Error(err)
	}
	want(t, "what is there", fmt.Sprint(l.dump()), before)
}
