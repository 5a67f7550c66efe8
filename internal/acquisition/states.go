package acquisition

import "time"

// State is where a life is. What the holder may believe in each, and what ends it:
//
//	asking      nothing. A first request is under way, or was lost and is sent again
//	queued      nothing. It has a place in the queue, as of the last answer
//	held        its permits until the deadline
//	reweighing  the smaller of both weights, until the server has answered this change by its number
//	releasing   nothing any more. The server is told until it answers, or has ended the lease by itself
//	cancelling  nothing. What the server may know of is taken back, until it says so or nothing can arrive any more
//	over        what the outcome says. Nothing is on the server, and nothing comes there
type State uint8

// The states.
const (
	Asking State = iota
	Queued
	Held
	Reweighing
	Releasing
	Cancelling
	Over
	states
)

func (s State) String() string {
	return [...]string{"asking", "queued", "held", "reweighing", "releasing", "cancelling", "over"}[s]
}

// Happening is what an Event is about.
type Happening uint8

// The events. The first four are the shell's, the next six messages of the server, the last five the caller's.
const (
	Begin     Happening = iota // the life begins
	Tick                       // the time that Wake asked for has come
	Answered                   // a request was answered
	Failed                     // a request was not
	Handed                     // a message: the permits were granted
	Worth                      // a message: asking is worth it, after a while
	Forced                     // a message: an operator ended it
	TooHeavy                   // a message: the limit has become too small
	Wanted                     // a message: somebody waits for what is held
	Listening                  // from now on messages are heard; earlier ones may have gone by
	Reweigh                    // the holder wants another weight
	Unreweigh                  // and does not wait for it any more
	GiveUp                     // the caller does not wait any more
	Release                    // the holder gives the permits back
	Close                      // the process does, all of them
	happenings
)

func (h Happening) String() string {
	return [...]string{
		"begin", "tick", "answered", "failed", "handed", "worth", "forced", "too heavy", "wanted", "listening", "reweigh",
		"unreweigh", "give up", "release", "close",
	}[h]
}

// Call is a request to the server, one transition of the ledger each.
type Call uint8

// The calls.
const (
	CallAcquire Call = iota
	CallHeartbeat
	CallRenew
	CallRelease
	CallCancel
	CallReweigh
)

// Event is something that happened. Which fields count is said by What.
type Event struct {
	What    Happening
	Call    Call          // Answered, Failed
	Sent    Instant       // Answered, Failed: when the request was sent
	Answer  Answer        // Answered; Handed: Token, NowMs; TooHeavy: Limit
	After   time.Duration // Worth
	Number  int64         // Answered, Failed: of the change, for the call Reweigh
	Weight  int           // Reweigh
	Err     error         // Failed
	Undone  bool          // Failed: the request surely did nothing
	Lasting bool          // Failed: trying again is of no use
}

// Answer is what the server said to a call.
type Answer struct {
	Outcome Outcome
	Token   int64         // Granted, Kept of Reweigh
	Ahead   int           // Waiting: waiters in front, Unknown if the answer does not say
	Next    time.Duration // Waiting, Refused: until it may be worth asking
	NowMs   int64         // Waiting: the server's clock
	InUse   int           // Refused: permits held
	Limit   int           // Refused, Heavy
}

// Unknown is the Ahead of an answer that does not say.
const Unknown = -1

// Outcome is the word of an Answer.
type Outcome uint8

// The outcomes. The zero value is none of them.
const (
	Granted    Outcome = 1 + iota // Acquire: there is a lease. Cancel: the caller had got through
	Waiting                       // Acquire, Heartbeat: it has a place in the queue
	Astray                        // Heartbeat: it does not wait any more; the answer to Acquire will say why
	Refused                       // Acquire, Reweigh: there is no room
	Barred                        // Acquire: it was cancelled, or an operator ended it
	Heavy                         // Acquire: the weight can never fit
	Kept                          // Renew, Reweigh: done. Release, Cancel: done
	KeptWanted                    // Renew: done, and somebody waits
	Gone                          // Renew, Reweigh, Release: it had expired
	Expelled                      // likewise: an operator ended it
)

// Action is what the shell is to do. Which fields count is said by Do.
type Action struct {
	Do     Deed
	Call   Call          // Send
	Wait   time.Duration // Send Acquire: for how long to keep the place, 0 = take none. After: of Moved
	Rank   Rank          // Send Acquire
	Bar    time.Duration // Send Release, Cancel: for how long to bar the id; 0 = not, nothing of it can arrive
	Number int64         // Send Reweigh, Reweighed
	Weight int           // Send Reweigh
	Ahead  int           // Moved
	Lag    time.Duration // Renewed
	Why    Why           // Refuse, End, Done, Reweighed
	Answer Answer        // of Why
	Err    error         // of Why
}

// Rank is what hangs on a question: who has none of the server's time yet can wait longer than who would lose something.
type Rank uint8

// The ranks, most first.
const (
	Turn  Rank = iota // it may be its turn already
	Place             // its place in the queue
	Anew              // nothing yet, or its place is lost
)

// Deed is the word of an Action.
type Deed uint8

// What there is to do.
const (
	Send       Deed = iota // make a call, and step the machine with what became of it
	Listen                 // see that messages are heard
	Moved                  // tell the caller its place in the queue
	Grant                  // hand the lease to the caller, or let it through
	Refuse                 // tell the caller that there will be none
	Notice                 // tell the holder that somebody waits
	Renewed                // a renewal was answered, Lag after it was due
	Reweighed              // tell the holder what became of a change of weight
	End                    // tell the holder that it holds nothing any more
	Done                   // nothing is left to be told to the server; the life is over
	Impossible             // the event cannot be in this state: nothing was done
)

// Why is the reason of an outcome.
type Why uint8

// The reasons.
const (
	Well        Why = iota // there is none: it went well
	IsBusy                 // Answer: InUse, Limit, Next
	IsHeavy                // Answer: Limit
	WasForced              // an operator ended it
	HadExpired             // on the server
	Unrenewed              // no renewal was answered in time; Err is the last failure
	CameLate               // each answer took longer than the lease lasts
	Failure                // Err
	InDoubt                // Err: the change of weight is asked for again, and believed in if it takes away
	WasReleased            // by its holder
	WasClosed              // with the process
)

// rule is what an event means in a state.
type rule func(m *Machine, now Instant, e *Event)

// table says which event means what in which state. What is missing cannot be: the shell is wrong if it happens.
var table = [states][happenings]rule{
	Asking: {
		Begin: begin, Tick: askAgain, Answered: acquireAnswered, Failed: acquireFailed,
		Handed: handedEarly, Worth: worthAsking, Forced: forcedWaiting, TooHeavy: tooHeavy, Wanted: late,
		Listening: listening, GiveUp: giveUp, Close: closeWaiting,
	},
	Queued: {
		Tick: askAgain, Answered: acquireAnswered, Failed: acquireFailed,
		Handed: handed, Worth: worthAsking, Forced: forcedWaiting, TooHeavy: tooHeavy, Wanted: late,
		Listening: listening, GiveUp: giveUp, Close: closeWaiting,
	},
	Held: {
		Tick: keep, Answered: heldAnswered, Failed: heldFailed,
		Handed: late, Worth: late, Forced: forcedHeld, TooHeavy: late, Wanted: wanted, Listening: noticeAgain,
		Reweigh: reweigh, Unreweigh: late, GiveUp: neverHeld, Release: release, Close: closeHeld,
	},
	Reweighing: {
		Tick: keep, Answered: heldAnswered, Failed: heldFailed,
		Handed: late, Worth: late, Forced: forcedHeld, TooHeavy: late, Wanted: wanted, Listening: noticeAgain,
		Reweigh: reweighNext, Unreweigh: unreweigh, Release: release, Close: closeHeld,
	},
	Releasing: {
		Tick: sendEndAgain, Answered: releaseAnswered, Failed: releaseFailed,
		Handed: late, Worth: late, Forced: late, TooHeavy: late, Wanted: late, Listening: late,
		Unreweigh: late, GiveUp: late, Release: late, Close: hurry,
	},
	Cancelling: {
		Tick: sendEndAgain, Answered: cancelAnswered, Failed: cancelFailed,
		Handed: late, Worth: late, Forced: late, TooHeavy: late, Wanted: late, Listening: late,
		Unreweigh: late, GiveUp: late, Close: hurry,
	},
	Over: {
		Tick: late, Answered: late, Failed: late,
		Handed: late, Worth: late, Forced: late, TooHeavy: late, Wanted: late, Listening: late,
		Unreweigh: late, GiveUp: late, Release: late, Close: late,
	},
}

// late is what has been overtaken by the life: the answer to a call that does not matter any more, a message that comes
// when its grant has been heard of otherwise.
func late(*Machine, Instant, *Event) {}

// Machine is one life. Its fields are grouped by the states that use them.
type Machine struct {
	terms   Terms
	state   State
	jitter  uint64
	actions []Action // of the last step
	scratch *Scratch
	wake    Instant // when there is something to do again, 0 if only an answer or a message can bring it

	// Until there is a lease; the first three as long as a request can be in doubt.
	asking   int     // calls of Acquire and Heartbeat under way
	acquires int     // those of them that may bring something about
	arrives  Instant // until when one that was not answered may still arrive
	waiter   waiter

	// While there is one.
	lease lease

	// Afterwards.
	unsure   bool    // a release that was not answered may have been the one that released
	until    Instant // when trying to tell the server ends
	failures int     // in a row
}

// New returns the life of an acquisition that is about to begin.
func New(terms Terms) *Machine {
	return &Machine{terms: terms, jitter: terms.Seed}
}

// Scratch is room for one step: machines of which one steps at a time can share it. Without it each has its own.
type Scratch struct {
	actions [2]Action // which are seldom more
	event   Event
}

// Share has the machine use a room that others use, too. What a Step returned is valid until one of them steps.
func (m *Machine) Share(s *Scratch) { m.scratch = s }

// Step takes what happened at a time and returns what is to be done, in this order. The slice is valid until the next call.
func (m *Machine) Step(now Instant, e Event) []Action {
	if m.scratch == nil {
		m.scratch = new(Scratch)
	}
	m.actions = m.scratch.actions[:0]
	if meaning := table[m.state][e.What]; meaning != nil {
		m.scratch.event = e
		m.count(&m.scratch.event)
		meaning(m, now, &m.scratch.event)
	} else {
		m.do(Action{Do: Impossible})
	}
	return m.actions
}

// State is where the life is.
func (m *Machine) State() State { return m.state }

// Wake is when the machine wants a Tick, 0 if it does not.
func (m *Machine) Wake() Instant { return m.wake }

// Token is the fencing token of the last grant.
func (m *Machine) Token() int64 { return m.lease.token }

// Change is the number of the change of weight that was asked for last.
func (m *Machine) Change() int64 {
	if m.lease.change.next != 0 {
		return m.lease.change.number + 1
	}
	return m.lease.change.number
}

// Deadline is when the lease ends if no renewal is answered until then.
func (m *Machine) Deadline() Instant { return m.lease.deadline }

// Weight is how many permits the holder may believe in.
func (m *Machine) Weight() int { return m.lease.weight }

// Terms are what was asked for.
func (m *Machine) Terms() *Terms { return &m.terms }

func (m *Machine) do(a Action) { m.actions = append(m.actions, a) }

// count keeps account of what is under way, in whatever state its answer comes.
func (m *Machine) count(e *Event) {
	if e.What != Answered && e.What != Failed {
		return
	}
	switch e.Call {
	case CallAcquire:
		m.asking, m.acquires = m.asking-1, m.acquires-1
		if e.What == Failed && !e.Undone {
			m.arrives = max(m.arrives, e.Sent.Add(m.terms.arrival()))
		}
	case CallHeartbeat:
		m.asking--
	default:
	}
}

// bar is for how long the id must be barred so that nothing of it that is still under way brings it back; 0 if nothing is.
func (m *Machine) bar(now Instant) time.Duration {
	if m.acquires > 0 || now < m.arrives {
		return m.terms.arrival()
	}
	return 0
}

// doubtful reports whether the server may know of a request to acquire that was not answered, or not in time. Nothing of it
// arrives after a while (bar); for how long what it brought about goes on is for the server's clock to say.
func (m *Machine) doubtful() bool { return m.acquires > 0 || m.arrives != 0 }
