package exec

import (
	"testing"

	"pgregory.net/rapid"
)

func TestHistogramSlotsHoldTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(1, 1<<longestBits-1).Draw(t, "value")
		slot := slotOf(v)
		top := highest(slot)
		if v > top || slot > 0 && v <= highest(slot-1) {
			t.Fatalf("%d is in slot %d, which ends at %d", v, slot, top)
		}
		if float64(top-v) > float64(v)/128 {
			t.Fatalf("%d counts as %d: too coarse", v, top)
		}
	})
	if got := slotOf(1 << 40); got != histogramSize-1 {
		t.Errorf("a value beyond the end is in slot %d of %d", got, histogramSize)
	}
}

func TestHistogramPercentiles(t *testing.T) {
	var h histogram
	for v := range int64(1000) {
		h.add(v + 1)
	}
	for percent, want := range map[float64]uint64{0: 1, 50: 500, 99: 990, 100: 1000} {
		if got := h.percentile(percent); got < want || float64(got) > float64(want)*1.01 {
			t.Errorf("%v %% is %d, want about %d", percent, got, want)
		}
	}
}

// TestHistogramIsToldInDoublings: the bounds are those that Redis reports.
func TestHistogramIsToldInDoublings(t *testing.T) {
	var h histogram
	for _, us := range []int64{1, 2, 3, 20, 33, 34, 500, 5_000_000} {
		h.add(us * 1000)
	}
	var got []uint64
	h.cumulative(func(us, count uint64) { got = append(got, us, count) })
	want := []uint64{1, 1, 2, 2, 4, 3, 33, 5, 66, 6, 528, 7, 1082130, 8}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}
