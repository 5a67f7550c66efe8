package late_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// What a caller gave up arrives when he has gone.

func TestAcquireLate(t *testing.T) {
	s := start(t)
	const longTTL = time.Minute
	s.wire.next("{given up}", true)
	// The library asks again, and what it then gets it gives back.
	lease, err := s.first.Mutex("given up").TryAcquire(faults.Patient(t), signalbox.TTL(longTTL))
	if err == nil {
		must(t, lease.Release(t.Context()))
	} else if !errors.Is(err, signalbox.ErrUnavailable) {
		t.Fatal(err)
	}
	later := time.Now().Add(signalbox.DefaultClaim * 5 / 4)
	faults.Await(t, "the end of the claim time", func() bool { return time.Now().After(later) })
	s.arrive()
	// Whoever may have heard of it has the claim time to give it back.
	ctx, done := context.WithTimeout(t.Context(), 2*signalbox.DefaultClaim)
	defer done()
	next, err := s.second.Mutex("given up").Acquire(ctx)
	if err != nil {
		t.Fatalf("L7: nobody holds the mutex, and nobody gets it: %v", err)
	}
	must(t, next.Release(t.Context()))
}

func TestBarrierArriveLate(t *testing.T) {
	s := start(t)
	const parties, patience = 2, 300 * time.Millisecond
	s.wire.next("{steps}", true)
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	if _, err := s.first.Barrier("steps", parties).Wait(ctx); err == nil {
		t.Fatal("a barrier of two let one pass")
	}
	s.arrive()
	ctx, done = context.WithTimeout(t.Context(), patience)
	defer done()
	if round, err := s.second.Barrier("steps", parties).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("round %d with a party that gave up, %v", round, err)
	}
}
