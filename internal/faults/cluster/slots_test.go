package cluster_test

import "testing"

// Slots move while their keys are worked on. A transition reads four keys, some of which do not exist most of the time;
// while their slot moves neither node has them all, and both send it away until the move is over. So each move waits
// halfway until the load has felt that.

func TestClusterSlotMoved(t *testing.T) {
	s := start(t, false)
	for _, name := range s.names[:3] {
		asked, moved, again := s.refusals(t, "ASK"), s.refusals(t, "MOVED"), s.refusals(t, "TRYAGAIN")
		s.MigrateSlot(name, func() {
			s.Failures(3)
			if s.refusals(t, "ASK") == asked || s.refusals(t, "TRYAGAIN") == again {
				t.Errorf("the load met %d ASK and %d TRYAGAIN", s.refusals(t, "ASK")-asked, s.refusals(t, "TRYAGAIN")-again)
			}
		})
		s.Turns(1)
		if s.refusals(t, "MOVED") == moved {
			t.Error("the load met no MOVED")
		}
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
