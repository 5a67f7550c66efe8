package main

import "testing"

// TestTheCollectorGetsWhatItNeeds: room while collections cost much, little when they cost
// next to nothing, never less than its bounds, and nothing changes between two of them.
func TestTheCollectorGetsWhatItNeeds(t *testing.T) {
	const large = 1 << 30
	for name, c := range map[string]struct {
		collectedSec float64 // in each second
		liveBytes    uint64
		want         int
	}{
		"much garbage":        {0.3, large, highestPercent},
		"hardly any":          {0.01, large, lowestPercent},
		"neither":             {0.07, large, firstPercent},
		"hardly any, a small": {0.01, 8 << 20, 50},
		"an empty engine":     {0.01, 1 << 20, highestPercent},
		"no collections":      {0, large, firstPercent},
	} {
		var set int
		k := collector{percent: firstPercent, collected: 1, set: func(percent int) int { set = percent; return 0 }}
		set = firstPercent
		for i := range 50 {
			k.adjust(costs{1 + float64(i)*c.collectedSec, float64(i) * (1 - c.collectedSec), c.liveBytes})
		}
		if set != c.want {
			t.Errorf("%s: %d percent, want %d", name, set, c.want)
		}
	}
}
