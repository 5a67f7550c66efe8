package acquisition

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A driver steps one life and writes down in words what it wants done.

const (
	claim = 3 * time.Second
	ttl   = 30 * time.Second
)

// start is when lives begin in tests: not at a moment of any grid.
const start = Instant(100*time.Second + 7*time.Millisecond)

func sec(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

type driver struct {
	*testing.T
	m     *Machine
	terms Terms
	now   Instant
}

// drive returns a life that has not begun, at the time start. Change terms before.
func drive(t *testing.T, change func(*Terms)) *driver {
	t.Helper()
	terms := Terms{TTL: ttl, Claim: claim, Weight: 1, Wait: true, Seed: 1}
	if change != nil {
		change(&terms)
	}
	return &driver{t, New(terms), terms, start}
}

// at sets the time, counted from start.
func (d *driver) at(after time.Duration) *driver {
	d.now = start.Add(after)
	return d
}

// step takes an event and returns what is to be done, in words, and the state afterwards.
func (d *driver) step(e Event) string {
	var words []string
	for _, a := range d.m.Step(d.now, e) {
		words = append(words, inWords(&a))
	}
	return strings.Join(append(words, d.m.State().String()), "; ")
}

// want steps and compares.
func (d *driver) want(e Event, want string) {
	d.Helper()
	if got := d.step(e); got != want {
		d.Fatalf("%v at %v:\n  got  %s\n  want %s", e.What, d.now.Sub(start), got, want)
	}
}

// wakes compares when the life wants a Tick, counted from start.
func (d *driver) wakes(want time.Duration) {
	d.Helper()
	if got := d.m.Wake().Sub(start); got != want {
		d.Fatalf("wakes at %v, want %v", got, want)
	}
}

// deadline compares when the lease ends here, counted from start.
func (d *driver) deadline(want time.Duration) {
	d.Helper()
	if got := d.m.Deadline().Sub(start); got != want {
		d.Fatalf("the lease ends at %v, want %v", got, want)
	}
}

func answered(call Call, sent time.Duration, a Answer) Event {
	return Event{What: Answered, Call: call, Sent: start.Add(sent), Answer: a}
}

func failed(call Call, sent time.Duration) Event {
	return Event{What: Failed, Call: call, Sent: start.Add(sent), Err: errLost}
}

var (
	calls   = []string{"acquire", "heartbeat", "renew", "release", "cancel", "reweigh"}
	whys    = []string{"", "busy", "heavy", "forced", "expired", "unrenewed", "late", "failure", "in doubt", "released", "closed"}
	errLost = fmt.Errorf("the connection was lost")
	granted = Answer{Outcome: Granted, Token: 7}
	waiting = Answer{Outcome: Waiting, Ahead: 20, NowMs: 1_000_000}
	kept    = Answer{Outcome: Kept, Token: 7}
	gone    = Answer{Outcome: Gone}
)

// inWords is an action for people to compare.
func inWords(a *Action) string {
	text := ""
	add := func(yes bool, format string, args ...any) {
		if yes {
			text += fmt.Sprintf(format, args...)
		}
	}
	switch a.Do {
	case Send:
		text = "send " + calls[a.Call]
		add(a.Wait > 0, " wait %v", a.Wait)
		add(a.Bar > 0, " bar %v", a.Bar)
		add(a.Number > 0, " #%d to %d", a.Number, a.Weight)
	case Moved:
		text = fmt.Sprintf("moved to %d", a.Ahead)
	case Renewed:
		text = fmt.Sprintf("renewed %v late", a.Lag)
	case Reweighed:
		text = fmt.Sprintf("reweighed #%d", a.Number)
	default:
		text = map[Deed]string{
			Listen: "listen", Grant: "grant", Refuse: "refuse", Notice: "notice", End: "end", Done: "done",
			Impossible: "impossible",
		}[a.Do]
	}
	add(a.Why != Well, " (%s)", whys[a.Why])
	return text
}
