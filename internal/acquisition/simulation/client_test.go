package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// A client is a process: the shell around its lives, in the plainest form. It has a clock of its own, which goes a little
// wrong, timers that come late, and one inbox.

type client struct {
	world     *world
	name      string
	offset    time.Duration // of its clock,
	rate      time.Duration // and by how much it is wrong, in parts of a million
	cut       cut
	paused    time.Duration // until when it does nothing
	crashed   bool
	closed    bool
	lives     []*life
	byID      map[string]*life
	listening bool
	inbox     interface {
		Pending() bool
		Received() []byte
		Close()
	}
}

// instant is a moment by the client's clock.
func (c *client) instant(at time.Duration) acquisition.Instant {
	return acquisition.Instant(c.offset + at + at*c.rate/1_000_000)
}

// until is for how long it is until a moment by the client's clock.
func (c *client) until(at acquisition.Instant) time.Duration {
	return (time.Duration(at)-c.offset)*1_000_000/(1_000_000+c.rate) + time.Microsecond - c.world.now
}

// hears does something in the client, when it is awake.
func (c *client) hears(do func()) {
	switch {
	case c.crashed:
	case c.world.now < c.paused:
		c.world.after(c.paused-c.world.now, func() { c.hears(do) })
	default:
		do()
	}
}

// listen opens the inbox, and again whenever it is lost.
func (c *client) listen() {
	w := c.world
	c.listening = true
	w.after(w.latency(), func() {
		c.hears(func() {
			if c.inbox != nil {
				return
			}
			if c.cut != cutNot || w.server.down {
				w.after(w.claim/4, func() { c.hears(c.listen) })
				return
			}
			inbox := w.server.engine.Connect()
			inbox.Send([][]byte{[]byte("SUBSCRIBE"), []byte(ledger.InboxPrefix + c.name)})
			inbox.Received()
			c.inbox = inbox
			w.after(w.latency(), func() { c.hears(c.subscribed) })
		})
	})
}

func (c *client) subscribed() {
	w := c.world
	w.note("%s listens", c.name)
	for _, l := range append([]*life(nil), c.lives...) {
		if !l.over {
			l.step(acquisition.Event{What: acquisition.Listening})
		}
	}
}

// unlisten loses the inbox. The client notices, and opens it anew.
func (c *client) unlisten() {
	if c.inbox == nil {
		return
	}
	c.inbox.Close()
	c.inbox = nil
	c.world.after(c.world.claim/4, func() { c.hears(c.listen) })
}

// life is an acquisition of a client, or a lease of a group.
type life struct {
	client   *client
	name     string
	machine  *acquisition.Machine
	terms    acquisition.Terms
	places   []place
	agreed   ledger.Terms
	wish     wish
	answer   outcome // the last
	alarm    acquisition.Instant
	children []*life
	calm     bool // nothing was wrong any more when it was granted
	ended    bool // the holder knows
	given    bool // the caller has it
	over     bool
	verdict  acquisition.Action
	changing int64 // the number of the change that somebody waits for
}

type place struct {
	resource *resource
	id       string
	weight   int
}

func (l *life) arrival() time.Duration { return max(l.terms.Claim, min(l.terms.TTL, 15*time.Minute)) }

// begin begins a life.
func (c *client) begin(l *life) {
	w := c.world
	l.terms.Claim, l.terms.Seed = w.claim, w.random.Uint64()
	if l.wish.deadline > 0 {
		l.terms.Until = c.instant(w.now + l.wish.deadline)
	}
	for i := range l.places {
		w.ids++
		l.places[i].id = fmt.Sprintf("%s:%d", c.name, w.ids)
	}
	l.name = l.places[0].id
	l.machine = acquisition.New(l.terms)
	c.adopt(l)
	l.step(acquisition.Event{What: acquisition.Begin})
	if l.wish.patience > 0 {
		w.after(l.wish.patience, func() { c.hears(l.giveUp) })
	}
}

func (c *client) adopt(l *life) {
	l.client = c
	c.lives = append(c.lives, l)
	for _, p := range l.places {
		c.byID[p.id] = l
		p.resource.alive[p.id] = l
	}
}

// giveUp is a caller whose context ends: he may do so when the lease is there and he has not got it yet.
func (l *life) giveUp() {
	if l.given && !l.client.world.chance(3) {
		return
	}
	for _, child := range append(l.children, l) {
		if s := child.machine.State(); s != acquisition.Reweighing {
			child.given = true
			child.step(acquisition.Event{What: acquisition.GiveUp})
		}
	}
}

// step steps a life, and does what it wants done.
func (l *life) step(e acquisition.Event) {
	c := l.client
	w := c.world
	if c.crashed {
		return
	}
	actions := l.machine.Step(c.instant(w.now), e)
	if w.trace != nil {
		w.note("%s: %v%s → %v%s", l.name, e.What, about(&e), l.machine.State(), deeds(actions))
	}
	for i := range actions {
		l.heed(&actions[i], &e)
	}
	l.setAlarm()
	w.judgeBelief(l)
}

func (l *life) heed(a *acquisition.Action, e *acquisition.Event) {
	c := l.client
	w := c.world
	switch a.Do {
	case acquisition.Send:
		l.send(a)
	case acquisition.Listen:
		if !c.listening {
			c.listen()
		}
	case acquisition.Grant:
		if !l.over && l.machine.State() != acquisition.Cancelling {
			l.granted()
		}
	case acquisition.Reweighed:
		if a.Number >= l.changing {
			l.changing = 0
		}
	case acquisition.End:
		w.judgeEndOfLease(l, a)
		l.ended = true
	case acquisition.Done:
		w.judgeDone(l, a)
		l.over, l.verdict = true, *a
		for _, p := range l.places {
			if c.byID[p.id] == l {
				delete(c.byID, p.id)
			}
		}
	case acquisition.Impossible:
		w.accuse("machine", "%s: %v came in state %v", l.name, e.What, l.machine.State())
	}
}

// setAlarm has the machine woken when it wants to be, or a little later.
func (l *life) setAlarm() {
	c := l.client
	w := c.world
	wake := l.machine.Wake()
	if wake == l.alarm {
		return
	}
	l.alarm = wake
	if wake == 0 {
		return
	}
	late := w.between(0, time.Millisecond)
	if w.now < w.faultsEnd && w.chance(3) {
		late = w.between(0, w.ttl/10)
	}
	w.after(c.until(wake)+late, func() {
		c.hears(func() {
			if l.alarm == wake {
				l.alarm = 0
				l.step(acquisition.Event{What: acquisition.Tick})
			}
		})
	})
}

// granted begins what the caller wanted the lease for.
func (l *life) granted() {
	c := l.client
	w := c.world
	if !l.terms.Passing {
		l.hold()
		return
	}
	arrives := l.machine.Arrives(c.instant(w.now))
	for i, p := range l.places {
		terms := l.terms
		terms.Passing, terms.Weight = false, p.weight
		child := &life{name: p.id, terms: terms, places: []place{p}, wish: l.wish}
		child.machine = acquisition.Resume(terms, l.answer.tokens[i], l.machine.Deadline(), arrives)
		c.adopt(child)
		l.children = append(l.children, child)
		child.setAlarm()
		child.hold()
		w.judgeBelief(child)
	}
}

// hold plans what a holder does.
func (l *life) hold() {
	c := l.client
	w := c.world
	left := l.machine.Deadline().Sub(c.instant(w.now))
	l.calm = w.now > w.calm && w.ttl > time.Second && left > w.claim/2 // packets that are slow are nothing to it
	w.after(w.between(0, time.Millisecond), func() { l.given = true })
	w.after(l.wish.hold, func() {
		c.hears(func() {
			if !l.ended {
				l.step(acquisition.Event{What: acquisition.Release})
			}
		})
	})
	for range l.wish.changes {
		at := w.between(0, l.wish.hold)
		w.after(at, func() { c.hears(l.reweigh) })
	}
}

// reweigh changes the weight, for a while.
func (l *life) reweigh() {
	w := l.client.world
	if l.ended || l.changing != 0 || l.machine.State() != acquisition.Held && l.machine.State() != acquisition.Reweighing {
		return
	}
	weight := 1 + w.random.IntN(l.places[0].resource.limit)
	l.changing = 1 << 60
	number := l.machine.Change() + 1
	l.step(acquisition.Event{What: acquisition.Reweigh, Weight: weight})
	if l.ended {
		return
	}
	l.changing = l.machine.Change()
	if l.changing != number && l.changing != number-1 {
		w.accuse("machine", "%s: change %d after %d", l.name, l.changing, number-1)
	}
	number = l.changing
	w.after(w.between(0, w.claim), func() {
		l.client.hears(func() {
			if l.changing == number {
				l.changing = 0
				l.step(acquisition.Event{What: acquisition.Unreweigh})
			}
		})
	})
}

// send puts a call into a request.
func (l *life) send(a *acquisition.Action) {
	w := l.client.world
	r := &request{
		client: l.client, life: l, call: a.Call, number: a.Number, sent: l.client.instant(w.now), memory: w.server.memory,
	}
	during, weight := a.Wait+a.Bar, a.Weight
	timeout := w.claim
	switch a.Call {
	case acquisition.CallAcquire:
		timeout = w.between(w.claim/10, w.claim)
	case acquisition.CallRenew:
		timeout = min(w.claim, max(l.machine.Deadline().Sub(r.sent)/2, time.Millisecond))
	default:
	}
	if w.wrong == barsNothing && a.Bar > 0 {
		during = time.Millisecond
	}
	r.run = func(s *server) outcome { return l.run(s, r, during, weight) }
	w.send(r, timeout)
}

// run is what the server does for a request: the calls that package signalbox makes, and the answers in the words of the
// machine.
func (l *life) run(s *server, r *request, during time.Duration, weight int) outcome {
	ctx, p := context.Background(), l.places[0]
	switch r.call {
	case acquisition.CallAcquire:
		if l.terms.Passing {
			return l.runGroup(s, during)
		}
		a, err := s.Acquire(ctx, &ledger.AcquireRequest{
			Resource: named(p.resource), ID: p.id, Weight: p.weight, Limit: p.resource.limit, TTL: l.terms.TTL, Wait: during,
			Claim: l.terms.Claim, Terms: l.agreed, Owner: "o",
		})
		return acquired(&a, err)
	case acquisition.CallHeartbeat:
		h := s.HeartbeatAll(ctx, []ledger.HeartbeatRequest{{
			Resource: named(p.resource), IDs: []string{p.id}, Claim: l.terms.Claim,
		}})[0]
		a := acquisition.Answer{Outcome: acquisition.Waiting, Ahead: acquisition.Unknown, NowMs: h.NowMs, Next: h.Next}
		if h.Head == 0 {
			a.Ahead = 0
		}
		if len(h.Gone) > 0 {
			a.Outcome = acquisition.Astray
		}
		return outcome{answer: a, err: h.Err}
	case acquisition.CallRenew:
		n := s.RenewAll(ctx, []ledger.RenewRequest{{
			Resource: named(p.resource), Leases: []ledger.Renewal{{ID: p.id, TTL: l.terms.TTL, Cool: l.agreed.Cool}},
		}})[0]
		if n.Err != nil {
			return outcome{err: n.Err}
		}
		return held(n.Holds[0], nil)
	case acquisition.CallRelease:
		n := s.ReleaseAll(ctx, []ledger.ReleaseRequest{{Resource: named(p.resource), ID: p.id, Bar: during}})[0]
		return held(n.Hold, n.Err)
	case acquisition.CallCancel:
		var requests []ledger.CancelRequest
		for _, p := range l.places {
			requests = append(requests, ledger.CancelRequest{Resource: named(p.resource), ID: p.id, Bar: during})
		}
		o := outcome{answer: acquisition.Answer{Outcome: acquisition.Kept}}
		for _, n := range s.CancelAll(ctx, requests) {
			o.err = n.Err
		}
		return o
	default:
		a, err := s.Reweigh(ctx, named(p.resource), p.id, s.order(r), weight, p.resource.limit)
		return reweighed(&a, err)
	}
}

func (l *life) runGroup(s *server, during time.Duration) outcome {
	request := ledger.GroupRequest{TTL: l.terms.TTL, Wait: during, Claim: l.terms.Claim, Owner: "o"}
	for _, p := range l.places {
		request.Places = append(request.Places, ledger.Place{
			Resource: named(p.resource), ID: p.id, Weight: p.weight, Limit: p.resource.limit,
		})
	}
	a, err := s.AcquireGroup(context.Background(), &request)
	a.Next = min(max(a.Next, 0), time.Hour)
	o := acquired(&a.AcquireAnswer, err)
	o.tokens = a.Tokens
	return o
}

// named is what the ledger knows of a resource.
func named(r *resource) *ledger.Resource {
	handle, _ := ledger.NewResource(r.name) // a name that is none too long
	return handle
}

var outcomes = map[ledger.Outcome]acquisition.Outcome{
	ledger.Granted: acquisition.Granted, ledger.Waiting: acquisition.Waiting, ledger.Refused: acquisition.Refused,
	ledger.Barred: acquisition.Barred, ledger.Heavy: acquisition.Heavy,
}

func acquired(a *ledger.AcquireAnswer, err error) outcome {
	return outcome{err: err, answer: acquisition.Answer{
		Outcome: outcomes[a.Outcome], Token: a.Token, Ahead: a.Ahead, Next: a.Next, NowMs: a.NowMs, InUse: a.Held, Limit: a.Limit,
	}}
}

var holds = map[ledger.Hold]acquisition.Outcome{
	ledger.Held: acquisition.Kept, ledger.Wanted: acquisition.KeptWanted, ledger.Lost: acquisition.Gone,
	ledger.Forced: acquisition.Expelled,
}

func held(hold ledger.Hold, err error) outcome {
	return outcome{err: err, answer: acquisition.Answer{Outcome: holds[hold]}}
}

func reweighed(a *ledger.ReweighAnswer, err error) outcome {
	switch {
	case a.Busy:
		return outcome{err: err, answer: acquisition.Answer{Outcome: acquisition.Refused, InUse: a.InUse, Limit: a.Limit}}
	case a.Stale:
		return outcome{err: err, answer: acquisition.Answer{Outcome: acquisition.Gone}}
	}
	return outcome{err: err, answer: acquisition.Answer{Outcome: holds[a.Hold], Token: a.Token}}
}

// What the trace says.

var (
	calls = []string{"acquire", "heartbeat", "renew", "release", "cancel", "reweigh"}
	words = []string{"", "granted", "waiting", "astray", "refused", "barred", "heavy", "kept", "wanted", "gone", "expelled"}
	whys  = []string{"well", "busy", "heavy", "forced", "expired", "unrenewed", "late", "failure", "in doubt", "released", "closed"}
	does  = []string{
		"send", "listen", "moved", "grant", "refuse", "notice", "renewed", "reweighed", "end", "done", "impossible",
	}
)

func said(o *outcome) string {
	if o.err != nil {
		return o.err.Error()
	}
	return fmt.Sprintf("%s token %d ahead %d next %v now %d", words[o.answer.Outcome], o.answer.Token, o.answer.Ahead,
		o.answer.Next, o.answer.NowMs)
}

func about(e *acquisition.Event) string {
	switch e.What {
	case acquisition.Answered:
		return fmt.Sprintf(" %s %s sent %v", calls[e.Call], words[e.Answer.Outcome], time.Duration(e.Sent))
	case acquisition.Failed:
		return fmt.Sprintf(" %s: %v", calls[e.Call], e.Err)
	case acquisition.Handed:
		return fmt.Sprintf(" token %d now %d", e.Answer.Token, e.Answer.NowMs)
	case acquisition.Reweigh:
		return fmt.Sprintf(" to %d", e.Weight)
	default:
		return ""
	}
}

func deeds(actions []acquisition.Action) string {
	var text strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&text, "; %s", does[a.Do])
		switch a.Do {
		case acquisition.Send:
			fmt.Fprintf(&text, " %s during %v #%d to %d", calls[a.Call], a.Wait+a.Bar, a.Number, a.Weight)
		case acquisition.Refuse, acquisition.End, acquisition.Done, acquisition.Reweighed:
			fmt.Fprintf(&text, " (%s)", whys[a.Why])
		default:
		}
	}
	return text.String()
}
