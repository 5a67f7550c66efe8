package acquisition

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// situations are lives that something may happen to, at least one in each state. What is under way says which answers
// can come.
var situations = []struct {
	name     string
	state    State
	underWay []Call
	prepare  func(d *driver)
}{
	{"new", Asking, nil, func(*driver) {}},
	{"asking", Asking, []Call{CallAcquire}, func(d *driver) { d.step(Event{What: Begin}) }},
	{"asking after a failure", Asking, nil, func(d *driver) {
		d.step(Event{What: Begin})
		d.at(sec(.1)).step(failed(CallAcquire, 0))
	}},
	{"queued", Queued, nil, queue},
	{"queued, asks", Queued, []Call{CallAcquire}, func(d *driver) {
		queue(d)
		d.step(Event{What: Worth})
		d.step(Event{What: Tick})
	}},
	{"queued, heartbeat", Queued, []Call{CallHeartbeat}, func(d *driver) {
		queue(d)
		d.now = d.m.Wake()
		d.step(Event{What: Tick})
	}},
	{"held", Held, nil, hold},
	{"held, asks still", Held, []Call{CallAcquire}, func(d *driver) {
		queue(d)
		d.step(Event{What: Worth})
		d.step(Event{What: Tick})
		d.step(Event{What: Handed, Answer: Answer{Token: 7, NowMs: 1_000_000}})
	}},
	{"held, renews", Held, []Call{CallRenew}, func(d *driver) {
		hold(d)
		d.now = d.m.Wake()
		d.step(Event{What: Tick})
	}},
	{"reweighing", Reweighing, []Call{CallReweigh}, func(d *driver) {
		hold(d)
		d.step(Event{What: Reweigh, Weight: 3})
	}},
	{"reweighing, renews", Reweighing, []Call{CallReweigh, CallRenew}, func(d *driver) {
		hold(d)
		d.step(Event{What: Reweigh, Weight: 3})
		d.now = d.m.Wake()
		d.step(Event{What: Tick})
	}},
	{"releasing", Releasing, []Call{CallRelease}, func(d *driver) {
		hold(d)
		d.step(Event{What: Release})
	}},
	{"releasing, renewed before", Releasing, []Call{CallRelease, CallRenew}, func(d *driver) {
		hold(d)
		d.now = d.m.Wake()
		d.step(Event{What: Tick})
		d.step(Event{What: Release})
	}},
	{"cancelling", Cancelling, []Call{CallCancel}, func(d *driver) {
		queue(d)
		d.step(Event{What: GiveUp})
	}},
	{"cancelling, asked before", Cancelling, []Call{CallCancel, CallAcquire}, func(d *driver) {
		d.step(Event{What: Begin})
		d.step(Event{What: GiveUp})
	}},
	{"over", Over, nil, func(d *driver) {
		hold(d)
		d.step(Event{What: Release})
		d.step(answered(CallRelease, 0, kept))
	}},
	{"over, renewed before", Over, []Call{CallRenew, CallReweigh, CallHeartbeat}, func(d *driver) {
		queue(d)
		d.now = d.m.Wake()
		d.step(Event{What: Tick})
		d.step(Event{What: Handed, Answer: Answer{Token: 7, NowMs: 1_000_000}})
		d.now = d.m.Wake()
		d.step(Event{What: Tick})
		d.step(Event{What: Reweigh, Weight: 3})
		d.step(Event{What: Forced})
	}},
}

func queue(d *driver) {
	d.step(Event{What: Begin})
	d.at(sec(.01)).step(answered(CallAcquire, 0, waiting))
}

func hold(d *driver) {
	d.step(Event{What: Begin})
	d.at(sec(.01)).step(answered(CallAcquire, 0, granted))
}

// outcomes are those that a call can be answered with.
var outcomes = map[Call][]Outcome{
	CallAcquire:   {Granted, Waiting, Refused, Barred, Heavy},
	CallHeartbeat: {Waiting, Astray},
	CallRenew:     {Kept, KeptWanted, Gone, Expelled},
	CallRelease:   {Kept, Gone, Expelled},
	CallCancel:    {Kept, Granted},
	CallReweigh:   {Kept, Refused, Gone, Expelled},
}

var outcomeNames = []string{"none", "granted", "waiting", "astray", "refused", "barred", "heavy", "kept", "wanted", "gone", "expelled"}

// occurrences are all forms of an event that can come while these calls are under way.
func occurrences(what Happening, underWay []Call) map[string]Event {
	e := Event{What: what, Weight: 3, After: time.Second, Number: 1}
	e.Answer = Answer{Token: 7, NowMs: 1_000_000, Limit: 1}
	if what != Answered && what != Failed {
		return map[string]Event{what.String(): e}
	}
	all := make(map[string]Event)
	for _, e.Call = range underWay {
		e.Sent = start
		if what == Answered {
			for _, e.Answer.Outcome = range outcomes[e.Call] {
				all[fmt.Sprintf("%s %s", calls[e.Call], outcomeNames[e.Answer.Outcome])] = e
			}
			continue
		}
		e.Err = errLost
		e.Undone, e.Lasting = false, false
		all[calls[e.Call]+" failed"] = e
		e.Undone = true
		all[calls[e.Call]+" undone"] = e
		e.Lasting = true
		all[calls[e.Call]+" refused for good"] = e
	}
	return all
}

// TestTable walks all that can happen to all lives there are, and compares with testdata/table.txt: what each means. An event
// that cannot be must change nothing. UPDATE_TABLE=1 writes the file; read the difference.
func TestTable(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	covered := make(map[State]bool)
	for _, situation := range situations {
		covered[situation.state] = true
		fmt.Fprintf(&text, "%s\n", situation.name)
		for what := range happenings {
			for _, line := range meanings(t, situation.prepare, situation.state, occurrences(what, situation.underWay)) {
				fmt.Fprintf(&text, "\t%s\n", line)
			}
		}
	}
	for state := range states {
		if !covered[state] {
			t.Errorf("no situation has the state %v", state)
		}
	}
	const path = "testdata/table.txt"
	if os.Getenv("UPDATE_TABLE") != "" {
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(text.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of %s differs from what happens:\n%s", i+1, path, strings.Join(got[i:min(i+5, len(got))], "\n"))
		}
	}
}

func meanings(t *testing.T, prepare func(*driver), state State, events map[string]Event) (lines []string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(events)) {
		d := drive(t, nil)
		prepare(d)
		if d.m.State() != state {
			t.Fatalf("prepared %v, want %v", d.m.State(), state)
		}
		before := *d.m
		did := d.step(events[name])
		if did == "impossible; "+state.String() {
			before.actions, before.scratch = d.m.actions, d.m.scratch
			if !reflect.DeepEqual(before, *d.m) {
				t.Errorf("%v: %s cannot be, and changed the life", state, name)
			}
		}
		if state == Over && did != "over" && did != "impossible; over" {
			t.Errorf("a life that is over does something: %s", did)
		}
		wake := "–"
		if d.m.Wake() != 0 {
			wake = d.m.Wake().Sub(d.now).String()
		}
		lines = append(lines, fmt.Sprintf("%-24s %s; wake %s", name, did, wake))
	}
	return lines
}
