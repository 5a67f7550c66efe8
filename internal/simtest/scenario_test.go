package simtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
)

// Scenarios are what seeds have found, cut down to the steps that matter, and promises with a time that a random run
// can only bound loosely.

// scene is a world without faults but those that a scenario makes.
type scene struct {
	*world
	*testing.T
	ctx context.Context // ends long after everything that is to come
}

func play(t *testing.T, claim time.Duration, boxes int, scenario func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(&Plan{
			Boxes: boxes, Limits: []int{1}, Claim: claim, TTLs: []time.Duration{3 * time.Second}, Timeout: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		scenario(&scene{w, t, ctx})
		w.finish()
		if violation := w.check.violation(); violation != "" {
			t.Error(violation)
		}
	})
}

func (s *scene) mutex(box int) *signalbox.Mutex { return s.boxes[box].Mutex(resourceName(0)) }

func (s *scene) acquire(box int, ttl time.Duration) *signalbox.Lease {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lease, err := s.mutex(box).Acquire(ctx, signalbox.TTL(ttl))
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

// queue acquires in the background and returns when the waiter stands in the queue.
func (s *scene) queue(box int, ttl time.Duration) <-chan *signalbox.Lease {
	granted := make(chan *signalbox.Lease, 1)
	go func() {
		lease, err := s.mutex(box).Acquire(s.ctx, signalbox.TTL(ttl))
		if err != nil {
			s.Error(err)
		}
		granted <- lease
	}()
	time.Sleep(50 * time.Millisecond)
	return granted
}

func (s *scene) release(lease *signalbox.Lease) {
	s.Helper()
	if lease == nil {
		return // that there is none has been told
	}
	if err := lease.Release(context.Background()); err != nil {
		s.Error(err)
	}
}

// L5: nobody polls, and yet a crashed holder delays the next one by its ttl and no more than a moment.
func TestACrashedHoldersPermitPassesOnAsItsLeaseExpires(t *testing.T) {
	play(t, 30*time.Second, 2, func(s *scene) {
		s.acquire(0, time.Second)
		granted := s.queue(1, time.Second)
		begun := time.Now()
		s.boxes[0].host.crash()
		s.release(<-granted)
		if took := time.Since(begun); took > time.Second+20*time.Millisecond {
			t.Errorf("granted after %v, and the lease had a second", took)
		}
	})
}

// L1: a grant lasts for the claim time, and the first renewal gives the ttl. Where that is the shorter one, the renewal
// shortens the lease, and its holder may not hear of it.
func TestARenewalWithoutAnAnswerLeavesNoOverlap(t *testing.T) {
	play(t, 3*time.Second, 3, func(s *scene) {
		first := s.acquire(0, time.Second)
		second := s.queue(1, 200*time.Millisecond)
		third := s.queue(2, time.Second)
		s.release(first)
		lease := <-second
		s.boxes[1].host.partition(false, true, 2*time.Second)
		next := <-third
		if lease.Err() == nil {
			t.Errorf("two hold the mutex: one was granted token %d, and the other believes in %d until %v from now",
				next.Token(), lease.Token(), time.Until(lease.Deadline()))
		}
		s.release(next)
	})
}

// L8: whoever holds a lease that was waited for when the state is evicted can release it, and what is mended expires like everything else.
func TestAHolderReleasesAfterTheStateWasEvicted(t *testing.T) {
	play(t, time.Second, 1, func(s *scene) {
		lease := s.acquire(0, time.Second)
		ctx, cancel := context.WithCancel(s.ctx)
		time.AfterFunc(time.Second/2, cancel)
		if _, err := s.boxes[0].Mutex(resourceName(0)).Acquire(ctx); err == nil { // which makes the form the full one
			t.Error("two hold the mutex")
		}
		s.evict(0)
		s.release(lease)
		s.release(s.acquire(0, time.Second))
	})
}

// L6: the record that mends an evicted state may be the only field, and goes when its lease has expired; the key that
// is written next needs an expiry of its own.
func TestAMendedStateExpires(t *testing.T) {
	play(t, time.Second, 2, func(s *scene) {
		s.acquire(0, time.Second)
		s.boxes[0].host.crash()
		s.evict(0)
		time.Sleep(1100 * time.Millisecond)
		if _, err := s.boxes[1].Inspect(context.Background(), resourceName(0)); err != nil {
			t.Error(err)
		}
	})
}

// A watcher whose loop takes longer than the server publishes without being asked again sees a Snapshot of what it missed.
func TestASlowWatcherSeesWhatItMissed(t *testing.T) {
	play(t, time.Second, 2, func(s *scene) {
		const slow = time.Minute
		ctx, cancel := context.WithTimeout(s.ctx, 2*slow)
		defer cancel()
		time.AfterFunc(5*time.Second, func() { s.release(s.acquire(1, time.Second)) })
		held := make(chan *signalbox.Lease, 1)
		time.AfterFunc(slow/2, func() { held <- s.acquire(1, time.Second) })
		seen := int64(0)
		for event, err := range s.boxes[0].Watch(ctx, resourceName(0)) {
			if err != nil {
				t.Errorf("it has not learned of the second grant: %v", err)
			}
			if event.What == signalbox.LeaseGranted && seen == 0 {
				seen = event.Token
				time.Sleep(slow)
			}
			if event.What == signalbox.Snapshot && seen > 0 && event.State.Token > seen {
				break
			}
		}
		s.release(<-held)
	})
}

// evict deletes the state, the leases, the queue or the seen of the resource.
func (s *scene) evict(key int) {
	s.Helper()
	if err := s.direct.Del(context.Background(), s.resource(resourceName(0)).Keys()[key]).Err(); err != nil {
		s.Error(err)
	}
}

// An acquisition that waits bears with a server that cannot be reached for a moment, the first one of a box too.
func TestTheFirstAcquireSurvivesACut(t *testing.T) {
	play(t, time.Second, 1, func(s *scene) {
		s.boxes[0].host.partition(true, true, 300*time.Millisecond)
		time.AfterFunc(100*time.Millisecond, s.boxes[0].host.resetAll)
		s.release(s.acquire(0, time.Second))
	})
}
