package cluster_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/internal/faults"
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
		moved := s.refusals(t, "MOVED")
		s.MigrateSlot(name, func(all bool) {
			if all {
				met("ASK", s.refusals(t, "ASK")) // the old owner has nothing of it
			}
			met("TRYAGAIN", s.refusals(t, "TRYAGAIN"))
		})
		met("MOVED", moved)
		s.Turns(1)
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
