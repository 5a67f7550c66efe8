package acquisition

import (
	"testing"
	"time"
)

// What a life does where there are so many that requests stand in a queue before they are sent, and answers are slow.

// A request that stands in a queue of its own process before it is sent is not the server's silence.
func TestAWaitBeforeTheRequestIsSentIsNoSilence(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	d.step(Event{What: Begin})
	d.at(time.Minute).want(failed(CallAcquire, time.Minute-sec(2.9)), "asking")
	d.now = d.m.Wake()
	d.want(Event{What: Tick}, "send acquire wait 3s; asking")
	d.at(2*time.Minute).want(failed(CallAcquire, 2*time.Minute-sec(.2)), "refuse (failure); send cancel bar 30s; cancelling")
}

// Answers that are slower than the heartbeats make these no closer: all of a process stay together on the grid.
func TestASlowAnswerBringsNoHeartbeatForward(t *testing.T) {
	t.Parallel()
	d := drive(t, nil)
	queue(d)
	d.wakes(993 * time.Millisecond)
	d.at(sec(1)).want(Event{What: Tick}, "send heartbeat; queued")
	d.at(sec(2.5)).want(answered(CallHeartbeat, sec(1), waiting), "queued")
	d.wakes(2993 * time.Millisecond)
}

// What frees or may hold permits goes before what keeps a place, and that before what has none: where a server cannot take
// all, those who have its time already are served, and the others wait where they cost nothing.
func TestQuestionsHaveARank(t *testing.T) {
	t.Parallel()
	rank := func(d *driver, what string, e Event, want Rank) {
		t.Helper()
		for _, a := range d.m.Step(d.now, e) {
			if a.Do == Send && a.Call == CallAcquire {
				if a.Rank != want {
					t.Errorf("%s: rank %d, want %d", what, a.Rank, want)
				}
				return
			}
		}
		t.Errorf("%s: no question", what)
	}
	d := drive(t, nil)
	rank(d, "a new one", Event{What: Begin}, Anew)
	d.step(failed(CallAcquire, 0))
	d.now = d.m.Wake()
	rank(d, "a new one again", Event{What: Tick}, Anew)

	d = drive(t, nil)
	queue(d)
	d.at(sec(2)).step(Event{What: Tick})
	rank(d, "a lost place", answered(CallHeartbeat, sec(2), Answer{Outcome: Astray}), Anew)

	d = drive(t, nil)
	queue(d)
	rank(d, "a grant that was heard of late", func() Event {
		d.at(sec(60))
		return Event{What: Handed, Answer: Answer{Token: 7, NowMs: waiting.NowMs}}
	}(), Turn)

	d = drive(t, func(terms *Terms) { terms.Places = true })
	queue(d)
	d.now = d.m.Wake()
	rank(d, "a place that is watched", Event{What: Tick}, Place)
}
