package acquisition

import (
	"testing"
	"time"
)

// The sequences that promises hang on, with their times. The clocks of both sides have nothing in common: a request is sent
// at a time of ours, and answered with one of the server's.

func TestTheDeadlineCountsFromWhenTheRequestWasSent(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.want(Event{What: Begin}, "send acquire wait 3s; asking")
	d.at(sec(5)).want(answered(CallAcquire, 0, granted), "grant; held")
	d.deadline(ttl - Margin(ttl))
	d.at(sec(9.9)).want(Event{What: Tick}, "held")
	d.wakes(sec(9.993)) // a third of the ttl, on the grid of its eighths
	d.at(sec(10)).want(Event{What: Tick}, "send renew; held")
	d.at(sec(12)).want(answered(CallRenew, sec(10), kept), "renewed 2.007s late; held")
	d.deadline(sec(10) + ttl - Margin(ttl))
	d.at(sec(39.499)).want(Event{What: Tick}, "send renew; held")
	d.at(sec(39.5)).want(Event{What: Tick}, "end (unrenewed); cancelling") // the last renewal may have kept it there
}

func TestARenewalThatFailsIsTriedUntilTheDeadline(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	hold(d)
	tries := 0
	for d.m.State() == Held {
		d.now = d.m.Wake()
		if got := d.step(Event{What: Tick}); got == "send renew; held" {
			tries++
			d.want(failed(CallRenew, d.now.Sub(start)), "held")
		}
	}
	if end := d.now.Sub(start); end != ttl-Margin(ttl) {
		t.Errorf("the lease ended at %v", end)
	}
	if tries < 15 || tries > 60 {
		t.Errorf("%d tries", tries)
	}
}

// A renewal that was not answered may have kept a lease on the server for longer than its holder believes in it: it is taken
// back, and whoever closes is told if that fails.
func TestALeaseThatARenewalMayHaveKeptIsTakenBack(t *testing.T) {
	t.Parallel()
	doubtful := func() *driver {
		d := drive(t, nil)
		queue(d)
		d.at(sec(.1)).want(Event{What: Handed, Answer: Answer{Token: 7, NowMs: waiting.NowMs}}, "grant; held")
		d.at(sec(1.1)).want(Event{What: Tick}, "send renew; held")
		d.want(failed(CallRenew, sec(1.1)), "held")
		return d
	}
	d := doubtful()
	d.m.lease.renewAt = d.m.lease.deadline // no more of them
	d.at(sec(2.9)).want(Event{What: Tick}, "end (unrenewed); cancelling")
	d.want(Event{What: Close}, "send cancel bar 3s; cancelling")
	d.at(sec(6)).want(failed(CallCancel, sec(2.9)), "done (failure); over")

	d = doubtful()
	d.at(sec(2.5)).want(Event{What: Release}, "end (released); send release; releasing")
	d.at(sec(9)).want(failed(CallRelease, sec(2.5)), "releasing") // it may be there for the ttl
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send release; releasing")
}

func TestAnAnswerThatWasOvertakenDoesNotShortenALease(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	hold(d)
	d.at(sec(10)).want(Event{What: Tick}, "send renew; held")
	d.at(sec(20)).want(answered(CallRenew, sec(19), kept), "renewed 10.007s late; held") // for replicas, beside the other
	d.deadline(sec(19) + ttl - Margin(ttl))
	d.want(answered(CallRenew, sec(10), kept), "renewed 10.007s late; held")
	d.deadline(sec(19) + ttl - Margin(ttl))
}

func TestALeaseThatWasLostStaysLostWhateverIsAnsweredThen(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	hold(d)
	d.at(ttl).want(Event{What: Tick}, "end (unrenewed); done (unrenewed); over")
	d.want(answered(CallRenew, ttl, kept), "over")
	d.want(Event{What: Release}, "over")
}

// A message is late, and the server's clock was set forward before the grant it tells of: the lease must not last longer here
// than it does there all the same.
func TestGrantAfterTheServersClockJumped(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.want(answered(CallAcquire, 0, waiting), "listen; queued")
	d.at(sec(.9)).want(Event{What: Handed, Answer: Answer{Token: 7, NowMs: waiting.NowMs + 10_100}}, "grant; held")
	d.deadline(claim - Margin(claim)) // from when the last answer was asked for, the earliest that the grant can have been
}

// One that was granted before the last answer, as the server says, has begun before that was asked for.
func TestAGrantByMessageIsCountedFromTheServersTime(t *testing.T) {
	t.Parallel()
	handed := func(early int64) Event {
		return Event{What: Handed, Answer: Answer{Token: 7, NowMs: waiting.NowMs - early}}
	}
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.step(answered(CallAcquire, 0, waiting))
	d.at(sec(1)).want(handed(400), "grant; held")
	d.deadline(sec(-.4) + claim - Margin(claim))
	d.wakes(sec(.6) - 107*time.Millisecond) // a third of the claim time, on the grid of its eighths: at once

	d = drive(t, nil)
	d.step(Event{What: Begin})
	d.step(answered(CallAcquire, 0, waiting))
	d.at(sec(1.2)).want(handed(400), "send acquire wait 3s; queued") // too little is left
	d.want(answered(CallAcquire, sec(1.2), granted), "grant; held")
	d.deadline(sec(1.2) + ttl - Margin(ttl))
}

// A renewal makes a lease that was granted for the claim time as short as its ttl, whether it is answered or not.
func TestAGrantByMessageLastsNoLongerThanTheTTL(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.TTL = sec(.4) })
	queue(d)
	d.at(sec(.1)).want(Event{What: Handed, Answer: Answer{Token: 7, NowMs: waiting.NowMs + 50}}, "grant; held")
	d.deadline(sec(.4) - Margin(sec(.4)))
	d.at(sec(.14)).want(Event{What: Tick}, "send renew; held")
	d.at(sec(.4)).want(Event{What: Tick}, "end (unrenewed); cancelling")
}

func TestAGrantHeardOfBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.at(sec(.3)).want(Event{What: Handed, Answer: Answer{Token: 7, NowMs: waiting.NowMs + 200}}, "asking")
	d.at(sec(.4)).want(answered(CallAcquire, 0, waiting), "listen; grant; held")
	d.deadline(claim - Margin(claim))
}

// The answers come, but each when the lease that it tells of is over.
func TestFiveLateAnswersAreEnough(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.TTL = sec(1) })
	d.want(Event{What: Begin}, "send acquire wait 3s; asking")
	for i := range lateAnswers - 1 {
		d.at(sec(float64(i+1))).want(answered(CallAcquire, sec(float64(i)), granted), "send acquire wait 3s; asking")
	}
	d.at(sec(5)).want(answered(CallAcquire, sec(4), granted), "refuse (late); send cancel bar 3s; cancelling")

	d = drive(t, func(terms *Terms) { terms.TTL, terms.Wait = sec(1), false })
	d.step(Event{What: Begin})
	d.at(sec(1)).want(answered(CallAcquire, 0, granted), "refuse (late); send cancel bar 3s; cancelling")
}

// The server has granted, too late to be of use, and cannot be reached when it is asked again.
func TestAGrantThatCameTooLateIsTakenBack(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.TTL = sec(1) })
	d.step(Event{What: Begin})
	d.at(sec(1)).want(answered(CallAcquire, 0, granted), "send acquire wait 3s; asking")
	refused := failed(CallAcquire, sec(1))
	refused.Undone, refused.Lasting = true, true
	d.want(refused, "refuse (failure); send cancel bar 3s; cancelling")
}

func TestATryIsNeverRepeated(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.Wait = false })
	d.want(Event{What: Begin}, "send acquire; asking")
	d.want(failed(CallAcquire, 0), "refuse (failure); send cancel bar 30s; cancelling")

	d = drive(t, func(terms *Terms) { terms.Wait = false })
	d.step(Event{What: Begin})
	d.want(Event{What: Failed, Call: CallAcquire, Undone: true, Err: errLost}, "refuse (failure); done; over")
}

// What was asked and not answered may arrive for as long as the lease that it would begin could do harm.
func TestACancelInDoubtBarsForAsLongAsARequestMayArrive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ttl, bar time.Duration }{
		{sec(.1), claim}, {ttl, ttl}, {24 * time.Hour, 15 * time.Minute},
	} {
		change := func(terms *Terms) { terms.TTL = c.ttl }
		want := "send cancel bar " + c.bar.String() + "; cancelling"
		d := drive(t, change)
		d.step(Event{What: Begin})
		d.want(Event{What: GiveUp}, want) // under way

		d = drive(t, change)
		d.step(Event{What: Begin})
		d.at(sec(1)).step(failed(CallAcquire, 0))
		d.at(c.bar-1).want(Event{What: GiveUp}, want) // lost

		d = drive(t, change)
		d.step(Event{What: Begin})
		d.at(sec(1)).step(failed(CallAcquire, 0))
		d.at(c.bar).want(Event{What: GiveUp}, "send cancel bar 3s; cancelling") // as for every waiter
	}
}

// A request that took as long as one can may have arrived at last, and what it brought about is there for a while.
func TestWhatMayHaveArrivedIsTakenBack(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.at(ttl+1).want(failed(CallAcquire, 0), "refuse (failure); send cancel bar 3s; cancelling")

	d = drive(t, nil)
	d.step(Event{What: Begin})
	d.at(sec(1)).step(failed(CallAcquire, 0))
	d.at(ttl+1).want(Event{What: GiveUp}, "send cancel bar 3s; cancelling")
}

func TestACancelIsTriedForAsLongAsARequestMayArrive(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.want(Event{What: GiveUp}, "send cancel bar 30s; cancelling")
	for d.m.State() == Cancelling {
		if last := d.step(failed(CallCancel, 0)); last == "done (failure); over" {
			break
		}
		d.now = d.m.Wake()
		d.want(Event{What: Tick}, "send cancel bar 30s; cancelling")
	}
	if tried := d.now.Sub(start); tried > ttl || tried < ttl-sec(.1) {
		t.Errorf("tried for %v", tried)
	}
}

// A request to acquire that was not answered may arrive when the lease that a later one has brought is lost.
func TestALeaseThatIsLostInDoubtIsTakenBack(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.at(sec(1)).step(failed(CallAcquire, 0))
	d.at(sec(2)).want(Event{What: Tick}, "send acquire wait 3s; asking")
	d.want(answered(CallAcquire, sec(2), granted), "grant; held")
	d.at(sec(12)).want(Event{What: Tick}, "send renew; held")
	d.at(sec(13)).want(answered(CallRenew, sec(12), gone), "end (expired); send cancel bar 30s; cancelling")
	d.want(answered(CallCancel, sec(13), kept), "done; over")
}

func TestAReleaseInDoubtIsGoodNewsWhenTheLeaseIsGone(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	hold(d)
	d.want(Event{What: Release}, "end (released); send release; releasing")
	d.want(failed(CallRelease, 0), "releasing")
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send release; releasing")
	d.want(answered(CallRelease, 0, gone), "done; over")

	d = drive(t, nil)
	hold(d)
	d.step(Event{What: Release})
	d.want(Event{What: Failed, Call: CallRelease, Undone: true, Err: errLost}, "releasing")
	d.now = d.m.Wake()
	d.step(Event{What: Tick})
	d.want(answered(CallRelease, 0, gone), "done (expired); over") // nobody else can have released it
}

// A release bars the id while a request to acquire may still arrive, and is tried until none can.
func TestAReleaseIsTriedUntilNothingCanArrive(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.TTL = sec(.5) })
	d.step(Event{What: Begin})
	d.at(sec(.1)).step(failed(CallAcquire, 0))
	d.now = d.m.Wake()
	d.step(Event{What: Tick})
	d.step(answered(CallAcquire, d.now.Sub(start), granted))
	d.want(Event{What: Release}, "end (released); send release bar 3s; releasing")
	for d.step(failed(CallRelease, 0)) == "releasing" {
		d.now = d.m.Wake()
		d.want(Event{What: Tick}, "send release bar 3s; releasing")
		if d.now.Sub(start) > claim {
			t.Fatal("it is tried for ever")
		}
	}
	if tried := d.now.Sub(start); tried < sec(2.9) {
		t.Errorf("tried for %v", tried)
	}
}

func TestCloseHurries(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(d *driver) Call{
		"releasing":  func(d *driver) Call { hold(d); d.step(Event{What: Release}); return CallRelease },
		"held":       func(d *driver) Call { hold(d); return CallRelease },
		"cancelling": func(d *driver) Call { d.step(Event{What: Begin}); d.step(Event{What: GiveUp}); return CallCancel },
		"asking":     func(d *driver) Call { d.step(Event{What: Begin}); return CallCancel },
	} {
		d := drive(t, nil)
		call := begin(d)
		d.at(sec(1)).step(Event{What: Close})
		for d.step(failed(call, 0)) != "done (failure); over" {
			d.now = d.m.Wake()
			d.step(Event{What: Tick})
		}
		if tried := d.now.Sub(start); tried > sec(1)+claim || tried < claim {
			t.Errorf("%s: tried until %v", name, tried)
		}
	}
}

func TestALessWeightIsBelievedInAtOnceAndAskedForUntilItIsHad(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.Weight = 5 })
	hold(d)
	d.want(Event{What: Reweigh, Weight: 2}, "send reweigh #1 to 2; reweighing")
	d.weighs(2)
	lost := failed(CallReweigh, 0)
	lost.Number = 1
	d.want(lost, "reweighing")
	d.want(Event{What: Unreweigh}, "reweighing")
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send reweigh #1 to 2; reweighing")
	d.want(Event{What: Reweigh, Weight: 4}, "reweighing")
	yes := answered(CallReweigh, 0, kept)
	yes.Number = 1
	d.want(yes, "reweighed #1; send reweigh #2 to 4; reweighing")
	d.weighs(2)
	d.want(yes, "reweighing") // the answer to the first attempt, late: it says nothing of the second change
	d.weighs(2)
	yes.Number = 2
	d.want(yes, "reweighed #2; held")
	d.weighs(4)
}

func TestAnUpgradeThatIsGivenUpIsTakenBack(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	hold(d)
	d.want(Event{What: Reweigh, Weight: 5}, "send reweigh #1 to 5; reweighing")
	d.weighs(1)
	d.want(Event{What: Unreweigh}, "send reweigh #2 to 1; reweighing")
	yes := answered(CallReweigh, 0, kept)
	yes.Number = 1
	d.want(yes, "reweighing")
	d.weighs(1)
	yes.Number, yes.Answer.Token = 2, 9
	d.want(yes, "reweighed #2; held")
	d.weighs(1)
	if d.m.Token() != 9 {
		t.Errorf("token %d", d.m.Token())
	}
}

// The holder is told after the claim time that nobody knows, and the larger weight taken back.
func TestAnUpgradeInDoubtIsTakenBack(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	hold(d)
	d.step(Event{What: Reweigh, Weight: 5})
	lost := failed(CallReweigh, 0)
	lost.Number = 1
	d.at(claim).want(lost, "reweighing")
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send reweigh #1 to 5; reweighing")
	d.want(lost, "reweighed #1 (in doubt); send reweigh #2 to 1; reweighing")
	d.weighs(1)
}

// A request that was not answered may arrive, and fit, after another of the same change was refused.
func TestAnUpgradeThatIsRefusedInDoubtIsTakenBack(t *testing.T) {
	t.Parallel()
	busy := answered(CallReweigh, 0, Answer{Outcome: Refused})
	busy.Number = 1
	d := drive(t, nil)
	hold(d)
	d.step(Event{What: Reweigh, Weight: 5})
	d.want(busy, "reweighed #1 (busy); held")

	d = drive(t, nil)
	hold(d)
	d.step(Event{What: Reweigh, Weight: 5})
	lost := failed(CallReweigh, 0)
	lost.Number = 1
	d.step(lost)
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send reweigh #1 to 5; reweighing")
	d.want(busy, "reweighed #1 (busy); send reweigh #2 to 1; reweighing")
	d.weighs(1)
}

func TestAChangeThatHadNotBegunIsForgotten(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.Weight = 5 })
	hold(d)
	d.step(Event{What: Reweigh, Weight: 2})
	d.want(Event{What: Reweigh, Weight: 4}, "reweighing")
	if d.m.Change() != 2 {
		t.Errorf("the change wanted then has the number %d", d.m.Change())
	}
	d.want(Event{What: Unreweigh}, "reweighing")
	yes := answered(CallReweigh, 0, kept)
	yes.Number = 1
	d.want(yes, "reweighed #1; held")
	d.weighs(2)
}

// weighs compares what the holder may believe in.
func (d *driver) weighs(want int) {
	d.Helper()
	if got := d.m.Weight(); got != want {
		d.Fatalf("the holder may believe in %d, want %d", got, want)
	}
}

// Only those at the head ask when a lease expires, one after the other; the others have their heartbeat.
func TestTheWaitersAtTheHeadAskWhenALeaseExpires(t *testing.T) {
	t.Parallel()
	const heartbeat = 993 * time.Millisecond // on the grid of a third of the claim time
	for ahead, want := range map[int]time.Duration{
		0: 501 * time.Millisecond, 1: 506 * time.Millisecond, 7: 536 * time.Millisecond, 8: heartbeat, Unknown: heartbeat,
	} {
		d := drive(t, nil)
		d.step(Event{What: Begin})
		d.want(answered(CallAcquire, 0, Answer{Outcome: Waiting, Ahead: ahead, Next: sec(.5)}), "listen; queued")
		d.wakes(want)
		d.now = d.m.Wake()
		if want == heartbeat {
			d.want(Event{What: Tick}, "send heartbeat; queued")
		} else {
			d.want(Event{What: Tick}, "send acquire wait 3s; queued")
		}
	}
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.step(answered(CallAcquire, 0, Answer{Outcome: Waiting, Ahead: 0, Next: time.Hour}))
	d.wakes(heartbeat)
}

// Heartbeats of waiters that came at different times go together, so that they are one request.
func TestHeartbeatsAreAligned(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, sec(.3), sec(.9)} {
		d := drive(t, nil)
		d.at(after).step(Event{What: Begin})
		d.step(answered(CallAcquire, after, waiting))
		d.wakes(993 * time.Millisecond)
		d.now = d.m.Wake()
		d.want(Event{What: Tick}, "send heartbeat; queued")
		d.step(answered(CallHeartbeat, d.now.Sub(start), waiting))
		d.wakes(1993 * time.Millisecond)
	}
}

// A waiter is heard from at least as often as the claim time says, with all the answers in time.
func TestAWaiterIsNeverSilentForTwoThirdsOfTheClaimTime(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	queue(d)
	last := start
	for range 50 {
		d.now = d.m.Wake()
		if gap := d.now.Sub(last); gap > 2*claim/3 {
			t.Fatalf("silent for %v", gap)
		}
		last = d.now
		d.want(Event{What: Tick}, "send heartbeat; queued")
		d.at(last.Sub(start) + sec(.2)).step(answered(CallHeartbeat, last.Sub(start), waiting))
		d.want(Event{What: Worth, After: time.Hour}, "queued") // no message puts a heartbeat off
	}
}

// A waiter whose answer comes while the inbox opens asks once more, for messages that may have gone by, and only once.
func TestAnInboxThatOpensHasAWaiterAskOnce(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.want(Event{What: Listening}, "asking") // the answer is under way
	d.at(sec(.1)).want(answered(CallAcquire, 0, waiting), "listen; queued")
	d.wakes(sec(.1))
	d.want(Event{What: Tick}, "send heartbeat; queued") // that of its process: so many may have come before the inbox opened
	d.want(answered(CallHeartbeat, sec(.1), waiting), "queued")
	d.wakes(993 * time.Millisecond)

	d = drive(t, nil)
	queue(d)
	d.want(Event{What: Listening}, "send heartbeat; queued")
	d.want(answered(CallHeartbeat, sec(.01), waiting), "queued")
	d.wakes(993 * time.Millisecond)
}

// Who wants to hear of its place asks by itself; a deadline that is nearer than the claim time is said to the server.
func TestAWaitEndsWithTheCallersDeadline(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.Until, terms.Places = start.Add(sec(3.5)), true })
	d.want(Event{What: Begin}, "send acquire wait 3s; asking")
	d.want(answered(CallAcquire, 0, waiting), "moved to 20; listen; queued")
	d.at(sec(1)).want(Event{What: Tick}, "send acquire wait 2.5s; queued")
	d.want(answered(CallAcquire, sec(1), waiting), "queued")
	d.at(sec(9)).want(Event{What: Tick}, "send acquire wait 1ms; queued")
}

func TestAWaiterThatIsNotHeardGivesUpAfterTheClaimTime(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	queue(d)
	for d.m.State() == Queued {
		d.now = d.m.Wake()
		d.want(Event{What: Tick}, "send heartbeat; queued")
		d.now = d.now.Add(sec(.2))
		d.step(failed(CallHeartbeat, 0))
	}
	if silent := d.now.Sub(start.Add(sec(.01))); d.m.State() != Cancelling || silent < claim || silent > claim+sec(.5) {
		t.Errorf("%v after %v", d.m.State(), silent)
	}
}

func TestAPlaceThatWasLostIsTakenAnew(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	queue(d)
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send heartbeat; queued")
	d.want(answered(CallHeartbeat, 0, Answer{Outcome: Astray}), "send acquire wait 3s; queued")
}

func TestAGroupAsksForEveryMessageAndPassesOn(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.Passing = true })
	queue(d)
	for _, what := range []Happening{Worth, Forced, TooHeavy} {
		d.want(Event{What: what}, "queued")
		d.want(Event{What: Tick}, "send acquire wait 3s; queued")
		d.want(answered(CallAcquire, d.now.Sub(start), waiting), "queued")
	}
	d.want(Event{What: Handed}, "send acquire wait 3s; queued")
	d.at(sec(2)).want(answered(CallAcquire, sec(1), granted), "grant; done; over")

	terms := *d.m.Terms()
	terms.Passing, terms.Weight = false, 4
	lease := &driver{t, Resume(terms, 11, d.m.Deadline(), d.m.Arrives(d.now)), terms, d.now}
	lease.deadline(sec(1) + ttl - Margin(ttl))
	lease.weighs(4)
	lease.want(Event{What: Release}, "end (released); send release; releasing")

	lease = &driver{t, Resume(terms, 11, d.m.Deadline(), d.now.Add(1)), terms, d.now}
	lease.want(Event{What: Release}, "end (released); send release bar 30s; releasing")
}

func TestAHolderThatWantsNoticeAsksWhenMessagesMayHaveGoneBy(t *testing.T) {
	t.Parallel()
	d := drive(t, func(terms *Terms) { terms.Notice = true })
	d.step(Event{What: Begin})
	d.want(answered(CallAcquire, 0, granted), "grant; listen; held")
	d.at(sec(1)).want(Event{What: Listening}, "send renew; held")
	d.want(Event{What: Listening}, "held") // the answer says it
	d.want(answered(CallRenew, sec(1), Answer{Outcome: KeptWanted}), "renewed 0s late; notice; held")
}

// A request that comes late would also bring the cool-down of the lease about: its id is barred for as long.
func TestBarOutlastsTheCoolDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ttl, cool, want time.Duration }{
		{time.Second, 0, 3 * time.Second},
		{time.Minute, 0, time.Minute},
		{time.Second, time.Minute, 61 * time.Second},
		{time.Hour, 0, maxArrival},
		{time.Second, time.Hour, maxArrival},
	} {
		terms := Terms{TTL: c.ttl, Cool: c.cool, Claim: 3 * time.Second}
		if got := terms.arrival(); got != c.want {
			t.Errorf("ttl %v, cool-down %v: %v, want %v", c.ttl, c.cool, got, c.want)
		}
	}
}
