package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
)

// panels are those of what was measured.
func panels(r *benchmark.Report) []panel {
	var panels []panel
	for _, part := range []func(*benchmark.Report) panel{locks, pipelining, commands, semaphores} {
		if p := part(r); len(p.rows) > 0 {
			panels = append(panels, p)
		}
	}
	return panels
}

// locks shows beside the rate what it costs those who wait.
func locks(r *benchmark.Report) panel {
	p := panel{
		title: "Locks: how fast, how long somebody waited, how evenly it was shared", labels: "clients that compete for one lock",
		columns: []column{{title: "acquires per second"}, {title: "longest wait"}, {title: "fewest / most acquires of a client"}},
	}
	var kinds []string
	for _, row := range r.Locks {
		clients := " clients"
		if row.Clients == 1 {
			clients = " client"
		}
		p.rows = append(p.rows, namedRow(&kinds, row.Lock, strconv.Itoa(row.Clients)+clients,
			cell{row.AcquiresPerSecond, short(row.AcquiresPerSecond)}, cell{row.WaitMax.Seconds(), span(row.WaitMax)}, fairness(&row)))
	}
	return p
}

// fairness is 1 if every client had as many acquires as any other, and 0 if one had none.
func fairness(row *benchmark.LockRow) cell {
	if row.Most == 0 {
		return cell{0, "nobody got it"}
	}
	share := float64(row.Fewest) / float64(row.Most)
	if row.Fewest == 0 {
		return cell{0, "one starved"}
	}
	return cell{share, fmt.Sprintf("%.2f", share)}
}

// pipelining has the calls one by one and pipelined beside each other.
func pipelining(r *benchmark.Report) panel {
	p := panel{
		title: "Pipelining: update_token, five commands a call, one client", labels: "link (median empty round trip)",
		columns: []column{{"calls per second, logarithmic", decades}, {"pipelined, logarithmic", decades}},
	}
	place := map[string]int{}
	for _, row := range r.Pipelining {
		at, seen := place[row.Link]
		if !seen {
			at = len(p.rows)
			place[row.Link] = at
			label := fmt.Sprintf("%s, %.2g ms", row.Link, row.RoundTrip.Seconds()*1000)
			p.rows = append(p.rows, plainRow(label, cell{0, "-"}, cell{0, "-"}))
		}
		column := 0
		if row.Pipelined {
			column = 1
		}
		p.rows[at].cells[column] = cell{row.CallsPerSecond, short(row.CallsPerSecond)}
	}
	return p
}

// decades makes bars as long as their value has digits; a tenth of a call a second has none.
func decades(value, largest float64) float64 {
	const none = 0.1
	return math.Log10(max(value, none)/none) / math.Log10(max(largest, 1)/none)
}

func commands(r *benchmark.Report) panel {
	p := panel{
		title: "Commands, as redis-benchmark measures", labels: "command",
		columns: []column{{title: "requests per second"}, {title: "latency of 99 of 100"}},
	}
	for _, row := range r.Commands {
		p.rows = append(p.rows, plainRow(row.Command,
			cell{row.RequestsPerSecond, short(row.RequestsPerSecond)}, cell{row.LatencyP99.Seconds(), span(row.LatencyP99)}))
	}
	return p
}

// semaphores shows beside the rate how often there were more inside than may be.
func semaphores(r *benchmark.Report) panel {
	if len(r.Semaphores) == 0 {
		return panel{}
	}
	limit := r.Semaphores[0].Limit
	p := panel{
		title: fmt.Sprintf("Semaphores: a limit of %d, %d clients, and how many were let in beyond it", limit, r.Semaphores[0].Clients), labels: "semaphore",
		columns: []column{
			{title: "grants per second"},
			{title: "over the limit, % of all grants"},
			{title: fmt.Sprintf("most inside at once, of %d", limit)},
		},
	}
	took := r.Duration.Seconds() * float64(max(r.Rounds, 1))
	var kinds []string
	for _, row := range r.Semaphores {
		rate := float64(row.Grants) / took
		p.rows = append(p.rows, namedRow(&kinds, row.Semaphore, "clocks differ by "+row.Skew.String(),
			cell{rate, short(rate)}, cell{row.PercentOver(), overLimit(&row)}, cell{float64(row.MostHolders), strconv.Itoa(row.MostHolders)}))
	}
	return p
}

// overLimit says how many grants, and what share, and tells none from few.
func overLimit(row *benchmark.SemaphoreRow) string {
	switch p := row.PercentOver(); {
	case row.OverLimit == 0:
		return "0"
	case p < 1:
		return fmt.Sprintf("%d, <1 %%", row.OverLimit)
	default:
		return fmt.Sprintf("%d, %.0f %%", row.OverLimit, p)
	}
}

// namedRow is a row of one of several kinds; each kind has a colour.
func namedRow(kinds *[]string, kind, of string, cells ...cell) row {
	if !slices.Contains(*kinds, kind) {
		*kinds = append(*kinds, kind)
	}
	return row{kind + ", " + of, slices.Index(*kinds, kind), cells}
}

func plainRow(label string, cells ...cell) row { return row{label, 0, cells} }

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

// span is a duration of a few digits.
func span(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.3g µs", d.Seconds()*1e6)
	}
}
