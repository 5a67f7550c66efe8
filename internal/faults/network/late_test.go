package network_test

import (
	"errors"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What arrives late: after the client has given up on it, or after the leases it speaks of are over.

// TestSlowerThanTheReadTimeout: some replies are in time, others are read by nobody.
func TestSlowerThanTheReadTimeout(t *testing.T) {
	s := start(t, false)
	s.suffer(faultproxy.Fault{Replies: faultproxy.Direction{Delay: 100 * time.Millisecond, Jitter: 400 * time.Millisecond}})
	s.suffer(faultproxy.Fault{Requests: faultproxy.Direction{Delay: 100 * time.Millisecond, Jitter: 400 * time.Millisecond}})
	s.Finish()
}

// TestPartition: the requests of before arrive after the leases of before have expired.
func TestPartition(t *testing.T) {
	s := start(t, false)
	box, err := signalbox.Open(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	for range 2 {
		witness, err := box.Mutex(t.Name()+" witness").Acquire(faults.Patient(t), signalbox.TTL(faults.TTL))
		if err != nil {
			t.Fatal(err)
		}
		s.proxy.Set(faultproxy.Fault{
			Requests: faultproxy.Direction{Hold: true}, Replies: faultproxy.Direction{Hold: true},
		})
		faults.Await(t, "the end of the lease on the server", func() bool {
			return expiry(t, s, witness) < now(t, s)
		})
		if witness.Err() == nil && time.Now().Before(witness.Deadline()) {
			t.Error("H1: the server ended a lease whose holder counts on it")
		}
		s.Failures(10)
		s.proxy.Restore()
		if err := witness.Release(faults.Patient(t)); !errors.Is(err, signalbox.ErrLeaseLost) {
			t.Errorf("the release of a lease that had expired: %v", err)
		}
		s.Turns(1)
	}
	s.Finish()
}

// now is the server's clock in ms.
// expiry is when the server ends a lease, 0 if it knows of none.
func expiry(t *testing.T, s *site, lease *signalbox.Lease) int64 {
	t.Helper()
	resource, err := ledger.NewResource(lease.Resource())
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.server.Eval(t.Context(), ledger.Probe, resource.Keys(), "read").Result()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := ledger.ReadStored(reply)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range stored[0].Leases {
		if e.ID == lease.ID() {
			return e.UntilMs
		}
	}
	return 0
}

func now(t *testing.T, s *site) int64 {
	t.Helper()
	at, err := s.server.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}
