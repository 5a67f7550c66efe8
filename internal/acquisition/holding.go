package acquisition

import "time"

// While there is a lease. It is renewed each third of its ttl, and ends here, whatever the server may say later, a margin
// before it can end there.
//
// A change of weight has a number, by which the server tells a request that comes late from a new one, and this side tells
// the answers apart. Only one is under way. Until it is answered the holder believes in the smaller weight, and it is asked
// for again with the same number. A larger weight that nobody waits for any more is taken back by a change of its own, with
// the next number: that can always be done, whatever became of the one before.

// lease is what a life knows while it holds.
type lease struct {
	token    int64
	weight   int
	deadline Instant
	renewAt  Instant // 0 while a renewal is under way
	due      Instant // of the last renewal
	reach    Instant // until when a renewal that was not answered may keep it on the server
	failures int     // of renewals, in a row
	trouble  error   // what the server said last, or the first of them
	change   change
}

// change is a change of weight that is not answered yet.
type change struct {
	number   int64 // of this one, or of the last
	from, to int
	began    Instant
	retryAt  Instant // 0 while a request is under way
	failures int
	doubtful bool // a request was not answered, and may have been the one
	told     bool // the holder was told that it is in doubt
	next     int  // what the holder wants then, 0 if nothing
}

// Resume returns the life of a lease that the server granted otherwise: to a group. It ends there at `expires`. arrives is
// until when a request to acquire it may still arrive.
func Resume(terms Terms, token int64, expires, arrives Instant) *Machine {
	m := New(terms)
	m.arrives = arrives
	m.hold(token, terms.Weight, expires, terms.TTL)
	return m
}

// Arrives is until when a request to acquire may still arrive.
func (m *Machine) Arrives(now Instant) Instant {
	if m.acquires > 0 {
		return max(m.arrives, now.Add(m.terms.arrival()))
	}
	return m.arrives
}

func (m *Machine) hold(token int64, weight int, expires Instant, span time.Duration) {
	third := min(span, m.terms.TTL) / 3
	m.state = Held
	m.lease = lease{
		token: token, weight: weight, deadline: expires.Add(-Margin(span)),
		renewAt: expires.Add(third - span).align(third / 8),
	}
	m.do(Action{Do: Grant})
	if m.terms.Notice {
		m.do(Action{Do: Listen})
	}
	m.watchLease()
}

// watchLease derives when the lease needs something.
func (m *Machine) watchLease() {
	m.wake = m.lease.deadline
	for _, at := range [...]Instant{m.lease.renewAt, m.lease.change.retryAt} {
		if at != 0 {
			m.wake = min(m.wake, at)
		}
	}
}

// keep does what is due for a lease.
func keep(m *Machine, now Instant, _ *Event) {
	l := &m.lease
	if now >= l.deadline {
		m.lose(now, Action{Why: Unrenewed, Err: l.trouble})
		return
	}
	if l.renewAt != 0 && now >= l.renewAt {
		l.due, l.renewAt = l.renewAt, 0
		m.do(Action{Do: Send, Call: CallRenew})
	}
	if m.state == Reweighing && l.change.retryAt != 0 && now >= l.change.retryAt {
		m.sendChange()
	}
	m.watchLease()
}

// noticeAgain asks whether somebody waits, when the message may have gone by.
func noticeAgain(m *Machine, now Instant, e *Event) {
	if m.terms.Notice && m.lease.renewAt != 0 {
		m.lease.renewAt = now
		keep(m, now, e)
	}
}

func wanted(m *Machine, _ Instant, _ *Event) { m.do(Action{Do: Notice}) }

func forcedHeld(m *Machine, now Instant, _ *Event) { m.lose(now, Action{Why: WasForced}) }

func heldAnswered(m *Machine, now Instant, e *Event) {
	switch e.Call {
	case CallRenew:
		renewAnswered(m, now, e)
	case CallReweigh:
		if m.state == Reweighing && e.Number == m.lease.change.number {
			reweighAnswered(m, now, e)
		}
	default: // of an acquisition that was granted meanwhile
	}
}

func renewAnswered(m *Machine, now Instant, e *Event) {
	l, ttl := &m.lease, m.terms.TTL
	switch e.Answer.Outcome {
	case Kept, KeptWanted:
		l.failures, l.trouble = 0, nil
		l.deadline = max(l.deadline, e.Sent.Add(ttl-Margin(ttl)))
		l.renewAt = e.Sent.Add(ttl / 3).align(ttl / 24)
		m.do(Action{Do: Renewed, Lag: max(now.Sub(l.due), 0)})
		if e.Answer.Outcome == KeptWanted {
			m.do(Action{Do: Notice})
		}
		m.watchLease()
	case Expelled:
		m.lose(now, Action{Why: WasForced})
	default:
		m.lose(now, Action{Why: HadExpired})
	}
}

func heldFailed(m *Machine, now Instant, e *Event) {
	switch e.Call {
	case CallRenew:
		renewFailed(m, now, e)
	case CallReweigh:
		if m.state == Reweighing && e.Number == m.lease.change.number {
			reweighFailed(m, now, e)
		}
	default:
	}
}

func renewFailed(m *Machine, now Instant, e *Event) {
	if e.Lasting {
		m.lose(now, Action{Why: Failure, Err: e.Err})
		return
	}
	l := &m.lease
	if !e.Undone {
		l.reach = now.Add(m.terms.TTL)
	}
	l.failures++
	if e.Undone || l.trouble == nil { // what the server said tells more than an answer that did not come before the end
		l.trouble = e.Err
	}
	l.renewAt = now.Add(m.pause(l.failures, min(m.terms.Claim, 3*m.terms.TTL), l.deadline.Sub(now)))
	m.watchLease()
}

// remains is until when the lease may be on the server: longer than the holder believes, if a renewal was not answered.
func (m *Machine) remains(now Instant) Instant {
	until := max(m.lease.deadline, m.lease.reach)
	if m.lease.renewAt == 0 { // one is under way
		until = max(until, now.Add(m.terms.TTL))
	}
	return until
}

// lose ends the lease without the holder's will. The server ends it by itself, or has; a renewal that was not answered may
// have kept it, and a request to acquire that may still arrive would begin another.
func (m *Machine) lose(now Instant, why Action) {
	why.Do = End
	m.do(why)
	if m.bar(now) == 0 && (why.Why != Unrenewed || m.remains(now) <= now) {
		m.finish(why)
		return
	}
	m.state = Cancelling
	if why.Why != Unrenewed {
		m.takeBack(now)
		return
	}
	// Not before the server would have ended it: until then the holder may take time to stop.
	m.until, m.failures, m.wake = now.Add(m.terms.arrival()), 0, now.Add(Margin(m.terms.TTL))
}

// reweigh begins a change.
func reweigh(m *Machine, now Instant, e *Event) {
	l := &m.lease
	m.state = Reweighing
	l.change = change{number: l.change.number + 1, from: l.weight, to: e.Weight, began: now}
	l.weight = min(l.weight, e.Weight)
	m.sendChange()
	m.watchLease()
}

// reweighNext notes what the holder wants when the change before it is answered.
func reweighNext(m *Machine, _ Instant, e *Event) { m.lease.change.next = e.Weight }

// unreweigh takes a larger weight back that nobody waits for any more. A smaller one is asked for until it is had.
func unreweigh(m *Machine, now Instant, _ *Event) {
	c := &m.lease.change
	if c.next != 0 { // it had not begun
		c.next = 0
		return
	}
	c.told = true
	if c.to > c.from {
		m.takeWeightBack(now)
	}
}

// takeWeightBack makes a change to the weight there was before this one, which can come to nothing then.
func (m *Machine) takeWeightBack(now Instant) {
	c := m.lease.change
	m.lease.change = change{number: c.number + 1, from: c.from, to: c.from, began: now, told: true}
	m.sendChange()
	m.watchLease()
}

func (m *Machine) sendChange() {
	c := &m.lease.change
	c.retryAt = 0
	m.do(Action{Do: Send, Call: CallReweigh, Number: c.number, Weight: c.to})
}

func reweighAnswered(m *Machine, now Instant, e *Event) {
	l := &m.lease
	c := l.change
	switch e.Answer.Outcome {
	case Kept:
		l.weight, l.token = c.to, e.Answer.Token
		m.changed(now, Action{Number: c.number})
	case Refused:
		l.weight = c.from
		result := Action{Number: c.number, Why: IsBusy, Answer: e.Answer}
		if c.doubtful { // the request that was not answered may still arrive, and fit then
			result.Do = Reweighed
			m.do(result)
			m.takeWeightBack(now)
			return
		}
		m.changed(now, result)
	case Expelled:
		m.lose(now, Action{Why: WasForced})
	default:
		m.lose(now, Action{Why: HadExpired})
	}
}

// changed ends a change, and begins the next if one is wanted.
func (m *Machine) changed(now Instant, result Action) {
	l := &m.lease
	result.Do = Reweighed
	m.do(result)
	m.state = Held
	next := l.change.next
	l.change = change{number: l.change.number}
	if next != 0 {
		reweigh(m, now, &Event{Weight: next})
	}
	m.watchLease()
}

// reweighFailed asks the same again. The holder is told when it has waited long enough, or trying again is of no use.
func reweighFailed(m *Machine, now Instant, e *Event) {
	c := &m.lease.change
	c.doubtful = c.doubtful || !e.Undone
	if e.Lasting && !c.doubtful {
		m.lease.weight = c.from
		m.changed(now, Action{Number: c.number, Why: Failure, Err: e.Err})
		return
	}
	if left := c.began.Add(m.terms.Claim).Sub(now); !c.told && (e.Lasting || left < 0) {
		m.do(Action{Do: Reweighed, Number: c.number, Why: InDoubt, Err: e.Err})
		if c.told = true; c.to > c.from {
			unreweigh(m, now, e)
			return
		}
	}
	c.failures++
	c.retryAt = now.Add(m.pause(c.failures, m.terms.Claim, m.lease.deadline.Sub(now)))
	m.watchLease()
}
