package command

import (
	"encoding/binary"
	"math"
)

// From registers to a number, by the improved estimator of Otmar Ertl ("New cardinality
// estimation algorithms for HyperLogLog sketches", arXiv:1702.01284), which needs to know
// only how many registers have each value.
//
// Every product is converted to float64 before it is added to, so that no compiler makes
// one rounding of two: the numbers are the same on all machines.

// histogram is how many registers have each value.
type histogram [registerMax + 1]int

// histogram counts the registers of a sketch. It is not ok if that is corrupt.
func (s sketch) histogram() (h histogram, ok bool) {
	if !s.dense() {
		all := 0
		for at := registersAt; at < len(s); {
			value, count, size := s.run(at)
			h[value] += count
			all += count
			at += size
		}
		return h, all == registerCount
	}
	var counts tally
	for i := 0; i < registerCount; i += 8 {
		counts.add(s.eight(i))
	}
	return counts.sum(), true
}

func (r *registers) histogram() histogram {
	var counts tally
	for i := 0; i < registerCount; i += 8 {
		counts.add(binary.LittleEndian.Uint64(r[i:]))
	}
	return counts.sum()
}

// tally is a histogram in four parts: nearly all registers have one of a few values, and
// a number that has just been written is slow to add to.
type tally [4]histogram

// add counts eight registers.
func (t *tally) add(eight uint64) {
	t[0][eight&registerMax]++
	t[1][eight>>8&registerMax]++
	t[2][eight>>16&registerMax]++
	t[3][eight>>24&registerMax]++
	t[0][eight>>32&registerMax]++
	t[1][eight>>40&registerMax]++
	t[2][eight>>48&registerMax]++
	t[3][eight>>56&registerMax]++
}

func (t *tally) sum() (h histogram) {
	for i := range h {
		h[i] = t[0][i] + t[1][i] + t[2][i] + t[3][i]
	}
	return h
}

// estimate is about how many elements there were. Registers that no element can have make
// it infinite, for which Redis's conversion has the lowest integer.
func (h *histogram) estimate() uint64 {
	const (
		m     = float64(registerCount)
		alpha = 0.721347520444481703680 // 0.5/ln 2
	)
	z := m * tau((m-float64(h[highestRun]))/m)
	for value := highestRun - 1; value >= 1; value-- {
		z = (z + float64(h[value])) * 0.5
	}
	z += float64(m * sigma(float64(h[0])/m))
	return uint64(toInt64(math.Round(alpha * m * m / z)))
}

// toInt64 cuts off the fraction. What an int64 cannot hold is the lowest of them, as on
// the machines that Redis runs on.
func toInt64(f float64) int64 {
	if f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		before := z
		z += float64(x * y)
		y += y
		if z == before {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= float64(float64((1-x)*(1-x)) * y)
		if z == before {
			return z / 3
		}
	}
}
