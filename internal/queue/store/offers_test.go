package store

import (
	"strings"
	"testing"
	"time"
)

// asked is a worker that takes offers.
func asked(name string, options ...func(*Report)) func(*Report) {
	return func(r *Report) {
		r.Name, r.Lease, r.OfferFor, r.Room = name, time.Minute, 20*time.Second, "slot:1"
		for _, option := range options {
			option(r)
		}
	}
}

func (l *lab) stateOf(id string) string {
	l.t.Helper()
	sight, err := l.Look(l.t.Context(), id, "")
	must(l.t, err)
	if sight == nil {
		return "gone"
	}
	return strings.TrimSpace(sight.State + " " + sight.Worker)
}

// Of an acceptance and whatever else ends an offer, the one that comes first to the server counts.
func TestAnOfferEndsOnce(t *testing.T) {
	for name, first := range map[string]func(l *lab, token string){
		"its time is over":   func(l *lab, _ string) { l.pass(20 * time.Second) },
		"the worker is away": func(l *lab, _ string) { l.work("p/1", asked("anna"), state("away")) },
		"the worker drains":  func(l *lab, _ string) { l.work("p/1", asked("anna"), state("draining")) },
		"the worker declines": func(l *lab, token string) {
			l.work("p/1", asked("anna"), report(Done{ID: "j", Token: token, Verb: "decline"}))
		},
		"the worker misses it": func(l *lab, token string) {
			l.work("p/1", asked("anna"), report(Done{ID: "j", Token: token, Verb: "miss"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.enqueue(item("j"))
			claims := l.begin("p/1", asked("anna"))
			want(t, "offered", l.stateOf("j"), "o p/1")
			token := claims[0].Token
			first(l, token)
			answer := l.work("p/1", asked("anna"), state("away"), report(Done{ID: "j", Token: token, Verb: "accept"}))
			want(t, "late", strings.Join(answer.Late, " "), "j")
			want(t, "after it", l.stateOf("j"), "w")
			want(t, "found", l.check(false), "")
			l.begin("p/2", asked("bob"))
			want(t, "the next", l.stateOf("j"), "o p/2")
		})
	}
}

// Who has let an offer pass is away, and is not offered the job again by a call that was made before it heard of that.
func TestAMissedOfferIsNotOfferedAgainByALateCall(t *testing.T) {
	for name, passed := range map[string]func(l *lab){
		"its own call":   func(*lab) {},
		"another's call": func(l *lab) { l.work("p/2", state("away")) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.enqueue(item("j"))
			l.begin("p/1", asked("anna"))
			l.pass(20 * time.Second)
			passed(l)
			late := func(r *Report) { r.Call = 7 } // made before it heard
			l.work("p/1", asked("anna"), late)
			want(t, "after a late call", l.stateOf("j"), "w")
			l.work("p/1", asked("anna"), late) // its answer was lost
			want(t, "after the late call's second coming", l.stateOf("j"), "w")
			l.enqueue(item("k"))
			want(t, "a new one", l.stateOf("k"), "w")
			l.work("p/1", asked("anna"), func(r *Report) { r.Call = 8 })
			want(t, "when it has heard", l.stateOf("j")+l.stateOf("k"), "o p/1w")
			want(t, "found", l.check(false), "")
		})
	}
}

// An acceptance that came first holds against all of them.
func TestWhatWasAcceptedStays(t *testing.T) {
	l := newLab(t)
	l.enqueue(item("j"))
	token := l.begin("p/1", asked("anna"))[0].Token
	answer := l.work("p/1", asked("anna"), state("draining"), report(Done{ID: "j", Token: token, Verb: "accept"}))
	want(t, "late", len(answer.Late), 0)
	l.pass(14 * time.Second)
	l.work("p/1", asked("anna"), state("draining"))
	l.pass(10 * time.Second)
	want(t, "beyond its time", l.stateOf("j"), "c p/1")
	l.pass(time.Minute) // it is not heard of any more
	l.begin("p/2", asked("bob"))
	sight, err := l.Look(t.Context(), "j", "")
	must(t, err)
	want(t, "crashes", sight.Record.Crashes, 1)
	l.pass(time.Minute) // bob has only been offered it
	l.begin("p/3", asked("cleo"))
	sight, err = l.Look(t.Context(), "j", "")
	must(t, err)
	want(t, "crashes", sight.Record.Crashes, 1)
	want(t, "found", l.check(false), "")
}

// A job that ended is anybody's when it is run again: what it was reserved for, and who declined it, was of its first life.
func TestWhatIsRunAgainIsAnybodys(t *testing.T) {
	l := newLab(t)
	l.enqueue(Item{ID: "j", For: "anna", ForWithin: time.Minute, Retention: time.Hour})
	claim := l.begin("p/1", asked("anna"))[0]
	l.work("p/1", asked("anna"), report(Done{ID: "j", Token: claim.Token, Verb: "accept"}))
	l.work("p/1", asked("anna"), state("away"), report(Done{ID: "j", Token: claim.Token, Verb: "dead", After: time.Hour}))
	l.begin("p/2", asked("bob"))
	_, err := l.Change(t.Context(), "retry", "", "", []string{"j"})
	must(t, err)
	want(t, "after it", l.stateOf("j"), "o p/2")
	want(t, "found", l.check(false), "")
}

// Who declines a job keeps it from itself, whatever its name is.
func TestADeclinedJobGoesToTheNext(t *testing.T) {
	l := newLab(t)
	l.enqueue(item("j"))
	claim := l.begin("p/1", asked("anna=2"))[0]
	l.begin("p/2", asked("bob"))
	l.work("p/1", asked("anna=2"), report(Done{ID: "j", Token: claim.Token, Verb: "decline"}))
	want(t, "after it", l.stateOf("j"), "o p/2")
}

// A worker that goes is not told of what it held: some of that may have ended with it.
func TestWhoGoesHoldsNothing(t *testing.T) {
	l := newLab(t)
	l.enqueue(item("j"))
	l.begin("p/1")
	_, err := l.Change(t.Context(), "cancel", "", "", []string{"j"})
	must(t, err)
	answer := l.work("p/1", state("gone"), func(r *Report) { r.Inventory = []string{} })
	want(t, "missing", len(answer.Missing), 0)
	want(t, "after it", l.stateOf("j"), "k")
}

// A placement holds for who calls after it was set. Who was idle before is found all the same, and so is who has no room of the
// capacity of which a job takes nothing.
func TestWhoHasNoRankIsFound(t *testing.T) {
	l := newLab(t)
	l.begin("p/1")
	l.configure("placement", "longest")
	l.enqueue(item("a"))
	want(t, "handed", strings.Join(l.handed(), ","), "p/1 a")
	l.begin("p/2", room("call:1,slot:1"))
	l.enqueue(Item{ID: "b", Lane: Lane{Kind: "note", Cost: "call=1"}}, Item{ID: "c", Lane: Lane{Kind: "note", Cost: "call=0,slot=1"}})
	want(t, "handed", strings.Join(l.handed(), ","), "p/2 b,p/2 c")
}

// What is torn of offers, names and ranks is found, and mended.
func TestCheckMendsOffers(t *testing.T) {
	for finding, tear := range map[string]func(l *lab){
		"worker that nobody finds by its name":      func(l *lab) { l.raw("ZREM", l.key("links"), "n\tanna\tp/1") },
		"count that is not the sum":                 func(l *lab) { l.raw("HSET", l.key("counts"), "o", "3") },
		"time of what is gone":                      func(l *lab) { l.raw("ZADD", l.key("times"), "99999999999999", "o\tnone") },
		"link to what is gone":                      func(l *lab) { l.raw("ZADD", l.key("links"), "0", "r\tnote\tslot\t\t0000000000000001\tp/9") },
		"idle worker that nobody finds by its rank": func(l *lab) { l.raw("ZREMRANGEBYLEX", l.key("links"), "[r\t", "(r\n") },
	} {
		t.Run(finding, func(t *testing.T) {
			l := newLab(t)
			l.configure("placement", "longest")
			l.enqueue(item("kept"))
			l.begin("p/2", asked("bob"))
			l.begin("p/1", asked("anna"))
			tear(l)
			if found := l.check(false); !strings.Contains(found, finding) {
				t.Errorf("found %q", found)
			}
			l.check(true)
			want(t, "found again", l.check(false), "")
			l.enqueue(item("j"))
			want(t, "offered", l.stateOf("j"), "o p/1")
		})
	}
}
