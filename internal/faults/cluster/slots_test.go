package cluster_test

import (
	"context"
	"testing"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// Slots move while their keys are worked on. A transition reads four keys, some of which do not exist most of the time;
// while their slot moves neither node has them all, and both send it away until the move is over. So each move waits
// halfway until the load has felt that.

func TestClusterSlotMoved(t *testing.T) {
	s := start(t, false)
	// met waits until the load has been sent away with a word once more.
	met := func(word string, before int) {
		t.Helper()
		faults.Await(t, "a "+word, func() bool { return s.refusals(t, word) > before })
	}
	for _, name := range s.names[:3] {
		s.MigrateSlot(name, func(stage topology.Stage) {
			switch stage {
			case topology.OneMoved:
				met("TRYAGAIN", s.refusals(t, "TRYAGAIN"))
			case topology.AllMoved:
				met("ASK", s.refusals(t, "ASK"))
			}
		})
		s.Turns(1) // whoever listens there hears that the slot has gone; the others are sent away with a MOVED
	}
	s.Finish()
}

func TestClusterGrows(t *testing.T) {
	s := start(t, false)
	added := s.AddPrimary()
	for _, name := range s.names {
		s.MoveSlot(name, added, nil)
		if s.PrimaryOf(name) != added {
			t.Fatalf("the added node does not serve %q", name)
		}
	}
	s.Turns(2)
	s.Finish()
}

// TestClusterScriptStopped: the old owner of a slot stops a script in its middle when that comes to a key which does
// not exist (any more): here, of the leases, after the last one has gone and when the next is to come.
func TestClusterScriptStopped(t *testing.T) {
	faults.Begin(t)
	c := topology.StartCluster(t, topology.ClusterOptions{})
	box, err := signalbox.Open(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	name, waits := t.Name(), make(chan signalbox.Waiting, 10)
	// A plain lease is handed on with its keys there all the time. With a notice LEASES is empty for a moment, and so is away.
	first, err := box.Mutex(name).Acquire(faults.Patient(t), signalbox.NoticeWaiters())
	if err != nil {
		t.Fatal(err)
	}
	acquired := make(chan *signalbox.Lease, 1)
	go func() {
		lease, err := box.Mutex(name).Acquire(faults.Patient(t), signalbox.OnWait(func(w signalbox.Waiting) { waits <- w }))
		if err != nil {
			t.Error(err)
		}
		acquired <- lease
	}()
	faults.Awaited(t, "a place in the queue", waits)
	released := make(chan error, 1)
	owner := c.PrimaryOf(name)
	c.MigrateSlot(name, func(stage topology.Stage) {
		if stage != topology.Begun {
			return
		}
		before := owner.Refusals(t, "ERR")
		go func() { released <- first.Release(context.Background()) }()
		faults.Await(t, "a script that is stopped", func() bool { return owner.Refusals(t, "ERR") > before })
	})
	if err := faults.Awaited(t, "the release", released); err != nil {
		t.Errorf("the release: %v", err)
	}
	next := faults.Awaited(t, "the waiter's turn", acquired)
	if next == nil {
		return
	}
	if next.Token() <= first.Token() {
		t.Errorf("L2: token %d after %d", next.Token(), first.Token())
	}
	state, err := box.Inspect(t.Context(), name)
	if err != nil || state.Held != 1 || state.Leases != 1 || state.Waiters != 0 {
		t.Errorf("L1 L8: the state after its repair: %+v, %v", state, err)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
