package simulation

import (
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// The nemesis does a few things to a history, at random times. Some of them nobody can bear: who holds when the server loses
// its memory, or its clock is set forward, does not count any more (world.epoch), tokens and turns do. A clock that is set
// back and a memory that is lost do not meet in one history, since tokens are bounded by both.

// cut says what does not come through to or from a client.
type cut int

const (
	cutNot cut = iota
	cutRequests
	cutReplies
	cutBoth
	cutRefused // connections are refused: a request surely did nothing
)

// furthest is how far the server's clock is set.
const furthest = 8 * time.Second

func (w *world) planFaults() {
	w.faultsEnd = w.now + w.between(w.ttl, 3*w.ttl+2*w.claim)
	w.calm = w.faultsEnd
	back := w.chance(50)
	for range w.random.IntN(5) {
		at, c := w.between(0, w.faultsEnd-w.now), w.clients[w.random.IntN(len(w.clients))]
		switch w.random.IntN(9) {
		case 0:
			w.after(at, c.crash)
		case 1, 2:
			w.after(at, func() { c.pause(w.between(0, w.ttl*3/2)) })
		case 3, 4:
			kind, d := cutRequests+cut(w.random.IntN(4)), w.between(0, w.ttl+w.claim)
			w.after(at, func() { c.cutOff(kind, d) })
		case 5:
			w.after(at, c.unlisten)
		case 6:
			w.after(at, c.close)
		case 7:
			if !back {
				w.after(at, w.restart)
			}
		case 8:
			ahead := w.between(0, furthest)
			if back {
				ahead = -ahead
			}
			w.after(at, func() { w.setClock(ahead) })
		}
	}
}

func (c *client) crash() {
	c.world.note("nemesis: %s crashes", c.name)
	c.crashed = true
	c.unlisten()
}

func (c *client) pause(d time.Duration) {
	c.world.note("nemesis: %s stands still for %v", c.name, d)
	c.paused = max(c.paused, c.world.now+d)
	c.world.calm = max(c.world.calm, c.paused)
}

func (c *client) cutOff(kind cut, d time.Duration) {
	w := c.world
	w.note("nemesis: %s is cut off (%d) for %v", c.name, kind, d)
	c.cut = kind
	c.unlisten()
	w.calm = max(w.calm, w.now+d)
	w.after(d, func() { c.cut = cutNot })
}

func (c *client) close() {
	w := c.world
	c.hears(func() {
		if c.closed {
			return
		}
		w.note("%s closes", c.name)
		c.closed = true
		for _, l := range append([]*life(nil), c.lives...) {
			if !l.over {
				l.given = true
				l.step(acquisition.Event{What: acquisition.Close})
			}
		}
	})
}

func (w *world) restart() {
	w.note("nemesis: the server restarts, without memory")
	w.server.memory++
	w.epoch++
	w.server.down = true
	w.server.do("FLUSHALL")
	for _, c := range w.clients {
		c.unlisten()
	}
	w.calm = max(w.calm, w.now+w.claim)
	w.after(w.between(0, w.claim), func() { w.server.down = false })
}

func (w *world) setClock(ahead time.Duration) {
	w.note("nemesis: the server's clock is set by %v", ahead)
	if ahead > 0 {
		w.epoch++
		w.forward = true
	}
	w.server.ahead += ahead
	if w.server.ahead < -furthest {
		w.server.ahead = -furthest
	}
}
