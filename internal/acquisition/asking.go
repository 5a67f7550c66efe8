package acquisition

import (
	"errors"
	"time"
)

// Until there is a lease. A waiter is told of its grant by a message; everything else is for when messages are lost or
// processes die: the heartbeat of its process each third of the claim time, and a question of its own when an answer said
// that it is worth one, if it stands at the head of the queue or nearly.

const (
	expiryStagger = 5 * time.Millisecond // the nth waiter asks so much later each for a lease to expire
	askers        = 8                    // so many at the head do; those behind are told, or find out by the heartbeat
	lateAnswers   = 5                    // grants that may come too late to be of use before an acquisition gives up
)

// waiter is what a life knows while it asks and waits.
type waiter struct {
	asked    Instant // when the last request was made
	heard    Instant // when the last answer came, not counting how long requests stood in a queue here
	sent     Instant // when the request of the last answer was sent,
	serverMs int64   // and the server's clock in it
	ahead    int
	failures int     // in a row
	late     int     // grants that came when the lease was over
	early    *Event  // a grant heard of before the answer that it is counted from
	pressing bool    // something went by that must be asked for
	missed   bool    // something may have gone by
	askAt    Instant // when it is worth asking, as a message said
	alone    bool    // the next question is one of its own rather than the heartbeat
}

func begin(m *Machine, now Instant, _ *Event) {
	m.waiter.heard = now
	m.acquire(now, Anew)
}

// acquire asks by the transition itself, which also takes the place in the queue that was lost.
func (m *Machine) acquire(now Instant, rank Rank) {
	wait := time.Duration(0)
	if m.terms.Wait {
		wait = m.terms.Claim
		if m.terms.Until != 0 {
			wait = min(wait, max(m.terms.Until.Sub(now), time.Millisecond))
		}
	}
	m.asking, m.acquires, m.wake, m.waiter.asked = m.asking+1, m.acquires+1, 0, now
	m.do(Action{Do: Send, Call: CallAcquire, Wait: wait, Rank: rank})
}

// askAgain asks when it is time. A place that the caller's deadline ends before the claim time does is kept by Acquire, which
// says so.
func askAgain(m *Machine, now Instant, _ *Event) {
	if m.wake == 0 || now < m.wake {
		return
	}
	switch t := &m.terms; {
	case m.state == Asking:
		m.acquire(now, Anew)
	case m.waiter.alone:
		m.acquire(now, Turn)
	case t.Places || t.Passing || (t.Until != 0 && t.Until.Sub(now) < t.Claim):
		m.acquire(now, Place)
	default:
		m.asking, m.wake, m.waiter.asked = m.asking+1, 0, now
		m.do(Action{Do: Send, Call: CallHeartbeat})
	}
}

func acquireAnswered(m *Machine, now Instant, e *Event) {
	m.waiter.failures, m.waiter.heard = 0, now
	switch e.Answer.Outcome {
	case Granted:
		grant(m, now, e.Answer.Token, e.Sent.Add(m.terms.TTL), m.terms.TTL)
	case Waiting:
		queued(m, now, e)
	case Astray:
		m.acquire(now, Anew)
	case Refused:
		m.refuse(now, Action{Why: IsBusy, Answer: e.Answer})
	case Heavy:
		m.refuse(now, Action{Why: IsHeavy, Answer: e.Answer})
	case Barred:
		m.refuse(now, Action{Why: WasForced})
	default:
		m.refuse(now, Action{Why: Failure, Err: errStrange})
	}
}

// errStrange is an answer that is none to this call.
var errStrange = errors.New("internal error: the answer to a request to acquire is that to another")

// acquireFailed asks again soon, unless that is of no use: the server has been silent for the claim time. That a request
// stood in a queue of this process, because there are so many, is no silence.
func acquireFailed(m *Machine, now Instant, e *Event) {
	w := &m.waiter
	w.heard = w.heard.Add(max(e.Sent.Sub(w.asked), 0))
	left := w.heard.Add(m.terms.Claim).Sub(now)
	if !m.terms.Wait || e.Lasting || left < 0 {
		m.refuse(now, Action{Why: Failure, Err: e.Err})
		return
	}
	w.failures++
	m.wake = now.Add(m.pause(w.failures, m.terms.Claim, left))
}

// queued notes the place in the queue and when to ask again: with the heartbeat, or before when it is worth it.
func queued(m *Machine, now Instant, e *Event) {
	w, answer := &m.waiter, &e.Answer
	if m.terms.Places && answer.Ahead != Unknown && (m.state == Asking || w.ahead != answer.Ahead) {
		m.do(Action{Do: Moved, Ahead: answer.Ahead, Wait: answer.Next})
	}
	if m.state == Asking {
		m.do(Action{Do: Listen})
	}
	m.state, w.ahead, w.sent, w.serverMs = Queued, answer.Ahead, e.Sent, answer.NowMs
	if early := w.early; early != nil {
		w.early = nil
		handed(m, now, early)
		return
	}
	if m.asking > 0 {
		return // the answer that is still to come is newer
	}
	interval := Heartbeat(m.terms.Claim)
	if m.wake, w.alone = e.Sent.Add(interval).align(interval), false; m.wake <= now {
		m.wake = now.Add(interval).align(interval) // at once would be apart from the others
	}
	worth := func(at Instant) {
		if at < m.wake {
			m.wake, w.alone = at, true
		}
	}
	if w.missed {
		w.missed, m.wake = false, now
	}
	switch {
	case w.pressing:
		w.pressing = false
		m.wake, w.alone = now, true
	case answer.Ahead == 0 || (answer.Next > 0 && answer.Ahead < askers && answer.Ahead != Unknown):
		worth(now.Add(answer.Next + time.Millisecond + time.Duration(answer.Ahead)*expiryStagger))
	}
	if e.Sent < w.askAt {
		worth(w.askAt)
	}
}

// worthAsking is a message. The question is never later than the heartbeat.
func worthAsking(m *Machine, now Instant, e *Event) {
	m.waiter.askAt = now.Add(e.After)
	if m.asking == 0 && (m.wake == 0 || m.waiter.askAt < m.wake) {
		m.wake, m.waiter.alone = m.waiter.askAt, true
	}
}

// listening asks whether a message has gone by while nobody listened.
func listening(m *Machine, now Instant, _ *Event) {
	if m.asking > 0 {
		m.waiter.missed = true
	} else if m.state == Queued {
		m.wake = now
		askAgain(m, now, nil)
	}
}

// handedEarly is a grant that was heard of before the first answer, which says when that was by the server's clock.
func handedEarly(m *Machine, _ Instant, e *Event) {
	early := *e
	m.waiter.early = &early
}

// handed is a grant by message. How long the message took nobody knows, and the server's clock may have been set forward
// meanwhile. So the lease is counted from the sending of the last request that was answered with "waiting", which is never
// too late; only a grant that is older than that answer, one that was lost since, is told by the server's clock. It lasts for
// the claim time until it is confirmed, or for the ttl if that is shorter: a renewal on its way gives no more.
func handed(m *Machine, now Instant, e *Event) {
	w, claim := &m.waiter, min(m.terms.Claim, m.terms.TTL)
	granted := w.sent.Add(min(0, time.Duration(e.Answer.NowMs-w.serverMs)*time.Millisecond))
	if m.terms.Passing || now > granted.Add(claim/2) {
		if m.asking > 0 {
			w.pressing = true
		} else {
			m.acquire(now, Turn)
		}
		return
	}
	grant(m, now, e.Answer.Token, granted.Add(claim), claim)
}

// grant begins the lease that the server ends at `expires`, `span` after it was made. One that is over already is asked for
// again, but not for ever.
func grant(m *Machine, now Instant, token int64, expires Instant, span time.Duration) {
	if m.terms.TTL > 0 && now >= expires.Add(-Margin(span)) {
		m.arrives = max(m.arrives, now.Add(m.terms.arrival())) // there is something to take back
		if m.waiter.late++; m.terms.Wait && m.waiter.late < lateAnswers {
			if m.asking == 0 {
				m.acquire(now, Turn)
			}
			return
		}
		m.refuse(now, Action{Why: CameLate})
		return
	}
	m.waiter.early = nil
	if m.terms.Passing {
		m.lease = lease{token: token, deadline: expires}
		m.do(Action{Do: Grant})
		m.finish(Action{})
		return
	}
	m.hold(token, m.terms.Weight, expires, span)
}

// forcedWaiting is a message. What passes through asks, as after every message: the answer says of which place it is.
func forcedWaiting(m *Machine, now Instant, e *Event) {
	if m.terms.Passing {
		worthAsking(m, now, e)
		return
	}
	m.refuse(now, Action{Why: WasForced})
}

// tooHeavy is a message. A request on its way may arrive after the limit has grown again, and queue once more.
func tooHeavy(m *Machine, now Instant, e *Event) {
	if m.terms.Passing {
		worthAsking(m, now, e)
		return
	}
	m.refuse(now, Action{Why: IsHeavy, Answer: e.Answer})
}

// refuse tells the caller that there will be no lease, and takes back what the server may know.
func (m *Machine) refuse(now Instant, why Action) {
	why.Do = Refuse
	m.do(why)
	unheard := why.Why == Failure && (m.state == Queued || m.doubtful())
	m.state = Cancelling
	if !unheard && m.bar(now) == 0 {
		m.finish(Action{})
		return
	}
	m.takeBack(now)
}

func giveUp(m *Machine, now Instant, _ *Event) {
	unknown := m.state == Asking && !m.doubtful()
	m.state = Cancelling
	if unknown {
		m.finish(Action{})
		return
	}
	m.takeBack(now)
}

func closeWaiting(m *Machine, now Instant, e *Event) {
	m.do(Action{Do: Refuse, Why: WasClosed})
	giveUp(m, now, e)
	hurry(m, now, e)
}
