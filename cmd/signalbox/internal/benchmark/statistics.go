package benchmark

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencies is how long things took, to within a hundredth, up to a minute.
type latencies struct{ histogram *hdrhistogram.Histogram }

const (
	shortest = time.Microsecond / 10
	longest  = time.Minute
	digits   = 2
)

func newLatencies() latencies {
	return latencies{hdrhistogram.New(int64(shortest), int64(longest), digits)}
}

// add counts one. What is out of range counts as the nearest that is in it.
func (l latencies) add(d time.Duration) error {
	return l.histogram.RecordValue(int64(min(max(d, shortest), longest)))
}

// merge adds all of another.
func (l latencies) merge(other latencies) { l.histogram.Merge(other.histogram) }

// percentile is what so many of a hundred did not exceed; 0 if there were none.
func (l latencies) percentile(p float64) time.Duration {
	return time.Duration(l.histogram.ValueAtPercentile(p))
}

func (l latencies) max() time.Duration { return time.Duration(l.histogram.Max()) }

// median is that of one field of the rows; of an even number the mean of the two in the middle.
func median[R any, N cmp.Ordered](rows []R, field func(*R) N, mean func(a, b N) N) N {
	values := make([]N, len(rows))
	for i := range rows {
		values[i] = field(&rows[i])
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return mean(values[middle-1], values[middle])
}

// medianOf is median for whole numbers and durations.
func medianOf[R any, N ~int | ~int64](rows []R, field func(*R) N) N {
	return median(rows, field, func(a, b N) N { return a + (b-a)/2 })
}

// medianRate is median for rates.
func medianRate[R any](rows []R, field func(*R) float64) float64 {
	return median(rows, field, func(a, b float64) float64 { return a + (b-a)/2 })
}

// perSecond is a rate; 0 for no time at all.
func perSecond(n int64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(n) / in.Seconds()
}
