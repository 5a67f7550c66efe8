package racelab

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// A client may be led by the life of an acquisition. Its goroutine makes the
// calls that the machine wants made, one at a time. Everything else that happens
// to the machine is handed to it by the lab, wherever the goroutine stands:
// messages, its alarm, the wishes of its caller. Three things are choices that
// are not for others:
//
//   - A call runs on the server when it is sent, and its answer comes later. So
//     time may pass before the answer is heard, and messages may overtake it.
//   - Of several calls that have not been sent any may be sent first, as if the
//     network had changed their order.
//   - The caller may release or ask for more between two calls.
//
// Some things are left out to keep the space small. A call that has been sent
// delays the next. While anybody has something to do, time passes only in a
// pause. A caller who has seen one renewal does nothing but release, and only A
// changes its weight, once. To give up, or to release while a call is under way,
// is a misfortune (Haste). The inbox is open before the life begins, so that no
// message goes by unheard unless it is lost.

// life is a client that is led by a machine.
type life struct {
	*Client
	machine  *acquisition.Machine
	id       string
	call     func(a *acquisition.Action) (acquisition.Answer, error)
	growing  bool // the caller may ask for one permit more
	pending  []pending
	picked   int       // of pending, which is sent next
	patience time.Time // until when the caller waits
	renewed  bool
	tidy     bool // it is over, and nothing of it may be on the server
}

// pending is a call that has not been sent.
type pending struct {
	action acquisition.Action
	since  time.Time
}

func newLife(
	c *Client, id string, call func(a *acquisition.Action) (acquisition.Answer, error), growing bool,
) *life {
	c.life = &life{Client: c, id: id, call: call, growing: growing}
	return c.life
}

// clockOrigin keeps the times of a machine away from 0, which is never.
const clockOrigin = time.Hour

func (l *life) instant(t time.Time) acquisition.Instant {
	return acquisition.Instant(t.Sub(epoch) + l.skew + clockOrigin)
}

func (l *life) time(t acquisition.Instant) time.Time {
	return epoch.Add(time.Duration(t) - l.skew - clockOrigin)
}

// live is the goroutine of a client: it makes calls until the life is over.
func (l *life) live() {
	if !l.Begin("acquire") {
		return
	}
	l.begin()
	for l.send() {
		for len(l.pending) == 0 {
			if l.machine.State() == acquisition.Over || l.park(stop{kind: atWait}) != proceed {
				return
			}
		}
		if !l.Begin("") {
			return
		}
	}
}

func (l *life) begin() {
	l.patience = l.begun.Add(ledgerPatience)
	l.machine = acquisition.New(acquisition.Terms{
		TTL: ledgerTTL, Claim: ledgerClaim, Weight: 1, Wait: true, Seed: 1,
	})
	l.step(acquisition.Event{What: acquisition.Begin})
}

// send makes the call that was picked. It is false if the client has crashed.
func (l *life) send() bool {
	p := l.pending[l.picked]
	l.pending = slices.Delete(l.pending, l.picked, l.picked+1)
	l.picked = 0
	l.tidy = l.tidy && !l.begun.After(p.since.Add(max(ledgerTTL, ledgerClaim))) // what is later than that may come back
	e := acquisition.Event{
		What: acquisition.Answered, Call: p.action.Call, Sent: l.instant(l.begun), Number: p.action.Number,
	}
	answer, err := l.call(&p.action)
	if err != nil {
		e.What, e.Err = acquisition.Failed, err
	}
	if l.dead {
		return false
	}
	e.Answer = answer
	l.step(e)
	return true
}

// step steps the machine, and notes what it wants done and what its holder
// believes.
func (l *life) step(e acquisition.Event) {
	w := l.world
	now := w.engine.Now()
	w.newest = max(w.newest, e.Answer.Token)
	for _, a := range l.machine.Step(l.instant(now), e) {
		switch a.Do {
		case acquisition.Send:
			l.pending = append(l.pending, pending{a, now})
		case acquisition.Renewed:
			l.renewed, w.refreshed = true, l.Name
		case acquisition.End, acquisition.Refuse, acquisition.Done:
			l.judgeWhy(&a, now)
		case acquisition.Impossible:
			w.accuse(Sense, "%v comes to %s, whose life is %v", e.What, l.Name, l.machine.State())
		}
	}
	l.believe()
}

// judgeWhy looks at why a lease has ended, or never began.
func (l *life) judgeWhy(a *acquisition.Action, now time.Time) {
	w := l.world
	switch a.Why {
	case acquisition.WasForced, acquisition.IsBusy, acquisition.IsHeavy:
		w.accuse(Sense, "%s is told what nobody has done", l.Name)
	case acquisition.HadExpired:
		if until := l.time(l.machine.Deadline()); now.Before(until) {
			w.accuse(Kept, "%s is told that it has lost its permit, which %s", l.Name, w.lasting(until))
		}
		w.believes(l.Client, "LOST")
	case acquisition.Unrenewed:
		w.believes(l.Client, "LOST")
	}
	if a.Do == acquisition.Done {
		l.tidy = a.Why == acquisition.Well || a.Why == acquisition.HadExpired
	}
}

// believe derives what the holder believes.
func (l *life) believe() {
	w := l.world
	now := belief{}
	if l.holding() {
		now = belief{holds: true, until: l.time(l.machine.Deadline()), weight: l.machine.Weight()}
	}
	if now == l.belief {
		if l.machine.State() == acquisition.Queued {
			w.believes(l.Client, "waits")
		}
		return
	}
	before := l.belief
	l.belief, w.step.belief = now, true
	switch {
	case !now.holds:
	case now.weight > 1:
		l.holds("HOLDS two")
	case before.holds:
		l.holds("HOLDS still,")
	default:
		l.holds("HOLDS")
	}
}

// alarm is when the machine or its caller wants something, the zero time if
// never.
func (l *life) alarm() (at time.Time) {
	if l.done() {
		return time.Time{}
	}
	if wake := l.machine.Wake(); wake != 0 {
		at = l.time(wake)
	}
	if l.waits() && (at.IsZero() || l.patience.Before(at)) {
		at = l.patience
	}
	if now := l.world.engine.Now(); !at.IsZero() && at.Before(now) {
		at = now
	}
	return at
}

// done says whether a holder has seen a renewal, and is to release.
func (l *life) done() bool { return l.renewed && l.holding() }

func (l *life) holding() bool {
	state := l.machine.State()
	return state == acquisition.Held || state == acquisition.Reweighing
}

// waits says whether the caller waits still.
func (l *life) waits() bool {
	state := l.machine.State()
	return state == acquisition.Asking || state == acquisition.Queued
}

// ring is the alarm.
func (l *life) ring() {
	now := l.world.engine.Now()
	if l.waits() && !now.Before(l.patience) {
		l.step(acquisition.Event{What: acquisition.GiveUp})
		return
	}
	l.step(acquisition.Event{What: acquisition.Tick})
}

// wishes are what the caller may do between two calls.
func (l *life) wishes() []acquisition.Event {
	if l.stop.kind != atWait || !l.holding() {
		return nil
	}
	wishes := []acquisition.Event{{What: acquisition.Release}}
	if l.growing && l.machine.Change() == 0 && !l.renewed {
		wishes = append(wishes, acquisition.Event{What: acquisition.Reweigh, Weight: 2})
	}
	return wishes
}

// hurries is what a caller does who waits for nothing, if there is anything.
func (l *life) hurries() (e acquisition.Event, any bool) {
	switch l.machine.State() {
	case acquisition.Asking, acquisition.Queued:
		return acquisition.Event{What: acquisition.GiveUp}, true
	case acquisition.Held, acquisition.Reweighing:
		return acquisition.Event{What: acquisition.Release}, l.stop.kind != atWait
	default:
		return e, false
	}
}

// hear is a message of the server.
func (l *life) hear(message string) {
	var e acquisition.Event
	part := strings.Fields(message)
	switch {
	case len(part) == 5 && part[0] == "grant":
		e.What, e.Answer.Token, e.Answer.NowMs = acquisition.Handed, atoi(part[2]), atoi(part[3])
	case len(part) == 3 && part[0] == "ask":
		e.What, e.After = acquisition.Worth, time.Duration(atoi(part[2]))*time.Millisecond
	}
	if e.What == acquisition.Begin || part[1] != l.id {
		l.world.accuse(Sense, "%s is sent %q", l.Name, message)
		return
	}
	l.step(e)
}

// ops are the calls that can be sent next.
func (l *life) ops() (ops []string) {
	for _, p := range l.pending {
		ops = append(ops, callNames[p.action.Call])
	}
	return ops
}

var callNames = [...]string{
	acquisition.CallAcquire: "acquire", acquisition.CallHeartbeat: "heartbeat", acquisition.CallRenew: "renew",
	acquisition.CallRelease: "release", acquisition.CallCancel: "cancel", acquisition.CallReweigh: "reweigh",
}

// tidy says whether the client's life has ended so that nothing of it may be on
// the server.
func (c *Client) tidy() bool { return c.life != nil && !c.dead && c.life.tidy }

// led says whether a machine leads the client, and is alive.
func (c *Client) led() bool { return c.life != nil && c.begins > 0 && c.stop.kind != atEnd }

// hurries says whether its caller can be in haste.
func (c *Client) hurries() bool {
	if !c.led() {
		return false
	}
	_, can := c.life.hurries()
	return can
}

// lifeChoices are what can happen next to a client that is led.
func (w *world) lifeChoices(i int, first time.Time) (all []Choice) {
	c := w.clients[i]
	if len(c.mail) > 0 {
		all = append(all, Choice{Hear, i, 0})
	}
	alarm := c.life.alarm()
	due := !alarm.IsZero() && !alarm.After(w.engine.Now())
	switch c.stop.kind {
	case atBegin:
		for at := range c.life.pending {
			all = append(all, Choice{Go, i, at})
		}
	case atWait:
		if due || !alarm.IsZero() && alarm.Equal(first) && !w.busy() {
			all = append(all, Choice{Go, i, 0})
		}
	default:
		all = append(all, Choice{Go, i, 0})
	}
	if due && c.stop.kind != atWait {
		all = append(all, Choice{Ring, i, 0})
	}
	for at := range c.life.wishes() {
		all = append(all, Choice{Wish, i, at})
	}
	return all
}

// busy says whether somebody has something to do: then time passes in a pause
// only.
func (w *world) busy() bool {
	return slices.ContainsFunc(w.clients, func(c *Client) bool {
		return c.led() && (c.stop.kind != atWait || c.life.done() || len(c.mail) > 0)
	})
}

// happens hands a machine what is no answer, and lets its goroutine see to what
// comes of it.
func (w *world) happens(c *Client, kind byte, what string, to func()) {
	c.learn(kind, []byte(what))
	to()
	if c.stop.kind == atWait {
		w.goOn(c, proceed)
	}
}

// key is all that the future of a client that is led hangs on, besides what the
// lab knows of every client. What a machine has done with is left out: many ways
// lead to the same state.
func (l *life) key() string {
	var text strings.Builder
	done := []string{"terms", "actions", "scratch"}
	if !l.waits() {
		done = append(done, "waiter")
	} else {
		fmt.Fprint(&text, l.patience)
	}
	if l.machine.State() >= acquisition.Cancelling {
		done = append(done, "lease")
	}
	show(&text, reflect.ValueOf(l.machine).Elem(), done)
	fmt.Fprintf(&text, "%v %v %v %v", l.pending, l.renewed, l.tidy, l.stop.op)
	if l.stop.kind == atAnswer {
		fmt.Fprint(&text, l.begun)
	}
	return text.String()
}

// show prints a value without the fields that are named, and without the text
// of errors, on which nothing hangs.
func show(text *strings.Builder, v reflect.Value, without []string) {
	switch v.Kind() {
	case reflect.Pointer:
		fmt.Fprint(text, v.IsNil())
		if !v.IsNil() {
			show(text, v.Elem(), without)
		}
	case reflect.Interface:
	case reflect.Struct:
		for i := range v.NumField() {
			if !slices.Contains(without, v.Type().Field(i).Name) {
				show(text, v.Field(i), without)
			}
		}
	default:
		fmt.Fprint(text, " ", v)
	}
}
