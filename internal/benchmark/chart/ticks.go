package chart

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// short is a number as there is room for in a chart: 3.67, 18, 950, 12.3k, 1.2M.
func short(n float64) string {
	switch {
	case n >= 1e6:
		return strconv.FormatFloat(n/1e6, 'f', 1, 64) + "M"
	case n >= 1e5:
		return fmt.Sprintf("%.0fk", n/1e3)
	case n >= 1e3:
		return fmt.Sprintf("%.1fk", n/1e3)
	case n >= 10:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", n)
}

// thousandTicks are ticks at round numbers, with k for thousands.
type thousandTicks struct{}

// Ticks places them.
func (thousandTicks) Ticks(lowest, highest float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(lowest, highest)
	for i := range ticks {
		if ticks[i].Label == "" {
			continue
		}
		v, unit := ticks[i].Value, ""
		if v >= 1000 {
			v, unit = v/1000, "k"
		}
		ticks[i].Label = strconv.FormatFloat(v, 'f', -1, 64) + unit
	}
	return ticks
}

// decadeTicks are ticks at powers of ten.
type decadeTicks struct{}

// Ticks places them.
func (decadeTicks) Ticks(lowest, highest float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lowest)); e <= math.Ceil(math.Log10(highest)); e++ {
		value := math.Pow(10, e)
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', -1, 64)})
	}
	return ticks
}
