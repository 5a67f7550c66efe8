package main

import (
	"testing"
	"time"
)

// at is a moment, in milliseconds from the beginning of the window of these tests, which lasts a second.
func at(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }

var second = window{at(0), at(1000)}

func TestSharesAreOfTheFairPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts            []int
		smallest, largest float64
	}{
		{[]int{5, 5}, 1, 1},
		{[]int{0, 10}, 0, 2},
		{[]int{1, 2, 3, 6}, 1.0 / 3, 2},
		{[]int{0, 0}, 0, 0},
		{nil, 0, 0},
	} {
		if smallest, largest := shares(c.counts); smallest != c.smallest || largest != c.largest {
			t.Errorf("shares of %v are %v and %v, want %v and %v", c.counts, smallest, largest, c.smallest, c.largest)
		}
	}
}

func TestWaitCountsFromWhenItWasAskedFor(t *testing.T) {
	t.Parallel()
	var got turns
	got.note(second, at(-150), at(50), at(60))
	if got.Count != 1 || got.Waits[0] != 200*time.Millisecond || got.Held != 10*time.Millisecond {
		t.Errorf("got %+v, want the wait before the window too", got)
	}
}

func TestTurnsOutsideTheWindowDoNotCount(t *testing.T) {
	t.Parallel()
	var got turns
	got.note(second, at(-150), at(-100), at(-90))
	if got.Count != 0 || len(got.Waits) != 0 {
		t.Errorf("got %+v from a turn before the window", got)
	}
	got.note(second, at(900), at(1100), at(1110))
	if got.Count != 0 || len(got.Waits) != 1 || got.Waits[0] != 100*time.Millisecond {
		t.Errorf("got %+v, want no turn and a wait until the end of the window", got)
	}
}

func TestLongestWaitIsThatOfWhoNeverGotIt(t *testing.T) {
	t.Parallel()
	var lucky, starved turns
	for i := range 100 {
		lucky.note(second, at(10*i), at(10*i+1), at(10*i+2))
	}
	starved.unfinished(second, at(-200))
	b := sum([]processReport{{Clients: []turns{lucky}}, {Clients: []turns{starved}}}, time.Second,
		calls{"evalsha": 200, "get": 300}, signalboxKind, 0)
	if b.longestMs != 1200 {
		t.Errorf("the longest wait is %v ms, want the 1200 of the one that got nothing", b.longestMs)
	}
	if b.smallest != 0 || b.largest != 2 || b.rate != 100 || b.fairness != 100 {
		t.Errorf("got %+v", b)
	}
	if b.perTurn(b.sent) != 2 || b.perTurn(b.inner) != 3 {
		t.Errorf("%v sent and %v in scripts, want 2 and 3 per turn", b.perTurn(b.sent), b.perTurn(b.inner))
	}
	if b.p50Ms != 1 || b.p99Ms != 1 && b.p99Ms != 1200 {
		t.Errorf("p50 %v, p99 %v", b.p50Ms, b.p99Ms)
	}
}

func TestUnfinishedAfterTheWindowIsNoWait(t *testing.T) {
	t.Parallel()
	var got turns
	got.unfinished(second, at(1001))
	if len(got.Waits) != 0 {
		t.Errorf("got a wait of %v", got.Waits)
	}
}

func TestQuantileOfFewValuesIsOneOfThem(t *testing.T) {
	t.Parallel()
	values := []time.Duration{1, 2, 3, 4}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}

func TestSumOfProcessesCountsASharedFaultOnce(t *testing.T) {
	t.Parallel()
	b := sum([]processReport{
		{Overlaps: 2, Disorders: 1, CPU: time.Second}, {Overlaps: 3, Disorders: 1, CPU: time.Second},
	}, 2*time.Second, nil, signalboxKind, time.Second)
	if b.overlaps != 3 || b.disorders != 1 {
		t.Errorf("%d overlaps and %d disorders, want 3 and 1", b.overlaps, b.disorders)
	}
	if b.clientCores != 1 || b.serverCores != 0.5 {
		t.Errorf("CPU %v and %v, want 1 core of the clients and half a core of the server", b.clientCores, b.serverCores)
	}
}

func TestCPUPerTurnIsInMicroseconds(t *testing.T) {
	t.Parallel()
	b := bout{rate: 1000, serverCores: 0.5, clientCores: 1}
	if server, clients := b.cpuPerTurn(); server != 500 || clients != 1000 {
		t.Errorf("%v and %v, want 500 and 1000", server, clients)
	}
}

func TestBookSendsAllAndTheHeadcountIsNobodys(t *testing.T) {
	t.Parallel()
	delta := calls{"zadd": 30, "multi": 10, "exec": 10, headcountCommand: 40}.since(calls{"zadd": 10})
	if got := delta.sent(fairKind); got != 40 {
		t.Errorf("the fair semaphore sent %d, want 40", got)
	}
	if got := delta.inner(fairKind); got != 0 {
		t.Errorf("%d calls came from scripts it does not have", got)
	}
}
