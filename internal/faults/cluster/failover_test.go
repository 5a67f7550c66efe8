package cluster_test

import "testing"

// A primary is replaced: after it died and had passed on all its writes, after it died in the middle of them, and while
// it is well.

func TestClusterPrimaryKilled(t *testing.T) {
	s := start(t, false)
	primary := s.PrimaryOf(s.names[0])
	primary.Quiesce(t)
	primary.Kill()
	s.AwaitTakeover(s.names[0], primary)
	s.Turns(2)
	s.Finish()
}

func TestClusterPrimaryCrashed(t *testing.T) {
	s := start(t, false)
	primary := s.PrimaryOf(s.names[0])
	s.Losing(func() {
		primary.Kill()
		s.AwaitTakeover(s.names[0], primary)
	})
	s.Turns(2)
	s.Finish()
}

func TestClusterFailover(t *testing.T) {
	s := start(t, false)
	for range 3 {
		s.Failover(s.names[0])
		s.Turns(1)
	}
	s.Finish()
}
