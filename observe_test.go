package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// seen keeps what a Box lets its observers see.
type seen struct {
	mu  sync.Mutex
	all []signalbox.Observation
}

func (s *seen) observe(o signalbox.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, o)
}

func (s *seen) happenings() []signalbox.Happening {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []signalbox.Happening
	for _, o := range s.all {
		all = append(all, o.What)
	}
	return all
}

// balanced checks what gauges and traces live by: each acquisition begins and ends once, each lease is first granted, and
// then released or lost once.
func (s *seen) balanced(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, held, granted := 0, map[string]int{}, map[string]bool{}
	for _, o := range s.all {
		switch o.What {
		case signalbox.Begun:
			waiting++
		case signalbox.Granted:
			waiting--
			held[o.ID]++
			granted[o.ID] = true
		case signalbox.Refused, signalbox.Failed:
			waiting--
		case signalbox.Released, signalbox.Lost:
			held[o.ID]--
		case signalbox.Renewed:
			if !granted[o.ID] {
				t.Errorf("lease %s was renewed before it was granted", o.ID)
			}
		}
		if waiting < 0 || held[o.ID] < 0 {
			t.Fatalf("%s of lease %q: %d wait, it is held %d times", o.What, o.ID, waiting, held[o.ID])
		}
	}
	if waiting != 0 {
		t.Errorf("%d acquisitions seem to wait when all have ended", waiting)
	}
	for id, n := range held {
		if n != 0 {
			t.Errorf("lease %s seems to be held when all is released", id)
		}
	}
}

// inBubble runs test on an engine in virtual time, with what is observed, which must be balanced when the Box is closed.
func inBubble(t *testing.T, test func(t *testing.T, box *embedded.Box, seen *seen)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		seen := &seen{}
		box, err := embedded.Open("", signalbox.Observe(seen.observe))
		must(t, err)
		test(t, box, seen)
		must(t, box.Close())
		seen.balanced(t)
	})
}

func (s *seen) are(t *testing.T, want ...signalbox.Happening) {
	t.Helper()
	if got := s.happenings(); !slices.Equal(got, want) {
		t.Errorf("observed %v, want %v", got, want)
	}
}

func TestALeaseNobodyGotIsNotObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, box *embedded.Box, seen *seen) {
		// The server grants at once; then the acquisition waits for a replica that does not exist, and gives up.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := box.Mutex("m").Acquire(ctx, signalbox.TTL(2*time.Second), signalbox.WithReplicas(1, time.Hour))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want DeadlineExceeded", err)
		}
		seen.are(t, signalbox.Begun, signalbox.Failed)
	})
}

func TestRenewalsAreObservedWithTheirLagAndTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, box *embedded.Box, seen *seen) {
		lease, err := box.Mutex("m").Acquire(t.Context(), signalbox.TTL(30*time.Second))
		must(t, err)
		time.Sleep(25 * time.Second)
		must(t, lease.Release(t.Context()))
		seen.are(t, signalbox.Begun, signalbox.Granted, signalbox.Renewed, signalbox.Renewed, signalbox.Released)
		for _, o := range seen.all[2:4] {
			if o.TTL != 30*time.Second || o.Lag < 0 || o.Lag > time.Second {
				t.Errorf("ttl %v, lag %v: want 30s and about none", o.TTL, o.Lag)
			}
		}
	})
}

func TestEveryWayAnAcquisitionAndALeaseCanEndIsObservedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, box *embedded.Box, seen *seen) {
		first, err := box.Mutex("m").Acquire(t.Context())
		must(t, err)
		if _, err := box.Mutex("m").TryAcquire(t.Context()); !errors.Is(err, signalbox.ErrBusy) {
			t.Fatalf("got %v, want ErrBusy", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := box.Mutex("m").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want DeadlineExceeded", err)
		}
		must(t, first.Release(t.Context()))
		all, err := box.AcquireAll(t.Context(), []signalbox.Request{box.Mutex("{a}1").Request(), box.Mutex("{a}2").Request()})
		must(t, err)
		must(t, all.Release(t.Context()))
		_, err = box.Mutex("left to Close").Acquire(t.Context())
		must(t, err)
		seen.are(t, "begun", "granted", "begun", "refused", "begun", "failed", "released",
			"begun", "begun", "granted", "granted", "released", "released", "begun", "granted")
	})
}

// Handed on inside the process, a lease keeps its id; cancels come at the very moment at which it is handed over.
func TestHandoffsAndCancelsAreObservedInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, box *embedded.Box, seen *seen) {
		var workers sync.WaitGroup
		for i := range 200 {
			workers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%20+1)*time.Millisecond)
				defer cancel()
				lease, err := box.Mutex(fmt.Sprint(i%2)).Acquire(ctx, signalbox.LocalHandoff(10))
				if err != nil {
					return
				}
				time.Sleep(time.Millisecond)
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		if !slices.Contains(seen.happenings(), signalbox.Failed) || !slices.Contains(seen.happenings(), signalbox.Granted) {
			t.Error("none was cancelled, or none granted: this test shows nothing")
		}
	})
}

// A server that removes keys when its memory is full can be used, and is told of once.
func TestServerThatEvictsIsToldOf(t *testing.T) {
	t.Parallel()
	evicting := &fakeServer{
		info: "redis_version:7.0.15\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n", reply: "+OK",
	}
	var warnings []signalbox.Observation
	box, err := signalbox.Open(t.Context(), "redis://"+evicting.start(t), signalbox.Observe(func(o signalbox.Observation) {
		if o.What == signalbox.Warned {
			warnings = append(warnings, o)
		}
	}))
	must(t, err)
	defer func() { must(t, box.Close()) }()
	_, _ = box.Inspect(t.Context(), "r") // nor does it ask again
	if len(warnings) != 1 {
		t.Fatalf("told %d times", len(warnings))
	}
	says(t, warnings[0].Err, signalbox.ErrEvicts, "allkeys-lru", "noeviction")
}
