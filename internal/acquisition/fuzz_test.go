package acquisition

import (
	"math/rand/v2"
	"testing"
	"time"
)

// FuzzLives leads lives through anything, in any order: answers of every kind to what is under way, failures, messages that
// are late or lies, and what callers and callees may do. After each step it looks at what must always hold, and in the end
// answers fairly: every life must end then.
func FuzzLives(f *testing.F) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		data := make([]byte, 3+random.IntN(120))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLifeUnderTest(t, &data)
		l.step(Event{What: Begin})
		for len(data) > 0 {
			l.something(&data)
		}
		l.endFairly()
	})
}

// request is one that is under way.
type request struct {
	call   Call
	sent   Instant
	number int64
	weight int
}

type lifeUnderTest struct {
	*testing.T
	m     *Machine
	now   Instant
	flow  []request // under way
	proof Instant   // until when the server keeps the lease at least, by all that was heard
	asked Instant   // when the request of the last answer with a place was sent

	grants, refusals, ends, dones int
}

// take is the next byte, 0 if there is none.
func take(data *[]byte) byte {
	if len(*data) == 0 {
		return 0
	}
	first := (*data)[0]
	*data = (*data)[1:]
	return first
}

func newLifeUnderTest(t *testing.T, data *[]byte) *lifeUnderTest {
	t.Helper()
	a, b := take(data), take(data)
	terms := Terms{
		TTL: []time.Duration{20 * time.Millisecond, time.Second, ttl, 24 * time.Hour}[a&3], Claim: claim, Weight: 1 + int(b&3),
		Wait: a&4 == 0, Passing: a&8 != 0, Places: a&16 != 0, Notice: a&32 != 0, Seed: uint64(b),
	}
	if a&64 != 0 {
		terms.Until = start.Add(time.Duration(b) * 100 * time.Millisecond)
	}
	return &lifeUnderTest{T: t, m: New(terms), now: start}
}

// something lets time pass, and one thing happen.
func (l *lifeUnderTest) something(data *[]byte) {
	choice, detail := take(data), take(data)
	l.now = l.now.Add([]time.Duration{0, time.Millisecond, 300 * time.Millisecond, 4 * time.Second}[detail>>6])
	switch {
	case choice < 100 && len(l.flow) > 0:
		l.answer(int(detail)%len(l.flow), take(data))
	case choice < 150 && l.m.Wake() != 0:
		l.now = max(l.now, l.m.Wake())
		l.step(Event{What: Tick})
	default:
		what := Happening(choice) % happenings
		if what == Answered || what == Failed || what == Begin {
			what = Tick
		}
		l.step(Event{
			What: what, Weight: 1 + int(detail&7), After: time.Duration(detail&15) * 100 * time.Millisecond,
			Answer: Answer{Token: 5, NowMs: 1_000_000 + (int64(detail)-128)*20},
		})
	}
}

// answer tells what became of one of the requests under way.
func (l *lifeUnderTest) answer(which int, how byte) {
	r := l.flow[which]
	l.flow = append(l.flow[:which:which], l.flow[which+1:]...)
	e := Event{What: Answered, Call: r.call, Sent: r.sent, Number: r.number}
	if how&7 < 2 {
		e.What, e.Err, e.Undone, e.Lasting = Failed, errLost, how&8 != 0, how&0x70 == 0x70
		l.step(e)
		return
	}
	of := outcomes[r.call]
	e.Answer = Answer{
		Outcome: of[int(how>>3)%len(of)], Token: 6, Ahead: int(how>>5) - 1, Next: time.Duration(how) * 10 * time.Millisecond,
		NowMs: 1_000_000, Limit: 1,
	}
	l.step(e)
}

// step steps the life, and looks at what must always hold.
func (l *lifeUnderTest) step(e Event) {
	l.Helper()
	was := l.m.State()
	l.learn(&e)
	actions := l.m.Step(l.now, e)
	for i := range actions {
		l.count(&actions[i])
	}
	state := l.m.State()
	switch {
	case was == Over && len(actions) > 0 && actions[0].Do != Impossible:
		l.Errorf("%v had a life that was over do something", e.What)
	case (state == Over) != (l.dones == 1) || l.dones > 1:
		l.Errorf("%v, and it said %d times that it is done", state, l.dones)
	case l.grants > 1 || l.refusals > 1 || l.ends > l.grants:
		l.Errorf("%d grants, %d refusals, %d ends", l.grants, l.refusals, l.ends)
	case state == Over && l.grants > l.ends && !l.m.Terms().Passing:
		l.Errorf("it is over, and the holder was not told")
	}
	l.look(&e)
	if l.Failed() {
		l.Fatalf("after %v in %v at %v", e.What, was, l.now.Sub(start))
	}
}

// look compares what the life knows with what it was told.
func (l *lifeUnderTest) look(e *Event) {
	l.Helper()
	state := l.m.State()
	holds := state == Held || state == Reweighing
	asks, tells := 0, 0
	for _, r := range l.flow {
		switch r.call {
		case CallAcquire, CallHeartbeat:
			asks++
		case CallRelease, CallCancel:
			tells++
		default:
		}
	}
	switch wake := l.m.Wake(); {
	case asks > 1 || tells > 1 || l.pending(CallRenew) > 1:
		l.Errorf("under way: %+v", l.flow)
	case holds && l.m.Deadline() >= l.proof:
		l.Errorf("held until %v, and the server keeps it until %v", l.m.Deadline().Sub(start), l.proof.Sub(start))
	case holds && e.What == Tick && l.now >= l.m.Deadline():
		l.Errorf("held beyond its deadline")
	case holds && (wake == 0 || wake > l.m.Deadline()):
		l.Errorf("nobody looks at the deadline")
	case wake == 0 && state != Over && asks+tells == 0:
		l.Errorf("nothing will ever happen in %v", state)
	case wake != 0 && (state == Over || tells > 0):
		l.Errorf("it wakes for nothing in %v", state)
	}
}

func (l *lifeUnderTest) pending(call Call) (n int) {
	for _, r := range l.flow {
		if r.call == call {
			n++
		}
	}
	return n
}

// learn notes how long the server keeps a lease at least.
func (l *lifeUnderTest) learn(e *Event) {
	switch {
	case e.What == Answered && e.Call == CallAcquire && e.Answer.Outcome == Granted,
		e.What == Answered && e.Call == CallRenew && (e.Answer.Outcome == Kept || e.Answer.Outcome == KeptWanted):
		l.proof = max(l.proof, e.Sent.Add(l.m.Terms().TTL))
	case e.What == Answered && (e.Call == CallAcquire || e.Call == CallHeartbeat) && e.Answer.Outcome == Waiting:
		l.asked = e.Sent
		l.proof = max(l.proof, e.Sent.Add(min(claim, l.m.Terms().TTL))) // of a grant heard of before
	case e.What == Handed:
		l.proof = max(l.proof, l.asked.Add(min(claim, l.m.Terms().TTL)))
	}
}

func (l *lifeUnderTest) count(a *Action) {
	switch a.Do {
	case Send:
		if l.dones > 0 {
			l.Errorf("a request after the end")
		}
		l.flow = append(l.flow, request{a.Call, l.now, a.Number, a.Weight})
	case Grant:
		if l.m.State() != Over || l.m.Terms().Passing { // not of a cancel that came too late
			l.grants++
		}
	case Refuse:
		l.refusals++
	case End:
		l.ends++
	case Done:
		l.dones++
	default:
	}
}

// endFairly answers everything with a yes, and has the holder release.
func (l *lifeUnderTest) endFairly() {
	l.Helper()
	for range 200 {
		switch {
		case l.m.State() == Over:
			return
		case len(l.flow) > 0:
			r := l.flow[0]
			l.flow = l.flow[1:]
			outcome := map[Call]Outcome{CallAcquire: Granted, CallHeartbeat: Astray}[r.call]
			if r.call > CallHeartbeat {
				outcome = Kept
			}
			l.now = l.now.Add(time.Millisecond)
			l.step(Event{What: Answered, Call: r.call, Sent: r.sent, Number: r.number, Answer: Answer{Outcome: outcome, Token: 6}})
		case l.m.State() == Held || l.m.State() == Reweighing:
			l.step(Event{What: Release})
		default:
			l.now = max(l.now, l.m.Wake())
			l.step(Event{What: Tick})
		}
	}
	l.Fatalf("it does not end: %v", l.m.State())
}
