package signalbox

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// On a busy machine a timer may come long after its time. What Err says is true all the same, and stays so.
func TestALeaseIsNotHeldBeyondItsDeadlineThoughItsTimerIsLate(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nobody listens
	defer client.Close()
	box := New(client, Claim(50*time.Millisecond))
	defer box.Close()
	w := newWaiter(t.Context(), box.Semaphore("s", 1), newTerms([]AcquireOption{TTL(time.Hour)}), true)
	w.waiting, w.sent = true, time.Now()
	w.hear(message{verb: "grant", number: [3]int64{1, 0, time.Hour.Milliseconds()}})
	lease := (<-w.outcome).lease
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
