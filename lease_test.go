package signalbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// On a busy machine a timer may come long after its time. What Err says is true all the same, and stays so.
func TestALeaseIsNotHeldBeyondItsDeadlineThoughItsTimerIsLate(t *testing.T) {
	t.Parallel()
	lease := heldForAnHour(t)
	if err := lease.Err(); err != nil {
		t.Fatal(err)
	}
	lease.mu.Lock()
	lease.timer.Stop() // it never comes
	lease.deadline = time.Now()
	lease.mu.Unlock()
	if err := lease.Err(); !errors.Is(err, ErrLeaseLost) {
		t.Fatalf("a lease whose deadline has passed says %v", err)
	}
	lease.extend(time.Now()) // the answer to a renewal comes late
	if err := lease.Err(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a lease that was lost says %v", err)
	}
	<-lease.Done()
}

// So it is with a lease of a majority.
func TestAQuorumIsNotHeldBeyondTheDeadlinesOfItsLeasesThoughTheirTimersAreLate(t *testing.T) {
	t.Parallel()
	leases := []*Lease{heldForAnHour(t), heldForAnHour(t), heldForAnHour(t)}
	l := &QuorumLease{name: "m", majority: 2, leases: leases, raised: leases, held: len(leases)}
	l.ctx, l.cancel = context.WithCancelCause(t.Context())
	for i, want := range []error{nil, nil, ErrLeaseLost} {
		if err := l.Err(); !errors.Is(err, want) {
			t.Fatalf("with %d of 3 lost: %v", i, err)
		}
		leases[i].mu.Lock()
		leases[i].timer.Stop() // it never comes
		leases[i].deadline = time.Now()
		leases[i].mu.Unlock()
	}
	<-l.Done()
}

// The answer to a renewal may take long, and another renewal be sent and answered meanwhile.
func TestAnAnswerThatWasOvertakenDoesNotShortenALease(t *testing.T) {
	t.Parallel()
	lease := heldForAnHour(t)
	sent := time.Now()
	lease.extend(sent.Add(time.Minute))
	deadline := lease.Deadline()
	lease.extend(sent)
	if got := lease.Deadline(); got.Before(deadline) {
		t.Errorf("the deadline went back by %v", deadline.Sub(got))
	}
}

// heldForAnHour returns a lease of a server that nobody can reach.
func heldForAnHour(t *testing.T) *Lease {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nobody listens
	box := New(client, Claim(50*time.Millisecond))
	t.Cleanup(func() {
		if err := errors.Join(box.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	w := newWaiter(t.Context(), box.Semaphore("s", 1), newTerms([]AcquireOption{TTL(time.Hour)}), true)
	w.waiting, w.sent = true, time.Now()
	w.hear(message{verb: "grant", number: [3]int64{1, 0, time.Hour.Milliseconds()}})
	return (<-w.outcome).lease
}
