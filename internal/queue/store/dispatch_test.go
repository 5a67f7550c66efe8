package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func item(id string) Item { return Item{ID: id} }

func keyed(id, key string) Item { return Item{ID: id, Lane: Lane{Kind: "note", Key: key}} }

// What a rate holds up goes on when the rate is taken away, not when it would have allowed it.
func TestARateThatIsTakenAwayHoldsNothingUp(t *testing.T) {
	l := newLab(t)
	l.configure("rate\te", "3600000000 1")
	l.work("p/1", room("slot:3"))
	l.work("p/1", room("slot:3"))
	l.enqueue(keyed("a", "k"), keyed("b", "k"))
	l.handed()
	l.configure("rate\te", "")
	want(t, "handed", strings.Join(l.handed(), ","), "p/1 b")
}

// Settings that change nothing for the lanes that are parked come to an end.
func TestManyParkedLanesAreLookedAtOnce(t *testing.T) {
	l := newLab(t)
	l.configure("limit\te", "0")
	for from := 0; from < 2500; from += 500 {
		var items []Item
		for i := from; i < from+500; i++ {
			items = append(items, keyed(fmt.Sprintf("j%04d", i), fmt.Sprintf("k%04d", i)))
		}
		l.enqueue(items...)
	}
	l.work("p/1", room("slot:3000"))
	for range 5 {
		l.work("p/1", room("slot:3000"))
	}
	l.messages()
	l.configure("stepMs", "1000")
	l.configure("limit\te", "1")
	got := len(l.handed())
	for range 30 {
		got += len(l.work("p/1", room("slot:3000")).Claims)
	}
	want(t, "jobs that ran", got, 2500)
}

// A worker that finds nothing but closed lanes comes again at once, and gets to what is behind them.
func TestBehindManyClosedLanesIsLookedAtOnce(t *testing.T) {
	l := newLab(t)
	l.configure("limit\te", "0", "limit\ty\topen", "1")
	for from := 0; from < 1500; from += 500 {
		var items []Item
		for i := from; i < from+500; i++ {
			items = append(items, keyed(fmt.Sprintf("j%04d", i), fmt.Sprintf("k%04d", i)))
		}
		l.enqueue(items...)
	}
	l.enqueue(keyed("last", "open"))
	l.work("p/1", room("slot:3000"))
	var got []string
	for range 10 {
		answer := l.work("p/1", room("slot:3000"))
		if got = append(got, ids(answer.Claims)); slices.Contains(got, "last") {
			return
		}
		if answer.Next < 0 || answer.Next > 10*time.Millisecond {
			break
		}
	}
	t.Errorf("Q7: the worker got %q and is to wait for its heartbeat", got)
}

// Thousands of tags that others have do not keep a worker from its own.
func TestManyTagsOfOthers(t *testing.T) {
	l := newLab(t)
	for from := 0; from < 1500; from += 500 {
		var items []Item
		for i := from; i < from+500; i++ {
			items = append(items, Item{ID: fmt.Sprint("j", i), Lane: Lane{Kind: "note", Tags: []string{fmt.Sprintf("host%04d", i)}}})
		}
		l.enqueue(items...)
	}
	two := Item{ID: "two", Lane: Lane{Kind: "note", Tags: []string{"host1490", "x"}}}
	l.enqueue(two)
	want(t, "jobs", ids(l.begin("p/1", tags("host1490,x"), room("slot:5"))), "j1490 two")
}

// A limit whose key has very many lanes lets any of them go on that can.
func TestAKeyOfManyLanes(t *testing.T) {
	l := newLab(t)
	l.configure("limit\ty\tk", "1")
	l.enqueue(keyed("first", "k"))
	first := l.begin("p/1")
	var items []Item
	var all []string
	for i := range 300 {
		tag := fmt.Sprintf("t%03d", i)
		items, all = append(items, Item{ID: "j" + tag, Lane: Lane{Kind: "note", Tags: []string{tag}, Key: "k"}}), append(all, tag)
	}
	l.enqueue(items...)
	visitor := strings.Join(all, ",")
	for range 2 {
		l.work("p/2", tags(visitor)) // finds the key at its limit, and has all its lanes parked
	}
	l.work("p/2", tags(visitor), state("gone"))
	l.work("p/3", tags("t250"))
	l.work("p/3", tags("t250"))
	l.messages()
	answer := l.work("p/1", over(first[0], "done"))
	for range 10 {
		if slices.Contains(l.handed(), "p/3 jt250") {
			return
		}
		if answer.Next < 0 || answer.Next > 10*time.Millisecond {
			break
		}
		l.pass(time.Millisecond)
		answer = l.work("p/1")
	}
	t.Error("Q7: the key has room, a worker is idle, and its job stands still")
}

// A pause of very many classes ends for all of them.
func TestAPauseOfManyClassesEnds(t *testing.T) {
	l := newLab(t)
	l.configure("pause", "1")
	var items []Item
	for i := range 300 {
		tag := fmt.Sprintf("t%03d", i)
		items = append(items, Item{ID: "j" + tag, Lane: Lane{Kind: "note", Tags: []string{tag}}})
	}
	l.enqueue(items...)
	for range 2 {
		l.work("p/1", tags("t250"))
	}
	for range 2 {
		l.work("p/2", tags("other"))
	}
	l.configure("pause", "")
	for range 10 {
		if slices.Contains(l.handed(), "p/1 jt250") {
			return
		}
		l.work("p/2", tags("other"))
	}
	t.Error("Q7: the pause is over, and a worker that is idle is not told")
}

// A job that was told to stop and ended well meanwhile leaves nothing that stops its successor.
func TestACancelThatComesTooLateIsForgotten(t *testing.T) {
	l := newLab(t)
	mine := Item{ID: "mine", UniqueField: "id"}
	l.enqueue(mine)
	claims := l.begin("p/1")
	_, err := l.Change(t.Context(), "cancel", "", "", []string{"mine"})
	must(t, err)
	l.work("p/1", over(claims[0], "done"))
	l.enqueue(mine)
	l.work("p/1")
	want(t, "to cancel", strings.Join(l.work("p/1").Cancel, " "), "")
}

// A job that was canceled does not run again, whatever becomes of its worker.
func TestACanceledJobDoesNotRunAgain(t *testing.T) {
	for _, verb := range []string{"retry", "back", "snooze", ""} {
		l := newLab(t)
		l.enqueue(item("a"))
		claims := l.begin("p/1")
		outcomes, err := l.Change(t.Context(), "cancel", "", "", []string{"a"})
		must(t, err)
		want(t, "cancel", outcomes[0], "told")
		if verb == "" {
			l.pass(16 * time.Second)
		} else {
			l.work("p/1", over(claims[0], verb), state("draining"))
		}
		l.pass(time.Second)
		want(t, "claims after "+verb, ids(l.begin("p/2")), "")
	}
}

// Jobs that wait for one of the same call wait for it.
func TestAParentInTheSameCall(t *testing.T) {
	l := newLab(t)
	child := item("child")
	child.After = After{"all", "cancel", []string{"parent"}}
	l.enqueue(item("parent"), child)
	claims := l.begin("p/1", room("slot:2"))
	want(t, "before", ids(claims), "parent")
	want(t, "after", ids(l.work("p/1", room("slot:2"), over(claims[0], "done")).Claims), "child")
}

// A job that waits for others and for its time waits for both.
func TestAChildWithADelay(t *testing.T) {
	l := newLab(t)
	l.enqueue(item("parent"))
	child := item("child")
	child.After, child.Delay = After{"all", "cancel", []string{"parent"}}, time.Minute
	l.enqueue(child)
	claims := l.begin("p/1")
	want(t, "at once", ids(l.work("p/1", over(claims[0], "done")).Claims), "")
	l.pass(time.Minute)
	l.work("p/1", func(r *Report) { r.Register = true })
	want(t, "in time", ids(l.work("p/1").Claims), "child")
}

// Orders keep their 16 digits, whatever the delay and the priority.
func TestExtremeOrders(t *testing.T) {
	l := newLab(t)
	l.configure("stepMs", "86400000")
	low, high, far := item("low"), item("high"), item("far")
	low.Priority, high.Priority, far.Delay = -1<<20, 1<<20, 290*365*24*time.Hour
	l.enqueue(far, low, item("middle"), high)
	want(t, "order", ids(l.begin("p/1", room("slot:5"))), "high middle low")
	_, err := l.Change(t.Context(), "retry", "", "", []string{"far"})
	must(t, err)
	l.enqueue(item("next"))
	want(t, "handed", strings.Join(l.handed(), ","), "p/1 far,p/1 next")
}

// A delayed job that is to run now does not stand behind what came before its time.
func TestADelayedJobThatIsToRunNow(t *testing.T) {
	l := newLab(t)
	later := item("later")
	later.Delay = time.Hour
	l.enqueue(later)
	_, err := l.Change(t.Context(), "retry", "", "", []string{"later"})
	must(t, err)
	l.enqueue(item("next"))
	want(t, "order", ids(l.begin("p/1", room("slot:5"))), "later next")
}

// A worker that leaves in order has not died over what it was just handed, and that goes to others at once.
func TestAWorkerThatLeavesGivesBack(t *testing.T) {
	l := newLab(t)
	for range 2 {
		l.work("p/1")
	}
	l.enqueue(item("a"))
	want(t, "handed", strings.Join(l.handed(), ","), "p/1 a")
	for range 2 {
		l.work("p/2")
	}
	l.work("p/1", state("gone"))
	want(t, "handed on", strings.Join(l.handed(), ","), "p/2 a")
	sight, err := l.Look(t.Context(), "a", "")
	must(t, err)
	want(t, "crashes", sight.Record.Crashes, 0)
}

// When the worker leaves that looks after what is due, another one does.
func TestTheAlarmIsHandedOn(t *testing.T) {
	l := newLab(t)
	for _, w := range []string{"p/1", "p/2"} {
		l.work(w)
		l.work(w)
	}
	later := item("later")
	later.Delay = time.Second
	l.enqueue(later)
	l.messages()
	l.work("p/1", state("gone"))
	want(t, "woken", strings.Join(l.handed(), ","), "wake p/2")
	if next := l.work("p/2").Next; next < 0 || next > time.Second {
		t.Errorf("Q7: a job is due in a second, the only worker comes in %v", next)
	}
}

// A unique job that returns to a state in which it is unique is so again.
func TestAUniqueJobThatReturns(t *testing.T) {
	l := newLab(t)
	unique := func(id string) Item { return Item{ID: id, UniqueField: "u", UniqueIn: "wlh"} }
	l.enqueue(unique("a"))
	claims := l.begin("p/1")
	l.work("p/1", over(claims[0], "back"), state("draining"))
	want(t, "Q10: the other", l.enqueue(unique("b"))[0].Other, "a")
}

// A job that has failed is not run again beside another with its fingerprint.
func TestAReplayIsUnique(t *testing.T) {
	l := newLab(t)
	unique := func(id string) Item { return Item{ID: id, UniqueField: "u", UniqueIn: "wlhc"} }
	l.enqueue(unique("a"))
	claims := l.begin("p/1")
	l.work("p/1", report(Done{ID: "a", Token: claims[0].Token, Verb: "dead", After: time.Hour}), state("draining"))
	l.enqueue(unique("b"))
	outcomes, err := l.Change(t.Context(), "retry", "", "", []string{"a"})
	must(t, err)
	want(t, "Q10: retry", outcomes[0], "unique")
	_, err = l.Change(t.Context(), "delete", "", "", []string{"b"})
	must(t, err)
	outcomes, err = l.Change(t.Context(), "retry", "", "", []string{"a"})
	must(t, err)
	want(t, "retry", outcomes[0], "ok")
	want(t, "Q10: the other", l.enqueue(unique("c"))[0].Other, "a")
}

// A key may begin with an asterisk.
func TestAKeyWithAnAsterisk(t *testing.T) {
	l := newLab(t)
	l.configure("limit\ty\t*x", "1")
	l.enqueue(keyed("a", "*x"), keyed("b", "*x"))
	want(t, "claims", ids(l.begin("p/1", room("slot:5"))), "a")
}

// Q5: the clock of the server goes back, and time goes on.
func TestTheClockGoesBack(t *testing.T) {
	l := newLab(t)
	l.enqueue(item("a"))
	first := l.begin("p/1")
	l.pass(-time.Hour)
	l.work("p/2")
	l.pass(16 * time.Second)
	again := l.begin("p/3")
	want(t, "Q5: claims", ids(again), "a")
	if again[0].Token <= first[0].Token {
		t.Errorf("token %s after %s", again[0].Token, first[0].Token)
	}
	at := item("at")
	at.At = l.engine.Now().Add(time.Minute)
	l.enqueue(at)
	l.work("p/3", over(again[0], "done"))
	l.pass(59 * time.Second)
	want(t, "too early", ids(l.begin("p/4")), "")
	l.pass(time.Second)
	want(t, "on time", ids(l.work("p/4").Claims), "at")
}

// Q8: an enqueue that adds nothing leaves nothing.
func TestADuplicateLeavesNothing(t *testing.T) {
	l := newLab(t)
	mine := Item{ID: "mine", UniqueField: "id", Retention: time.Hour}
	l.enqueue(mine)
	claims := l.begin("p/1")
	l.work("p/1", report(Done{ID: "mine", Token: claims[0].Token, Verb: "done", After: time.Hour}))
	want(t, "known", l.enqueue(mine)[0].Known, true)
	l.pass(2 * time.Hour)
	if keys := fmt.Sprint(l.raw("KEYS", "*")); strings.Contains(keys, "workers") || strings.Contains(keys, "times") {
		t.Errorf("Q8: left are %s", keys)
	}
}

// A first call that arrives when its worker is long gone claims nothing.
func TestAFirstCallThatIsLate(t *testing.T) {
	l := newLab(t)
	l.work("p/1")
	l.work("p/1", state("gone"))
	l.calls["p/1"] = 0
	l.enqueue(item("a"))
	l.work("p/1")
	want(t, "claims", ids(l.begin("p/2")), "a")
}

// With turns, keys of one call have theirs in the order of the jobs.
func TestTurnsOfOneCall(t *testing.T) {
	l := newLab(t)
	l.configure("turns", "1")
	var items []Item
	var order []string
	for i := range 20 {
		id := fmt.Sprint("j", i*7%20)
		items, order = append(items, keyed(id, id)), append(order, id)
	}
	l.enqueue(items...)
	if diff := cmp.Diff(order, strings.Fields(ids(l.begin("p/1", room("slot:50"))))); diff != "" {
		t.Error(diff)
	}
}

// Q9: what a call does is bounded, whatever has come together.
func TestWorkOfACallIsBounded(t *testing.T) {
	l := newLab(t)
	for w := range 60 {
		id := fmt.Sprintf("p/%02d", w)
		l.work(id, room("slot:50"))
		l.work(id, room("slot:50"))
	}
	for range 6 {
		var items []Item
		for range 500 {
			items = append(items, item(fmt.Sprint("j", l.calls["id"])))
			l.calls["id"]++
		}
		l.enqueue(items...)
	}
	l.messages()
	claimed := l.raw("HLEN", l.key("claims")).(int64)
	if claimed < 2900 {
		t.Fatalf("%d jobs run", claimed)
	}
	l.pass(20 * time.Second) // all of them die
	l.work("late")
	if left := l.raw("HLEN", l.key("claims")).(int64); left < 2500 {
		t.Errorf("Q9: one call gave %d jobs back", claimed-left)
	}
	for range 40 {
		l.work("late")
	}
	want(t, "still claimed, but for the one that runs", l.raw("HLEN", l.key("claims")).(int64), 1)
}

// What a call finds to be due is done and handed over also if the call itself is refused.
func TestARefusedCallDoesWhatIsDue(t *testing.T) {
	for _, number := range []int64{1, 5} {
		l := newLab(t)
		l.begin("p/1")
		l.begin("p/2")
		for range 5 {
			l.pass(5 * time.Second)
			l.work("p/2")
		}
		delayed := item("a")
		delayed.Delay = time.Second
		l.enqueue(delayed)
		l.messages()
		l.pass(2 * time.Second)
		r := &Report{Worker: "p/2", Call: number, Lease: 15 * time.Second, State: "online", Room: "slot:1", Kinds: "note"}
		if number == 5 {
			r.Worker = "p/1" // whose lease has ended
		}
		answer, err := l.Work(t.Context(), r)
		if err == nil && !answer.Unknown {
			t.Error("the call was not refused")
		}
		want(t, "Q7: handed", strings.Join(l.handed(), ","), "p/2 a")
		want(t, "findings", l.check(false), "")
	}
}

// A rate that is changed holds things up by what it says now, not by what was used up of another.
func TestARateThatIsChanged(t *testing.T) {
	for _, of := range []string{"", "\tk\tnote", "\ty\tk"} {
		l := newLab(t)
		l.configure("rate"+of, "3600000000 1")
		l.enqueue(keyed("a", "k"), keyed("b", "k"), keyed("c", "k"))
		want(t, "by the old rate", ids(l.begin("p/1", room("slot:3"))), "a")
		l.configure("rate"+of, "1000000 1")
		l.messages()
		l.pass(time.Second + time.Millisecond)
		want(t, "by the new rate", ids(l.work("p/1", room("slot:3")).Claims)+strings.Join(l.handed(), ","), "b")
	}
}

// What a worker is given at once has one link, which is there as long as the worker holds any of it.
func TestJobsThatAreClaimedAtOnce(t *testing.T) {
	l := newLab(t)
	var items []Item
	for i := range 10 {
		items = append(items, item(fmt.Sprint("j", i)))
	}
	l.enqueue(items...)
	claims := l.begin("p/1", room("slot:10"))
	links := func() string { return fmt.Sprint(l.raw("ZLEXCOUNT", l.key("links"), "[h", "(i")) }
	want(t, "claimed", ids(claims), "j0 j1 j2 j3 j4 j5 j6 j7 j8 j9")
	want(t, "links", links(), "1")
	l.work("p/1", room("slot:10"), over(claims[0], "done"), over(claims[7], "back"), over(claims[1], "done"))
	want(t, "torn", l.check(false), "")

	// The one that came back is claimed again, by itself. What the worker does not list it is told.
	answer := l.work("p/1", room("slot:10"), func(r *Report) { r.Inventory = []string{"j2", "j3", "j9", "j0"} })
	want(t, "missing", ids(answer.Missing), "j4 j5 j6 j7 j8")
	want(t, "lost", fmt.Sprint(answer.Lost), "[j0]")
	want(t, "links", links(), "2")
	want(t, "torn", l.check(false), "")

	// A link that is lost is mended for each job.
	members, _ := texts(l.raw("ZRANGE", l.key("links"), "0", "-1"))
	for _, member := range members {
		if strings.Contains(member, ",") {
			l.raw("ZREM", l.key("links"), member)
		}
	}
	want(t, "found", strings.Contains(l.check(true), "claim that its worker does not hold"), true)
	want(t, "torn", l.check(true), "")
	want(t, "torn", l.check(false), "")

	// Those of a worker that dies run again, in their order.
	l.pass(time.Minute)
	l.work("p/2", room("slot:10"))
	want(t, "torn", l.check(false), "")
	want(t, "links", links(), "0")
	want(t, "counts", fmt.Sprint(l.raw("HGETALL", l.key("counts"))), "[]")
	want(t, "claimed again", ids(l.work("p/2", room("slot:10")).Claims), "j2 j3 j4 j5 j6 j7 j8 j9")
}
