package late_test

import (
	"errors"
	"testing"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
)

// A change of weight of which it is not known whether it came to be. What a lease says of itself must be true until then:
// a writer is alone.

const name = "rw"

// acquire is for the first box.
func acquire(t *testing.T, side *signalbox.RWSide) *signalbox.Lease {
	t.Helper()
	lease, err := side.Acquire(faults.Patient(t))
	must(t, err)
	return lease
}

// reads tries to read as another process, and checks that nobody believes to write meanwhile.
func (s *site) reads(lease *signalbox.Lease) {
	s.t.Helper()
	reader, err := s.second.RWMutex(name).Read().TryAcquire(faults.Patient(s.t))
	if errors.Is(err, signalbox.ErrBusy) {
		return
	}
	must(s.t, err)
	if lease.Err() == nil && lease.Weight() == signalbox.MaxReaders {
		s.t.Errorf("L1: a reader is in, and a lease says that it writes (tokens %d and %d)", reader.Token(), lease.Token())
	}
	must(s.t, reader.Release(faults.Patient(s.t)))
}

// ends releases a lease, and checks that another process has its turn then, to write.
func (s *site) ends(lease *signalbox.Lease) {
	s.t.Helper()
	if err := lease.Release(faults.Patient(s.t)); err != nil {
		s.t.Errorf("a release: %v", err)
	}
	next, err := s.second.RWMutex(name).Write().Acquire(faults.Patient(s.t))
	must(s.t, err)
	if next.Token() <= lease.Token() {
		s.t.Errorf("L2: token %d after %d", next.Token(), lease.Token())
	}
	must(s.t, next.Release(faults.Patient(s.t)))
	state, err := s.second.Inspect(s.t.Context(), name)
	must(s.t, err)
	if state.Leases+state.Waiters+state.Held > 0 {
		s.t.Errorf("L7: left behind: %+v", state)
	}
}

func TestDowngradeReplyLost(t *testing.T) {
	s := start(t)
	mutex := s.first.RWMutex(name)
	lease := acquire(t, mutex.Write())
	s.loses(lease, func() error { return mutex.Downgrade(t.Context(), lease) })
	s.reads(lease)
	must(t, mutex.Downgrade(t.Context(), lease)) // the call may be made again
	s.reads(lease)
	s.ends(lease)
}

func TestUpgradeReplyLost(t *testing.T) {
	s := start(t)
	mutex := s.first.RWMutex(name)
	lease := acquire(t, mutex.Read())
	s.loses(lease, func() error { return mutex.Upgrade(t.Context(), lease) })
	s.reads(lease)
	must(t, mutex.Upgrade(t.Context(), lease))
	s.reads(lease)
	if lease.Err() != nil || lease.Weight() != signalbox.MaxReaders {
		t.Errorf("the second Upgrade was no error, and the lease has weight %d, %v", lease.Weight(), lease.Err())
	}
	s.ends(lease)
}

// TestDowngradeLate: the request of a Downgrade that was given up arrives when the lease writes again.
func TestDowngradeLate(t *testing.T) {
	s := start(t)
	mutex := s.first.RWMutex(name)
	lease := acquire(t, mutex.Write())
	arrive := s.delays(lease, func() error { return mutex.Downgrade(t.Context(), lease) })
	must(t, mutex.Downgrade(t.Context(), lease))
	must(t, mutex.Upgrade(t.Context(), lease))
	arrive()
	s.reads(lease)
	s.ends(lease)
}

// TestUpgradeLate: the request of an Upgrade that was given up arrives when another reads.
func TestUpgradeLate(t *testing.T) {
	s := start(t)
	mutex := s.first.RWMutex(name)
	lease := acquire(t, mutex.Read())
	arrive := s.delays(lease, func() error { return mutex.Upgrade(t.Context(), lease) })
	must(t, mutex.Upgrade(t.Context(), lease))
	must(t, mutex.Downgrade(t.Context(), lease))
	reader, err := s.second.RWMutex(name).Read().TryAcquire(t.Context())
	must(t, err)
	arrive()
	s.reads(lease)
	must(t, reader.Release(t.Context()))
	s.ends(lease)
}
