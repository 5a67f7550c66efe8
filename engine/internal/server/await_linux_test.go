package server

import (
	"runtime"
	"testing"
	"time"
)

// What the loop does while it waits, and nobody else is to see.

// waitingLoop is one that takes its next wait for a brief one, on one P.
func waitingLoop(t *testing.T) *eventLoop {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	s := New(Options{})
	l, err := newEventLoop(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l.waiting.alone, l.waiting.brief = true, briefEnough
	return l
}

func wakeSoon(l *eventLoop) {
	time.AfterFunc(time.Microsecond, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wake()
	})
}

// TestAWaitEndsForWhatNeedsTheProcessor though the loop holds it: a timer is due, which nobody
// else can look at.
func TestAWaitEndsForWhatNeedsTheProcessor(t *testing.T) {
	l := waitingLoop(t)
	wakeSoon(l)
	if n := l.await(); n != 1 || int(l.events[0].Fd) != l.event {
		t.Fatalf("%d events, the first of %d, want one of %d", n, l.events[0].Fd, l.event)
	}
	if l.waiting.ticking {
		t.Error("it ticks, though the wait was not brief: an idle server would be woken all the time")
	}
}

// TestTheTickStaysBetweenBriefWaits, since to set it costs more than what it is for.
func TestTheTickStaysBetweenBriefWaits(t *testing.T) {
	l := waitingLoop(t)
	if !l.keepTicking() {
		t.Fatal("there is one P, and the loop does not hold it")
	}
	l.mu.Lock()
	l.wake()
	l.mu.Unlock()
	if n := l.await(); n == 0 || !l.waiting.ticking {
		t.Errorf("%d events, ticking %v, want some, and true", n, l.waiting.ticking)
	}
}

// TestALoopDoesNotHoldTheProcessorBeside goroutines that serve connections, or wait for the disk,
// and none of several.
func TestALoopDoesNotHoldTheProcessorBeside(t *testing.T) {
	for name, prepare := range map[string]func(*eventLoop){
		"a goroutine that serves":        func(l *eventLoop) { l.server.aside.Add(1) },
		"somebody who took it just now":  func(l *eventLoop) { l.waiting.alone = false },
		"another processor":              func(*eventLoop) { runtime.GOMAXPROCS(2) },
		"waits that were longer of late": func(l *eventLoop) { l.waiting.brief = briefEnough - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			l := waitingLoop(t)
			prepare(l)
			if l.mayHold() && l.keepTicking() {
				t.Error("it would")
			}
		})
	}
}
