package sentinel_test

import "testing"

// The primary is replaced: after it died and had passed on all its writes, and while it is well.

func TestSentinelPrimaryKilled(t *testing.T) {
	s := start(t)
	primary := s.Primary()
	primary.Quiesce(t)
	primary.Kill()
	s.AwaitTakeover(primary)
	s.Turns(2)
	s.Finish()
}

// TestSentinelFailover: Sentinels do not wait for the replica that they promote.
func TestSentinelFailover(t *testing.T) {
	s := start(t)
	s.Losing(func() { s.Failover() })
	s.Turns(2)
	s.Finish()
}
