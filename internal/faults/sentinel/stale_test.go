package sentinel_test

import "testing"

// TestSentinelStalePrimary: a primary that slept through its replacement still answers those who had asked before, until
// the Sentinels make it a replica: what it grants then is lost.
func TestSentinelStalePrimary(t *testing.T) {
	s := start(t)
	s.Losing(func() {
		primary := s.Primary()
		primary.Pause()
		s.AwaitTakeover(primary)
		primary.Resume()
		s.AwaitWhole()
	})
	s.Turns(2)
	s.Finish()
}
