package acquisition

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What the policy says of itself.
func TestPauses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		failures := rapid.IntRange(0, 1000).Draw(t, "failures")
		span := time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(365*24*time.Hour)).Draw(t, "span"))
		left := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(365*24*time.Hour)).Draw(t, "left"))
		random := rapid.Uint64().Draw(t, "random")
		pause := Pause(failures, span, left, random)
		least, base := max(span/600, time.Millisecond), (span/60)<<min(max(failures-1, 0), maxDoublings)
		switch {
		case pause < least:
			t.Fatalf("%v: nobody else comes through", pause)
		case pause > max(2*base, least):
			t.Fatalf("%v is more than %v", pause, 2*base)
		case pause > max(left/2, least):
			t.Fatalf("%v of the %v that are left", pause, left)
		case pause < min(base, left/2):
			t.Fatalf("%v is less than %v", pause, base)
		}
		if more := Pause(failures+1, span, left, random); more < pause {
			t.Fatalf("%v, and after one more failure %v", pause, more)
		}
	})
}

// Two lives whose requests fail at once do not ask again at once.
func TestPausesAreSpread(t *testing.T) {
	t.Parallel()
	seen := make(map[time.Duration]bool)
	for seed := range uint64(100) {
		seen[New(Terms{Seed: seed}).pause(1, claim, claim)] = true
	}
	if len(seen) < 95 {
		t.Errorf("100 lives wait for %d different spans", len(seen))
	}
}
