package acquisition

// After a lease, or instead of one: the server is told until it answers. Trying ends when the server has ended the lease by
// itself, or when nothing of the acquisition can arrive any more; once the process closes, with the claim time.

// release gives the permits back.
func release(m *Machine, now Instant, _ *Event) {
	m.end(now, Action{Why: WasReleased})
}

// neverHeld takes back a lease that came when its caller had given up.
func neverHeld(m *Machine, now Instant, _ *Event) {
	m.do(Action{Do: End, Why: WasReleased})
	m.state = Cancelling
	m.takeBack(now)
}

func closeHeld(m *Machine, now Instant, e *Event) {
	m.end(now, Action{Why: WasClosed})
	hurry(m, now, e)
}

func (m *Machine) end(now Instant, why Action) {
	why.Do = End
	m.do(why)
	m.state, m.until, m.failures = Releasing, max(m.remains(now), m.Arrives(now)), 0
	m.sendEnd(now)
}

// takeBack begins to cancel.
func (m *Machine) takeBack(now Instant) {
	m.until, m.failures = now.Add(m.terms.arrival()), 0
	m.sendEnd(now)
}

// hurry bounds how long the server is tried once the process closes, and has it tried at once.
func hurry(m *Machine, now Instant, _ *Event) {
	m.until, m.failures = min(m.until, now.Add(m.terms.Claim)), 0
	if m.wake != 0 {
		m.sendEnd(now)
	}
}

// sendEnd sends what the server has to know: that the lease is released, or that the acquisition is taken back.
func (m *Machine) sendEnd(now Instant) {
	m.wake = 0
	if m.state == Releasing {
		m.do(Action{Do: Send, Call: CallRelease, Bar: m.bar(now)})
	} else {
		m.do(Action{Do: Send, Call: CallCancel, Bar: max(m.bar(now), m.terms.Claim)})
	}
}

func sendEndAgain(m *Machine, now Instant, _ *Event) {
	if m.wake != 0 && now >= m.wake {
		m.sendEnd(now)
	}
}

// releaseAnswered: an attempt that nobody answered may have been the one that released, so that "it had expired" to a later
// one is good news.
func releaseAnswered(m *Machine, _ Instant, e *Event) {
	switch {
	case e.Call != CallRelease:
	case e.Answer.Outcome == Kept || m.unsure:
		m.finish(Action{})
	case e.Answer.Outcome == Expelled:
		m.finish(Action{Why: WasForced})
	default:
		m.finish(Action{Why: HadExpired})
	}
}

func releaseFailed(m *Machine, now Instant, e *Event) {
	if e.Call == CallRelease {
		m.unsure = m.unsure || !e.Undone
		m.endFailed(now, e)
	}
}

func cancelAnswered(m *Machine, _ Instant, e *Event) {
	if e.Call != CallCancel {
		return
	}
	if e.Answer.Outcome == Granted { // the caller had got through, which cannot be taken back
		m.do(Action{Do: Grant})
	}
	m.finish(Action{})
}

func cancelFailed(m *Machine, now Instant, e *Event) {
	if e.Call == CallCancel {
		m.endFailed(now, e)
	}
}

// endFailed tries again while there is time.
func (m *Machine) endFailed(now Instant, e *Event) {
	m.failures++
	again := now.Add(m.pause(m.failures, m.terms.Claim, m.until.Sub(now)))
	if e.Lasting || again > m.until {
		m.finish(Action{Why: Failure, Err: e.Err})
		return
	}
	m.wake = again
}

// finish ends the life. why says what could not be done at the end.
func (m *Machine) finish(why Action) {
	why.Do = Done
	m.state, m.wake = Over, 0
	m.do(why)
}
