package simulation

import (
	"errors"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// The network takes a request to the server and the answer back, if it does. Whoever waited long enough takes it for lost; it
// may still arrive, for as long as packages acquisition and ledger say that it may.

// request is a call on its way. run makes it.
type request struct {
	client *client
	life   *life
	call   acquisition.Call
	number int64
	sent   acquisition.Instant // by the client's clock
	run    func(*server) outcome
	told   bool // the client knows what became of it, or takes it for lost
	memory int  // of the server, when it was sent: a connection does not outlive a restart
}

// outcome is what the server did.
type outcome struct {
	answer acquisition.Answer
	tokens []int64 // of a group
	err    error
}

var (
	errTimeout = errors.New("no answer in time")
	errBroken  = errors.New("the connection broke")
	errRefused = errors.New("the connection was refused")
)

// latency is how long a packet takes when nothing is wrong.
func (w *world) latency() time.Duration {
	if w.chance(5) {
		return w.between(time.Millisecond, 50*time.Millisecond)
	}
	return w.between(100*time.Microsecond, 2*time.Millisecond)
}

// send takes a request on.
func (w *world) send(r *request, timeout time.Duration) {
	c := r.client
	w.after(timeout, func() { w.fail(r, errTimeout, false) })
	if c.cut == cutRefused || w.server.down {
		w.after(w.latency(), func() { w.fail(r, errRefused, true) })
		return
	}
	if w.now < w.faultsEnd && w.random.IntN(400) == 0 {
		c.pause(w.between(0, w.ttl*3/2)) // when it hurts most: the answer is on its way
	}
	delay, lost := w.latency(), c.cut == cutRequests || c.cut == cutBoth
	if w.now < w.faultsEnd {
		switch w.random.IntN(40) {
		case 0:
			lost = true
		case 1, 2:
			delay = w.between(0, r.life.arrival()*9/10)
		case 3:
			delay = w.between(0, r.life.arrival()*9/10)
			w.after(w.latency(), func() { w.fail(r, errBroken, false) })
		}
		if lost && w.chance(50) { // it is sent again and again, and comes through in the end
			delay, lost = w.between(0, r.life.arrival()*9/10), false
		}
	}
	if lost {
		return
	}
	w.after(delay, func() { w.arrive(r) })
}

// arrive has the server do what a request asks for.
func (w *world) arrive(r *request) {
	c := r.client
	if r.memory != w.server.memory || w.server.down {
		w.fail(r, errBroken, false)
		return
	}
	o := w.server.serve(r)
	if w.trace != nil {
		w.note("server: %s %v → %s", r.life.name, calls[r.call], said(&o))
	}
	if c.cut == cutReplies || c.cut == cutBoth || w.now < w.faultsEnd && w.chance(4) {
		return
	}
	w.after(w.latency(), func() {
		c.hears(func() {
			if r.told {
				return
			}
			r.told = true
			if w.wrong == countsFromAnswers {
				r.sent = c.instant(w.now)
			}
			if o.err != nil {
				r.life.step(acquisition.Event{What: acquisition.Failed, Call: r.call, Sent: r.sent, Number: r.number, Err: o.err})
				return
			}
			r.life.answer = o
			r.life.step(acquisition.Event{
				What: acquisition.Answered, Call: r.call, Sent: r.sent, Number: r.number, Answer: o.answer,
			})
		})
	})
}

// fail tells a client that it will hear no answer.
func (w *world) fail(r *request, err error, undone bool) {
	if r.told {
		return
	}
	r.client.hears(func() {
		if !r.told {
			r.told = true
			r.life.step(acquisition.Event{
				What: acquisition.Failed, Call: r.call, Sent: r.sent, Number: r.number, Err: err, Undone: undone,
			})
		}
	})
}

// post sends a client a message.
func (c *client) post(message string) {
	w := c.world
	if w.now < w.faultsEnd {
		switch w.random.IntN(20) {
		case 0, 1:
			w.note("message lost: %s", message)
			return
		case 2:
			w.after(w.between(0, 2*w.claim), func() { c.message(message) })
			return
		case 3:
			w.after(w.latency(), func() { c.message(message) }) // twice
		}
	}
	w.after(w.latency(), func() { c.message(message) })
}

// message steps the life that it is for.
func (c *client) message(message string) {
	c.hears(func() {
		verb, id, n := fields(message)
		l := c.byID[id]
		if l == nil {
			return
		}
		e := acquisition.Event{}
		switch verb {
		case "grant":
			e.What, e.Answer = acquisition.Handed, acquisition.Answer{Token: n[0], NowMs: n[1]}
		case "heavy":
			e.What, e.Answer = acquisition.TooHeavy, acquisition.Answer{Limit: int(n[0])}
		case "ask":
			e.What, e.After = acquisition.Worth, time.Duration(n[0])*time.Millisecond
		case "wanted":
			e.What = acquisition.Wanted
		case "force":
			e.What = acquisition.Forced
		}
		l.step(e)
	})
}
