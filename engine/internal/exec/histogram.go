package exec

import "math/bits"

// histogram counts durations with an error of less than one in 128, from 1 ns
// to about a second, above which all are alike: the design of HdrHistogram.
//
// Up to 255 each value has a counter of its own. Above, each doubling has 128
// counters, so that a counter's width is a 128th of where its doubling begins.
// The counters come when they are first needed: most commands are never called.
type histogram struct {
	counts []uint64
	total  uint64
}

const (
	exactBits     = 8 // values below 1<<exactBits are exact
	halfBits      = exactBits - 1
	longestBits   = 30 // values of more bits count as the longest
	histogramSize = 1<<exactBits + (longestBits-exactBits)<<halfBits
)

func (h *histogram) add(ns int64) {
	if h.counts == nil {
		h.counts = make([]uint64, histogramSize)
	}
	h.counts[slotOf(uint64(max(ns, 1)))]++
	h.total++
}

func slotOf(v uint64) int {
	if v < 1<<exactBits {
		return int(v)
	}
	v = min(v, 1<<longestBits-1)
	shift := bits.Len64(v) - exactBits
	return 1<<exactBits + (shift-1)<<halfBits + int(v>>shift) - 1<<halfBits
}

// highest is the largest value that a slot counts.
func highest(slot int) uint64 {
	if slot < 1<<exactBits {
		return uint64(slot)
	}
	slot -= 1 << exactBits
	shift := slot>>halfBits + 1
	return uint64(slot&(1<<halfBits-1)+1<<halfBits+1)<<shift - 1
}

// percentile is the value that so many per cent do not exceed; 0 if nothing was
// counted.
func (h *histogram) percentile(percent float64) uint64 {
	wanted := uint64(percent/100*float64(h.total) + 0.5)
	var seen uint64
	for slot, n := range h.counts {
		if seen += n; n > 0 && seen >= max(wanted, 1) {
			return highest(slot)
		}
	}
	return 0
}

// cumulative visits, for 1.024 µs and each doubling of it, its value in µs and
// how many were not longer, as long as that grows.
func (h *histogram) cumulative(visit func(us, count uint64)) {
	var seen, told uint64
	slot := 0
	for bound := uint64(1024); told < h.total; bound *= 2 {
		last := histogramSize - 1
		if bound < 1<<longestBits {
			last = slotOf(bound)
		}
		for ; slot <= last; slot++ {
			seen += h.counts[slot]
		}
		if seen > told {
			visit((bound+bound>>halfBits-1)/1000, seen)
			told = seen
		}
	}
}
