package simulation

import (
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
)

// What clients want: permits of a few resources, one by one or together, for a while; some change the weight meanwhile, some
// have no patience, some only try, some want to be told.

// wish is what a caller wants beside the terms.
type wish struct {
	hold     time.Duration
	patience time.Duration // until he gives up, 0 = never
	deadline time.Duration // of his context
	changes  int           // of the weight
}

// plan draws a history.
func (w *world) plan() {
	w.claim = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}[w.random.IntN(3)]
	w.ttl = []time.Duration{200 * time.Millisecond, 2 * time.Second, 10 * time.Second}[w.random.IntN(3)]
	for i := range 1 + w.random.IntN(2) {
		w.resources = append(w.resources, &resource{
			name: string(rune('x' + i)), limit: []int{1, 1, 2, 4}[w.random.IntN(4)],
			known: make(map[int64]bool), sure: make(map[string]int), alive: make(map[string]*life),
		})
	}
	for i := range 2 + w.random.IntN(3) {
		w.clients = append(w.clients, &client{
			world: w, name: string(rune('A' + i)), byID: make(map[string]*life),
			offset: w.between(0, time.Hour), rate: w.between(-10_000, 10_000),
		})
	}
	w.planFaults()
	span := w.faultsEnd - w.now
	for range 4 + w.random.IntN(8) {
		c := w.clients[w.random.IntN(len(w.clients))]
		l := w.draw()
		w.after(w.between(0, span), func() {
			c.hears(func() {
				if !c.closed {
					c.begin(l)
				}
			})
		})
	}
	w.note("claim %v, ttl %v, faults until %v", w.claim, w.ttl, w.faultsEnd-origin)
	for _, r := range w.resources {
		w.note("%s has %d", r.name, r.limit)
	}
}

// draw draws an acquisition.
func (w *world) draw() *life {
	l := &life{terms: acquisition.Terms{TTL: w.ttl, Wait: !w.chance(10)}}
	for _, r := range w.resources {
		l.places = append(l.places, place{resource: r, weight: 1 + w.random.IntN(r.limit)})
	}
	if len(l.places) > 1 && w.chance(25) {
		l.terms.Passing = true
	} else {
		i := w.random.IntN(len(l.places))
		l.places = l.places[i : i+1]
		l.terms.Weight = l.places[0].weight
		l.terms.Places, l.terms.Notice = w.chance(10), w.chance(10)
		l.agreed.Notice = l.terms.Notice
	}
	l.wish.hold = w.between(0, w.ttl*3/2)
	if w.chance(50) {
		l.wish.hold /= 20
	}
	if w.chance(20) {
		l.wish.patience = w.between(time.Millisecond, 2*w.claim)
	}
	if w.chance(10) {
		l.wish.deadline = w.between(time.Millisecond, 2*w.claim)
		l.wish.patience = l.wish.deadline
	}
	if w.chance(40) {
		l.wish.changes = 1 + w.random.IntN(6)
	}
	return l
}
