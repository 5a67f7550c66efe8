package racelab

import (
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/stepped"
)

// Choice is one step of a schedule: what happens next, and to whom.
type Choice struct {
	Kind ChoiceKind `json:"kind"`
	// Client counts from 0; -1 if it is about none.
	Client int `json:"client"`
	// Index says which of the pauses, skews, calls or wishes it is.
	Index int `json:"index,omitempty"`
}

// ChoiceKind is what happens.
type ChoiceKind string

// Go lets a client go on from where it stands; a request is run and answered, a
// sleep passes. Hear gives it the first message of its inbox. Ring is its alarm
// while it has something else to do, Wish what its caller wants. The others are
// faults.
const (
	Go   ChoiceKind = "go"
	Hear ChoiceKind = "hear"
	Ring ChoiceKind = "ring"
	Wish ChoiceKind = "wish"
)

func faulty(f Fault) ChoiceKind { return ChoiceKind(f) }

// IsFault says whether a choice is a misfortune.
func (c Choice) IsFault() bool {
	return !slices.Contains([]ChoiceKind{Go, Hear, Ring, Wish}, c.Kind)
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is an engine, its clients, and the state of one run. All of it is used by
// one goroutine at a time: the lab's, or that of the client that it has let go.
type world struct {
	algorithm    *Algorithm
	engine       *stepped.Engine
	clients      []*Client
	visitor      *Client
	parked       chan *Client
	round        int
	ticks        int
	queue        []int             // clients that were told to wait, in order
	names        map[string]string // of scripts, by their digests
	mutants      map[string]string // of digests, those of what runs instead
	rows         *[]Row            // nil unless the run is written down
	row          *Row              // of the step under way
	violation    *Violation
	visits       map[string]bool // whether a visitor is let in, by the state of the server
	step         footprint
	probing      bool   // the footprint of the step is wanted
	refreshed    string // who was told so in this step
	paused       bool   // the step before was a pause
	newest       int64  // token that a client has heard of, and before the step
	newestBefore int64
}

func newWorld(a *Algorithm, clients int) *world {
	w := &world{
		algorithm: a, engine: stepped.New(epoch), parked: make(chan *Client), visits: map[string]bool{},
		names: map[string]string{}, mutants: map[string]string{},
	}
	for i := range clients {
		w.clients = append(w.clients, newClient(w, string(rune('A'+i))))
	}
	w.visitor = newClient(w, "visitor")
	for _, c := range append(w.clients[:clients:clients], w.visitor) {
		go c.serve()
	}
	return w
}

// close ends all goroutines.
func (w *world) close() {
	w.end()
	for _, c := range append(slices.Clone(w.clients), w.visitor) {
		close(c.start)
		_ = c.Redis.Close() // connections of our own
	}
	w.engine.Close()
}

// begin starts a run: all clients stand before their first call.
func (w *world) begin() {
	w.end()
	w.round++
	w.engine.Reset(epoch)
	w.ticks, w.queue, w.violation, w.newest = 0, nil, nil, 0
	for _, c := range w.clients {
		w.enter(c)
	}
}

// enter starts a client's life.
func (w *world) enter(c *Client) {
	c.conns = slices.DeleteFunc(c.conns, func(k *conn) bool { return k.lost })
	c.stop, c.dead, c.skew, c.tick, c.begins, c.ids = stop{}, false, 0, 0, 0, 0
	c.history, c.mail, c.belief, c.inbox, c.listen, c.life, c.notes = [32]byte{}, nil, belief{}, nil, nil, nil, nil
	if w.algorithm.Listens {
		c.inbox = w.engine.Connect()
		c.inbox.Send([][]byte{[]byte("SUBSCRIBE"), []byte(inboxOf(c))})
		c.inbox.Received()
	}
	c.start <- struct{}{}
	<-w.parked
}

// end crashes whoever has not ended.
func (w *world) end() {
	if w.round == 0 {
		return
	}
	for _, c := range w.clients {
		if c.stop.kind != atEnd {
			w.crash(c)
		}
	}
}

func (w *world) crash(c *Client) {
	c.dead = true
	for _, k := range c.conns {
		k.drop()
	}
	w.goOn(c, crashed)
}

// goOn lets a client go until it stops again.
func (w *world) goOn(c *Client, v verdict) {
	if c.stop.kind == atNotice {
		c.listen.ring <- struct{}{} // who has crashed ends like one whose time is up
	} else {
		c.resume <- v
	}
	<-w.parked
}

// choices are what can happen next, what needs no fault first.
func (w *world) choices(faults bool) (all []Choice) {
	first := w.firstWake()
	for i, c := range w.clients {
		switch {
		case c.stop.kind == atEnd:
		case w.isLater(i):
		case c.led():
			all = append(all, w.lifeChoices(i, first)...)
		case c.stop.kind == atNotice && len(c.mail) > 0:
			all = append(all, Choice{Hear, i, 0})
			fallthrough
		case c.stop.kind == atSleep || c.stop.kind == atNotice || c.stop.kind == atBlocked && !c.stop.conn.remote.Pending():
			if wake := c.wake(); !wake.IsZero() && wake.Equal(first) {
				all = append(all, Choice{Go, i, 0})
			}
		default:
			all = append(all, Choice{Go, i, 0})
		}
	}
	if faults {
		for _, f := range w.algorithm.Faults {
			all = append(all, w.misfortunes(f)...)
		}
	}
	return all
}

// isLater says whether a client must not begin yet. They are all alike, so that
// they may as well begin in the order of their names.
func (w *world) isLater(i int) bool {
	return i > 0 && w.clients[i].begins == 0 && w.clients[i-1].begins == 0
}

// wake is when a client goes on by itself, the zero time if never.
func (c *Client) wake() time.Time {
	switch c.stop.kind {
	case atSleep, atNotice:
		return c.stop.wake
	case atWait:
		return c.life.alarm()
	case atBlocked:
		if !c.stop.conn.remote.Pending() {
			_, until, _ := c.stop.conn.remote.Blocked()
			return until
		}
	}
	return time.Time{}
}

func (w *world) firstWake() (first time.Time) {
	for _, c := range w.clients {
		if wake := c.wake(); !wake.IsZero() && (first.IsZero() || wake.Before(first)) {
			first = wake
		}
	}
	return first
}

// misfortunes are the choices of one kind of fault.
func (w *world) misfortunes(f Fault) (all []Choice) {
	living := 0
	for i, c := range w.clients {
		here := c.stop.kind
		if here == atEnd || w.isLater(i) {
			continue
		}
		if c.begins > 0 {
			living++
		}
		asks := here == atRequest || here == atBegin && w.algorithm.Timeless
		switch {
		case f == Crash && c.begins > 0 && (here != atBegin || w.algorithm.Timeless),
			f == LoseRequest && asks,
			f == LoseReply && (asks && c.life == nil || here == atAnswer || here == atBlocked && c.stop.conn.remote.Pending()),
			f == LoseMessage && len(c.mail) > 0,
			f == Haste && c.hurries():
			all = append(all, Choice{faulty(f), i, 0})
			for at := 1; f == LoseRequest && c.led() && at < len(c.life.pending); at++ {
				all = append(all, Choice{faulty(f), i, at})
			}
		case f == Skew && here == atBegin && c.begins == 0 && c.skew == 0:
			for at := range w.algorithm.Skews {
				all = append(all, Choice{faulty(f), i, at})
			}
		}
	}
	if f == Pause && living > 0 && !w.paused {
		for at := range w.algorithm.Pauses {
			all = append(all, Choice{faulty(f), -1, at})
		}
	}
	return all
}

// do makes a choice come true, up to where everybody stands again.
func (w *world) do(choice Choice) {
	w.step, w.refreshed, w.paused = footprint{client: choice.Client}, "", choice.Kind == faulty(Pause)
	w.newestBefore = w.newest
	w.open(choice)
	before := w.lineUp()
	var c *Client
	if choice.Client >= 0 {
		c = w.clients[choice.Client]
	}
	switch choice.Kind {
	case Go:
		w.proceed(c, choice.Index)
	case Ring:
		w.happens(c, 't', "", c.life.ring)
	case Wish:
		wish := c.life.wishes()[choice.Index]
		w.happens(c, 'w', wish.What.String(), func() { c.life.step(wish) })
	case Hear, faulty(LoseMessage):
		w.deliver(c, choice.Kind == Hear)
	case faulty(Crash):
		w.step.belief = true
		w.crash(c)
		c.belief = belief{}
		w.leaveQueue(choice.Client)
	case faulty(LoseRequest), faulty(LoseReply):
		if c.stop.kind == atBegin {
			w.beginCall(c, choice.Index)
		}
		if c.stop.kind != atEnd {
			w.request(c, choice.Kind == faulty(LoseReply), false)
		}
	case faulty(Haste):
		e, _ := c.life.hurries()
		w.happens(c, 'w', e.What.String(), func() { c.life.step(e) })
	case faulty(Skew):
		c.skew = w.algorithm.Skews[choice.Index]
	case faulty(Pause):
		w.pass(w.algorithm.Pauses[choice.Index])
	}
	w.collect()
	w.judge()
	w.judgeAsleep()
	w.judgeServer(before)
	w.shut()
}

// proceed lets a client go on from where it stands.
func (w *world) proceed(c *Client, call int) {
	switch c.stop.kind {
	case atBegin:
		w.beginCall(c, call)
		if w.algorithm.Timeless && c.stop.kind == atRequest {
			w.request(c, true, true)
		}
	case atRequest, atAnswer:
		w.request(c, true, true)
	case atBlocked:
		if !c.stop.conn.remote.Pending() {
			w.passUntil(c.wake())
		}
		w.answer(c)
	case atWait:
		w.passUntil(c.wake())
		w.happens(c, 't', "", c.life.ring)
	case atSleep, atNotice:
		w.passUntil(c.wake())
		c.learn('s', nil)
		w.goOn(c, proceed)
	}
}

// beginCall lets a client begin, which is when it reads its clock.
func (w *world) beginCall(c *Client, call int) {
	if c.led() {
		c.life.picked = call
		c.stop.op = c.life.ops()[call]
	}
	c.begins++
	c.begun = w.engine.Now()
	if !w.algorithm.Timeless {
		w.step.begins = true
		w.ticks++
		c.tick = w.ticks
	}
	c.learn('b', []byte(c.stop.op))
	w.goOn(c, proceed)
}

func (w *world) passUntil(t time.Time) {
	if d := t.Sub(w.engine.Now()); d > 0 {
		w.pass(d)
	}
}

func (w *world) pass(d time.Duration) {
	w.step.clock = true
	w.engine.Advance(d)
}

// request runs what a client has sent, unless it is lost, and answers, unless
// the reply is lost. A script that the server does not know yet is sent again
// by its client with its text, which is no step of its own.
func (w *world) request(c *Client, run, heard bool) {
	k := c.stop.conn
	if c.stop.kind == atRequest && run {
		w.execute(c)
		for strings.HasPrefix(string(k.reply), "-NOSCRIPT") {
			w.goOn(c, proceed)
			k = c.stop.conn
			w.execute(c)
		}
	}
	if !heard {
		w.got(k.reply)
		k.reply = nil
		k.hangUp()
		c.learn('l', nil)
		w.goOn(c, broken)
		return
	}
	if _, _, blocked := k.remote.Blocked(); blocked {
		c.stop.kind, c.served, w.step.changed = atBlocked, false, true
		w.queue = append(w.queue, slices.Index(w.clients, c))
		return
	}
	if c.life != nil && c.stop.kind == atRequest {
		c.stop.kind = atAnswer
		return
	}
	w.got(k.reply)
	c.learn('r', k.reply)
	if !w.listens(c, k) {
		w.goOn(c, proceed)
	}
}

// execute runs the request that a client stands at.
func (w *world) execute(c *Client) {
	k := c.stop.conn
	c.sent = w.engine.Now() // who stands at a request has not sent it yet
	k.watching()
	if w.probing {
		w.step.reach(w.engine, k)
	}
	w.learnScripts(k.request)
	k.run(w.mutated(k.request))
	w.sent(k)
	k.last = strings.ToLower(string(k.request[0][0]))
	k.reply = k.remote.Received()
	w.step.changed = w.step.changed || w.probing && touches(w.engine, k.request, k.reply)
	k.request = nil
}

// answer gives a blocked client the reply that it has waited for.
func (w *world) answer(c *Client) {
	k := c.stop.conn
	k.reply = k.remote.Received()
	w.got(k.reply)
	w.leaveQueue(slices.Index(w.clients, c))
	c.learn('r', k.reply)
	w.goOn(c, proceed)
}
