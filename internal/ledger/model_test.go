package ledger_test

import (
	"slices"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// The model is the ledger as one would write it without a server: slices and loops. Random transitions go to both
// (model_system_test.go); every answer, every message, and after each everything inspect shows must agree. Time is moved by
// hand: the deadlines on the server are minutes away, and a deadline is passed by writing one that lies in the past.

// entry is a lease or a waiter, with the terms it came with.
type entry struct {
	id            string
	weight, limit int
	over          bool // its deadline has passed
	cool          bool // its permits rest when it has expired,
	hold          bool // or when it is released
	burst         int  // of its pace, 0 if it has none
	notice, group bool
	reweighed     int64 // number of the last reweigh that was applied
}

// model is one resource.
type model struct {
	operator int
	leases   []entry
	queue    []entry
	barred   map[string]bool
	paced    int      // paced grants that are not worn off yet, an hour each
	told     []string // "verb id": messages of the last transition, but "ask"
	noticed  []string // granted in this transition, and want notice
}

func find(list []entry, id string) int {
	return slices.IndexFunc(list, func(e entry) bool { return e.id == id })
}

func without(list []entry, id string) []entry {
	return slices.DeleteFunc(list, func(e entry) bool { return e.id == id })
}

func (m *model) held() (sum int) {
	for _, lease := range m.leases {
		sum += lease.weight
	}
	return sum
}

func (m *model) effective(stated int) int {
	if m.operator > 0 {
		return m.operator
	}
	return stated
}

// settle ends what is over. Permits with a cool-down rest.
func (m *model) settle() {
	var rest []entry
	for _, e := range m.leases {
		if e.over && e.cool {
			rest = append(rest, entry{id: "!" + e.id, weight: e.weight})
		}
	}
	over := func(e entry) bool { return e.over }
	m.leases = append(slices.DeleteFunc(m.leases, over), rest...)
	m.queue = slices.DeleteFunc(m.queue, over)
}

// slow reports whether the pace holds a grant back.
func (m *model) slow(e entry) bool { return e.burst > 0 && m.paced > e.burst-1 }

func (m *model) grant(e entry) {
	m.leases = append(m.leases, e)
	if e.burst > 0 {
		m.paced++
	}
	if e.notice {
		m.noticed = append(m.noticed, e.id)
	}
}

// promote grants from the head of the queue. Whoever is being answered gets no message.
func (m *model) promote(caller string) {
	for len(m.queue) > 0 {
		head := m.queue[0]
		limit := m.effective(head.limit)
		if head.weight <= limit && (m.held()+head.weight > limit || head.group || m.slow(head)) {
			return
		}
		m.queue = m.queue[1:]
		switch {
		case head.weight > limit:
			m.told = append(m.told, "heavy "+head.id)
		case head.id == caller:
			m.grant(head)
		default:
			m.grant(head)
			m.told = append(m.told, "grant "+head.id)
		}
	}
}

// finish ends a transition.
func (m *model) finish(caller string) {
	m.promote(caller)
	for _, id := range m.noticed {
		if len(m.queue) > 0 {
			m.told = append(m.told, "wanted "+id)
		}
	}
	m.noticed = nil
}

// call begins a transition.
func (m *model) call() {
	m.told = nil
	m.settle()
}

// wanted tells the holders who asked for it that somebody waits where nobody did.
func (m *model) wanted() {
	for _, e := range m.leases {
		if e.notice {
			m.told = append(m.told, "wanted "+e.id)
		}
	}
}

func (m *model) acquire(asks entry, wait bool) ledger.Outcome {
	m.call()
	defer m.finish(asks.id)
	if find(m.leases, asks.id) >= 0 {
		return ledger.Granted
	}
	if m.barred[asks.id] {
		return ledger.Barred
	}
	at := find(m.queue, asks.id)
	if at >= 0 {
		asks = m.queue[at]
	}
	if asks.weight > m.effective(asks.limit) {
		m.queue = without(m.queue, asks.id)
		return ledger.Heavy
	}
	if at < 0 {
		m.promote("")
		if len(m.queue) == 0 && m.held()+asks.weight <= m.effective(asks.limit) && !m.slow(asks) {
			m.grant(asks)
			return ledger.Granted
		}
		if !wait {
			return ledger.Refused
		}
		if len(m.queue) == 0 {
			m.wanted()
		}
		m.queue = append(m.queue, asks)
	}
	m.promote(asks.id)
	if find(m.leases, asks.id) >= 0 {
		return ledger.Granted
	}
	return ledger.Waiting
}

// hold is what a transition answers that needs a lease.
func (m *model) hold(id string) ledger.Hold {
	switch {
	case find(m.leases, id) >= 0:
		return ledger.Held
	case m.barred[id]:
		return ledger.Forced
	}
	return ledger.Lost
}

// giveBack ends a lease by its holder's will.
func (m *model) giveBack(id string) {
	e := m.leases[find(m.leases, id)]
	m.leases = without(m.leases, id)
	if e.hold {
		m.leases = append(m.leases, entry{id: "!" + id, weight: e.weight})
	}
}

func (m *model) release(id string) ledger.Hold {
	m.call()
	defer m.finish("")
	hold := m.hold(id)
	if hold == ledger.Held {
		m.giveBack(id)
	}
	return hold
}

// remove is cancel, force, and the release of a lease that may be asked for still.
func (m *model) remove(id string, byHolder bool) ledger.Cancelled {
	m.call()
	defer m.finish("")
	switch {
	case find(m.leases, id) >= 0 && byHolder:
		m.giveBack(id)
		return ledger.WasHeld
	case find(m.leases, id) >= 0:
		m.leases = without(m.leases, id)
		return ledger.WasHeld
	case find(m.queue, id) >= 0:
		m.queue = without(m.queue, id)
		return ledger.WasWaiting
	}
	return ledger.WasUnknown
}

// reweigh answers with the weight and what stands against it: "busy", "stale" or nothing.
func (m *model) reweigh(id string, number int64, weight, stated int) (hold ledger.Hold, against string) {
	m.call()
	defer m.finish("")
	hold = m.hold(id)
	if hold != ledger.Held {
		return hold, ""
	}
	lease := &m.leases[find(m.leases, id)]
	if number < lease.reweighed {
		return hold, "stale"
	}
	if number == lease.reweighed {
		return hold, ""
	}
	if weight > lease.weight {
		m.promote("")
		lease = &m.leases[find(m.leases, id)]
		if len(m.queue) > 0 || m.held()-lease.weight+weight > m.effective(stated) {
			return hold, "busy"
		}
	}
	lease.weight, lease.reweighed = weight, number
	return hold, ""
}

// heartbeat says which of the ids is the head, -1 if none is, and which do not wait.
func (m *model) heartbeat(ids []string) (head int, gone []int) {
	m.call()
	m.finish("")
	head = -1
	for i, id := range ids {
		switch find(m.queue, id) {
		case -1:
			gone = append(gone, i)
		case 0:
			head = i
		}
	}
	return head, gone
}

// place is what a group asks of one resource.
type place struct {
	of   *model
	asks entry
}

// acquireGroup is acquire_group.lua: look at all, then act on all. which is the place that the outcome is about.
func acquireGroup(places []place, wait bool) (outcome ledger.Outcome, which int) {
	held, stand, barred, heavy, busy := 0, 0, -1, -1, -1
	first := func(at *int, i int) {
		if *at < 0 {
			*at = i
		}
	}
	for i, p := range places {
		m, e := p.of, p.asks
		m.call()
		m.promote(e.id)
		switch {
		case find(m.leases, e.id) >= 0:
			held++
		case m.barred[e.id]:
			first(&barred, i)
		case e.weight > m.effective(e.limit):
			first(&heavy, i)
		default:
			at := find(m.queue, e.id)
			if at >= 0 {
				stand++
			}
			if (len(m.queue) > 0 && at != 0) || m.held()+e.weight > m.effective(e.limit) {
				first(&busy, i)
			}
		}
		m.finish(e.id)
	}
	switch {
	case held == len(places):
		return ledger.Granted, 0
	case barred >= 0 || held > 0 || heavy >= 0 || (busy >= 0 && !wait):
		for _, p := range places {
			p.of.queue = without(p.of.queue, p.asks.id)
			p.of.finish("")
		}
		switch {
		case barred >= 0 || held > 0:
			return ledger.Barred, max(barred, 0)
		case heavy >= 0:
			return ledger.Heavy, heavy
		}
		return ledger.Refused, busy
	case busy < 0:
		for _, p := range places {
			p.of.queue = without(p.of.queue, p.asks.id)
			p.of.grant(p.asks)
			p.of.finish("")
		}
		return ledger.Granted, 0
	}
	for _, p := range places {
		if len(p.of.queue) == 0 {
			p.of.wanted()
		}
		if stand < len(places) {
			p.of.queue = append(without(p.of.queue, p.asks.id), p.asks)
		}
		p.of.finish(p.asks.id)
	}
	return ledger.Waiting, 0
}
