package signalbox

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// A lease whose end is near may not wait long for the answer to its renewal. The others in need of one may, and go in
// as few pipelines as there can be.
func TestUrgentRenewalHurriesNobody(t *testing.T) {
	t.Parallel()
	now := time.Now()
	k := keeper{box: &Box{claim: DefaultClaim}}
	leases := []*Lease{{deadline: now.Add(-time.Second)}, {deadline: now.Add(20 * time.Millisecond)}}
	for range 2*batchMax + 1 {
		leases = append(leases, &Lease{deadline: now.Add(20 * time.Second)})
	}
	want := []struct {
		size     int
		patience time.Duration
	}{
		{1, time.Millisecond},
		{1, 10 * time.Millisecond},
		{batchMax, DefaultClaim},
		{batchMax, DefaultClaim},
		{1, DefaultClaim},
	}
	for i, w := range want {
		batch, patience := k.alike(leases, now)
		if len(batch) != w.size || patience != w.patience {
			t.Fatalf("batch %d: %d leases and %v, want %d and %v", i, len(batch), patience, w.size, w.patience)
		}
		leases = leases[len(batch):]
	}
	if len(leases) > 0 {
		t.Fatalf("%d leases are left over", len(leases))
	}
}

// Two renewals of a lease can be answered at once: its own, and that of the lease whose place it has taken in this process.
// What goes wrong here is seen by the race detector.
func TestAnHeirTakesTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(t).Addr, MaxRetries: -1})
	defer client.Close()
	box := New(client)
	defer box.Close()
	heir, err := box.Mutex("m").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := &Lease{grant: heir.grant, heir: heir}
	var answers sync.WaitGroup
	for _, lease := range []*Lease{before, heir} {
		answers.Go(func() { lease.renewed(time.Now(), ledger.Lost, ledger.ErrUnavailable) })
		answers.Go(func() { lease.renewed(time.Now(), ledger.Held, nil) })
	}
	answers.Wait()
	if err := heir.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A waiter whose answer comes while the inbox opens asks once more, for messages that may have gone by, and only once.
func TestAnInboxThatOpensHasAWaiterAskOnce(t *testing.T) {
	t.Parallel()
	for range 5000 {
		box := &Box{claim: DefaultClaim}
		k := &keeper{box: box, wake: make(chan struct{}, 1), started: true}
		w := &waiter{}
		w.duty.waiter = w
		var both sync.WaitGroup
		both.Go(func() {
			box.inbox.round.Store(1)
			k.hasten(1)
		})
		both.Go(func() { k.await(w, time.Now().Add(time.Hour)) })
		over := make(chan struct{})
		go func() {
			defer close(over)
			both.Wait()
		}()
		asked := 0
		for waiting := true; waiting; {
			select {
			case <-over:
				waiting = false
			default:
			}
			_, waiters, _ := k.take()
			asked += len(waiters)
		}
		if asked != 1 {
			t.Fatalf("asked %d times", asked)
		}
	}
}
