package engine

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
		"hardly any, a small": {0.01, 32 << 20, 50},
		"an empty engine":     {0.01, 1 << 20, 425}, // of Go's smallest heap: 17 MB,
		"no collections":      {0, large, firstPercent},
	} {
		var set int
		k := collector{percent: firstPercent, collected: 1, set: func(percent int) int { set = percent; return 0 }}
		set = firstPercent
		for i := range 50 {
			k.adjust(costs{collectedSec: 1 + float64(i)*c.collectedSec, workedSec: float64(i) * (1 - c.collectedSec), liveBytes: c.liveBytes})
		}
		if set != c.want {
			t.Errorf("%s: %d percent, want %d", name, set, c.want)
		}
	}
}

// TestGarbageGoesWhenNobodyWorks: once there is enough of it, and not in the midst of work.
func TestGarbageGoesWhenNobodyWorks(t *testing.T) {
	const live = 100 << 20
	for name, c := range map[string]struct {
		heapBytes, eachStep uint64
		want                int
	}{
		"garbage, at rest": {2 * live, 0, 10},
		"garbage, at work": {2 * live, 1 << 20, 0},
		"little garbage":   {live + live/25, 0, 0},
		"none":             {live, 0, 0},
	} {
		var k collector
		rests := 0
		for i := range uint64(100) {
			if k.rests(costs{liveBytes: live, heapBytes: c.heapBytes, allocatedBytes: i * c.eachStep}) {
				rests++
			}
		}
		if c.eachStep > 0 && rests > 0 || c.eachStep == 0 && rests != c.want {
			t.Errorf("%s: collected %d times, want %d", name, rests, c.want)
		}
	}
}
