package exec

import (
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// The picture of LATENCY GRAPH: a column for each of the latest samples, as high
// as its delay, four lines of text in all, each with three steps; under it, from
// top to bottom, how long ago it was.

const (
	graphColumns = 80
	graphRows    = 4
)

// graphSteps are the tops of a column, low to high.
const graphSteps = "_o#"

func (m *Machine) latencyGraph(c *command.Ctx) error {
	e := m.latency.events[c.Arg(2)]
	if e == nil {
		return command.Error("ERR No samples available for event '" + c.Arg(2) + "'")
	}
	samples := e.samples[max(0, len(e.samples)-graphColumns):]
	lowest, highest := samples[0].ms, samples[0].ms
	labels := make([]string, len(samples))
	for i, s := range samples {
		lowest, highest = min(lowest, s.ms), max(highest, s.ms)
		labels[i] = age(c.NowUs/1e6 - s.atSec)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s - high %d ms, low %d ms (all time high %d ms)\n", c.Arg(2), highest, lowest, e.maxMs)
	text.WriteString(strings.Repeat("-", graphColumns) + "\n")
	for row := graphRows - 1; row >= 0; row-- {
		for _, s := range samples {
			text.WriteByte(cell(s.ms-lowest, max(highest-lowest, 1), row))
		}
		text.WriteByte('\n')
	}
	text.WriteString(strings.Repeat(" ", len(samples)) + "\n")
	writeDown(&text, labels)
	c.Out.Verbatim("txt", text.String())
	return nil
}

// cell is what a column of this height, in parts of highest, shows in a row;
// rows count from the ground.
func cell(height, highest int64, row int) byte {
	const steps = graphRows * len(graphSteps)
	step := min(int(height*int64(steps)/highest), steps-1) - row*len(graphSteps)
	switch {
	case step < 0:
		return ' '
	case step >= len(graphSteps):
		return '|'
	}
	return graphSteps[step]
}

// writeDown writes words from top to bottom, side by side.
func writeDown(text *strings.Builder, words []string) {
	for line, more := 0, true; more; line++ {
		more = false
		var out strings.Builder
		for _, word := range words {
			if line < len(word) {
				out.WriteByte(word[line])
				more = true
			} else {
				out.WriteByte(' ')
			}
		}
		if more {
			text.WriteString(out.String() + "\n")
		}
	}
}

// age is a number of seconds in its largest unit.
func age(sec int64) string {
	switch {
	case sec < 60:
		return fmt.Sprintf("%ds", sec)
	case sec < 3600:
		return fmt.Sprintf("%dm", sec/60)
	case sec < 86400:
		return fmt.Sprintf("%dh", sec/3600)
	}
	return fmt.Sprintf("%dd", sec/86400)
}
