package simtest

import (
	"context"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
)

// What is promised of time, to the moment. The claim time is long, so that a message that is not sent costs ten seconds: a
// heartbeat must not be what brings the turn.

const (
	slowClaim = 30 * time.Second
	moment    = 20 * time.Millisecond
)

// within runs fn and checks how long it took.
func (s *scene) within(least, most time.Duration, what string, fn func()) {
	s.Helper()
	begun := time.Now()
	fn()
	if took := time.Since(begun); took < least || took > most {
		s.Errorf("%s after %v, want %v to %v", what, took, least, most)
	}
}

// later runs fn in the background, and returns when what it waits for has surely begun.
func later[T any](fn func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- fn() }()
	time.Sleep(50 * time.Millisecond)
	return done
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

func TestALockDelayEndsToTheMoment(t *testing.T) {
	play(t, slowClaim, 2, func(s *scene) {
		lease, err := s.mutex(0).Acquire(s.ctx, signalbox.TTL(time.Second), signalbox.LockDelay(2*time.Second))
		s.must(err)
		granted := s.queue(1, time.Minute)
		s.boxes[0].host.crash()
		left := time.Until(lease.Deadline())
		s.within(left+2*time.Second, left+2*time.Second+margins, "granted", func() { s.release(<-granted) })
	})
}

// margins is by how much a holder may be more careful than the server.
const margins = 500*time.Millisecond + moment

func TestHoldAtLeastEndsToTheMoment(t *testing.T) {
	play(t, slowClaim, 2, func(s *scene) {
		lease, err := s.mutex(0).Acquire(s.ctx, signalbox.TTL(time.Minute), signalbox.HoldAtLeast(2*time.Second))
		s.must(err)
		granted := s.queue(1, time.Minute)
		s.release(lease)
		s.within(1900*time.Millisecond, 1950*time.Millisecond+moment, "granted", func() { s.release(<-granted) })
	})
}

func TestPacedWaitersGetTheirTurnToTheMoment(t *testing.T) {
	play(t, slowClaim, 3, func(s *scene) {
		pace := signalbox.Pace(signalbox.Every(time.Second), 1)
		acquire := func(box int) *signalbox.Lease {
			lease, err := s.boxes[box].Semaphore("paced", 9).Acquire(s.ctx, pace)
			s.must(err)
			return lease
		}
		first := acquire(0)
		second := later(func() *signalbox.Lease { return acquire(1) })
		third := later(func() *signalbox.Lease { return acquire(2) })
		s.within(850*time.Millisecond, 900*time.Millisecond+moment, "the second", func() { s.release(<-second) })
		s.within(950*time.Millisecond, time.Second+moment, "the third", func() { s.release(<-third) })
		s.release(first)
	})
}

func TestAGroupIsTold(t *testing.T) {
	play(t, slowClaim, 3, func(s *scene) {
		group := func(box int) []signalbox.Request {
			return []signalbox.Request{s.boxes[box].Mutex("x").Request(), s.boxes[box].Mutex("y").Request()}
		}
		x, err := s.boxes[0].Mutex("x").Acquire(s.ctx, signalbox.NoticeWaiters())
		s.must(err)
		y, err := s.boxes[0].Mutex("y").Acquire(s.ctx)
		s.must(err)
		time.Sleep(time.Second) // the holder has asked once when its inbox opened
		wait := func(box int) func() *signalbox.Leases {
			return func() *signalbox.Leases {
				all, err := s.boxes[box].AcquireAll(s.ctx, group(box))
				s.must(err)
				return all
			}
		}
		first := later(wait(1))
		second := later(wait(2))
		select {
		case <-x.Wanted():
		default:
			t.Error("the holder has no notice of the group")
		}
		s.release(x)
		s.within(0, moment, "nothing", func() {
			select {
			case <-first:
				t.Error("granted with y missing")
			default:
			}
		})
		s.release(y)
		var all *signalbox.Leases
		s.within(0, moment, "the first group", func() { all = <-first })
		s.must(all.Release(s.ctx))
		s.within(0, moment, "the second group", func() { s.must((<-second).Release(s.ctx)) })
	})
}

// A group at the head of a queue that dies there stands in the way for its claim time and no longer.
func TestADeadGroupLeavesItsPlaces(t *testing.T) {
	play(t, 3*time.Second, 3, func(s *scene) {
		y, err := s.boxes[0].Mutex("y").Acquire(s.ctx, signalbox.TTL(3*time.Second))
		s.must(err)
		later(func() error {
			_, err := s.boxes[1].AcquireAll(s.ctx,
				[]signalbox.Request{s.boxes[1].Mutex("x").Request(), s.boxes[1].Mutex("y").Request()})
			return err
		})
		s.boxes[1].host.crash()
		s.within(time.Second, 4*time.Second+moment, "x behind the dead group", func() {
			x, err := s.boxes[2].Mutex("x").Acquire(s.ctx, signalbox.TTL(3*time.Second))
			s.must(err)
			s.release(x)
		})
		s.release(y)
	})
}

func TestALatchOpensForAllAtOnce(t *testing.T) {
	play(t, slowClaim, 3, func(s *scene) {
		latch := func(box int) *signalbox.Latch {
			return s.boxes[box].Latch("latch", 2, signalbox.LatchKeep(time.Second))
		}
		open := []<-chan error{
			later(func() error { return latch(0).Await(s.ctx) }),
			later(func() error { return latch(1).Await(s.ctx) }),
		}
		_, err := latch(2).CountDown(s.ctx, "one")
		s.must(err)
		time.Sleep(500 * time.Millisecond)
		_, err = latch(2).CountDown(s.ctx, "two")
		s.must(err)
		for _, done := range open {
			s.within(0, moment, "open", func() { s.must(<-done) })
		}
	})
}

func TestABarrierOpensForAllAtOnce(t *testing.T) {
	play(t, 2*time.Second, 3, func(s *scene) {
		wait := func(box int) func() int64 {
			return func() int64 {
				round, err := s.boxes[box].Barrier("barrier", 3).Wait(s.ctx)
				s.must(err)
				return round
			}
		}
		first, second := later(wait(0)), later(wait(1))
		var rounds [3]int64
		s.within(0, moment, "open", func() { rounds = [3]int64{wait(2)(), <-first, <-second} })
		if rounds[0] == 0 || rounds[0] != rounds[1] || rounds[1] != rounds[2] {
			t.Errorf("rounds of one opening: %v", rounds)
		}
	})
}

// What one process may pass on inside it is bounded: then the others have their turn.
func TestLocalHandoffDoesNotKeepOthersOut(t *testing.T) {
	play(t, slowClaim, 2, func(s *scene) {
		const handoffs = 3
		acquire := func() *signalbox.Lease {
			lease, err := s.mutex(0).Acquire(s.ctx, signalbox.LocalHandoff(handoffs))
			s.must(err)
			return lease
		}
		held := acquire()
		var inside []<-chan *signalbox.Lease
		for range handoffs + 2 {
			inside = append(inside, later(acquire))
		}
		other := s.queue(1, time.Minute)
		for i := range handoffs {
			id := held.ID()
			s.release(held)
			if held = <-inside[i]; held.ID() != id {
				t.Errorf("handoff %d took another lease", i)
			}
		}
		s.release(held)
		s.within(0, moment, "the other process", func() { s.release(<-other) })
		for _, next := range inside[handoffs:] {
			s.within(0, moment, "the next inside", func() { s.release(<-next) })
		}
	})
}

// Readers that stand behind a writer go in together when it leaves or becomes a reader.
func TestReadersGoInTogether(t *testing.T) {
	play(t, slowClaim, 4, func(s *scene) {
		read := func(box int) func() *signalbox.Lease {
			return func() *signalbox.Lease {
				lease, err := s.boxes[box].RWMutex("rw").Read().Acquire(s.ctx)
				s.must(err)
				return lease
			}
		}
		lock := s.boxes[0].RWMutex("rw")
		writer, err := lock.Write().Acquire(s.ctx)
		s.must(err)
		first, second := later(read(1)), later(read(2))
		s.must(lock.Downgrade(s.ctx, writer))
		s.within(0, moment, "the readers", func() {
			one, two := <-first, <-second
			for _, lease := range []*signalbox.Lease{writer, one, two} {
				s.must(lease.Err())
			}
			s.release(one)
			s.release(two)
		})
		s.release(writer)
	})
}

// Who is told that the pace allows its turn much later goes on being heard from until then, and keeps its place.
func TestAPacedWaiterKeepsItsPlace(t *testing.T) {
	play(t, time.Second, 3, func(s *scene) {
		pace := signalbox.Pace(signalbox.Every(10*time.Second), 1)
		acquire := func(box int) *signalbox.Lease {
			lease, err := s.boxes[box].Semaphore("paced", 1).Acquire(s.ctx, pace, signalbox.TTL(time.Second))
			s.must(err)
			return lease
		}
		first := acquire(0)
		second := later(func() *signalbox.Lease { return acquire(1) })
		third := later(func() *signalbox.Lease { return acquire(2) })
		s.release(first) // which tells the second when to ask
		time.Sleep(5 * time.Second)
		queue, err := takeSnapshot(s.ctx, s.direct, s.resource("paced").Keys())
		s.must(err)
		for _, e := range queue.queue {
			if !e.until.After(time.Now()) {
				t.Errorf("L5: %s, which lives, was to be heard from %v ago", e.id, time.Since(e.until))
			}
		}
		if len(queue.queue) != 2 {
			t.Errorf("L3: the queue is %v", queue.queue)
		}
		s.within(4*time.Second, 5*time.Second, "the second", func() { s.release(<-second) })
		s.within(9*time.Second, 10*time.Second+moment, "the third", func() { s.release(<-third) })
	})
}

// What an acquisition asked for holds for a lease that was passed on to it, too: acquisitions that ask for other terms do
// not follow one another, and one may be entered again although the one before could not.
func TestAHandoffKeepsWhatWasAskedFor(t *testing.T) {
	play(t, slowClaim, 1, func(s *scene) {
		handoff := signalbox.LocalHandoff(5)
		acquire := func(options ...signalbox.AcquireOption) func() *signalbox.Lease {
			return func() *signalbox.Lease {
				lease, err := s.mutex(0).Acquire(s.ctx, append(options, handoff)...)
				s.must(err)
				return lease
			}
		}
		first := acquire()()
		again := later(acquire(signalbox.Reentrant()))
		delayed := later(acquire(signalbox.LockDelay(time.Second)))
		s.release(first)
		outer := <-again
		soon, cancel := context.WithTimeout(outer.Context(), time.Second)
		defer cancel()
		inner, err := s.mutex(0).Acquire(soon, signalbox.Reentrant())
		if err != nil || inner != outer {
			t.Errorf("entered again: %v, %v", inner, err)
		}
		s.release(inner)
		s.release(outer)
		last := <-delayed
		held, err := takeSnapshot(s.ctx, s.direct, s.resource(resourceName(0)).Keys())
		s.must(err)
		if len(held.holders) != 1 || held.holders[0].terms != "c1000,b5" {
			t.Errorf("on the server: %+v", held.holders)
		}
		s.release(last)
	})
}
