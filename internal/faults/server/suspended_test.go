//go:build unix

package server_test

import (
	"errors"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// TestServerSuspended: a server that wakes finds leases that are over, and requests whose clients have gone.
func TestServerSuspended(t *testing.T) {
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
		s.Pause()
		faults.Awaited(t, "the end of the lease", witness.Done())
		over := time.Now().Add(faults.TTL / 10) // the margin that a holder stops before the server
		s.Failures(10)
		faults.Await(t, "the end of the lease on the server", func() bool { return time.Now().After(over) })
		s.Resume()
		if err := witness.Release(faults.Patient(t)); !errors.Is(err, signalbox.ErrLeaseLost) {
			t.Errorf("the release of a lease that had expired: %v", err)
		}
		s.Turns(1)
	}
	s.Finish()
}
