package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report is everything one run found out.
type report struct {
	Command   string `json:",omitempty"`
	Machine   machine
	Sections  []*section
	LoadAfter string
	Seconds   float64
}

type machine struct {
	CPU, Kernel, Go, Redis, Pinned, Load string
	Cores                                int
}

// section is one part: a table, and its aims.
type section struct {
	Title, Note string
	Columns     []string
	Rows        [][]string
	Aims        []aim
	// InRows says that the rows tell already what was wanted: the aims are shown by their reasons only.
	InRows bool `json:"-"`
}

// aim is a sentence about one number, and what the number was: the median of the rounds.
type aim struct {
	What      string
	Aim       string // empty: just to know
	Measured  float64
	Low, High float64
	Rounds    int
	Pass      bool
	Reason    string `json:",omitempty"` // why it is missed
}

func (s *section) row(cells ...string) { s.Rows = append(s.Rows, cells) }

func (s *section) atLeast(what string, bound float64, samples []float64) {
	s.aim(what, "≥ "+number(bound, 2), samples, func(v float64) bool { return v >= bound })
}

func (s *section) atMost(what string, bound float64, samples []float64) {
	s.aim(what, "≤ "+number(bound, 2), samples, func(v float64) bool { return v <= bound })
}

func (s *section) know(what string, samples []float64) {
	s.aim(what, "", samples, func(float64) bool { return true })
}

func (s *section) aim(what, aimed string, samples []float64, pass func(float64) bool) {
	if len(samples) == 0 {
		s.Aims = append(s.Aims, aim{What: what + " (not measured)", Aim: aimed})
		return
	}
	m := median(samples)
	s.Aims = append(s.Aims, aim{
		What: what, Aim: aimed, Measured: m, Low: slices.Min(samples), High: slices.Max(samples), Rounds: len(samples),
		Pass: pass(m),
	})
}

func (r *report) print(to io.Writer) error {
	out := bufio.NewWriter(to)
	m := r.Machine
	fmt.Fprintf(out, "%s, %d cores; %s; %s; Redis %s; %s; load before %s, after %s\n",
		m.CPU, m.Cores, m.Kernel, m.Go, m.Redis, m.Pinned, m.Load, r.LoadAfter)
	for _, s := range r.Sections {
		fmt.Fprintf(out, "\n%s\n%s\n%s\n\n", s.Title, strings.Repeat("-", len(s.Title)), s.Note)
		columns(out, s.Columns, s.Rows)
		if len(s.Aims) > 0 && !s.InRows {
			fmt.Fprintln(out)
			columns(out, []string{"aim", "wanted", "measured", "lowest..highest", "rounds", ""}, aimRows(s.Aims))
		}
		for _, m := range s.misses() {
			fmt.Fprintf(out, "\nMISS, %s: %s\n", strings.Join(m.what, "; "), m.reason)
		}
	}
	met, missed := r.tally()
	fmt.Fprintf(out, "\n%d aims met, %d missed, in %.0f s.\n", met, missed, r.Seconds)
	return out.Flush()
}

func (r *report) tally() (met, missed int) {
	for _, s := range r.Sections {
		for _, a := range s.Aims {
			switch {
			case a.Aim == "":
			case a.Pass:
				met++
			default:
				missed++
			}
		}
	}
	return met, missed
}

func aimRows(aims []aim) [][]string {
	var rows [][]string
	for _, a := range aims {
		verdict := "pass"
		switch {
		case a.Aim == "":
			verdict = ""
		case !a.Pass:
			verdict = "MISS"
		}
		rows = append(rows, []string{
			a.What, a.Aim, number(a.Measured, 3), number(a.Low, 3) + ".." + number(a.High, 3), strconv.Itoa(a.Rounds), verdict,
		})
	}
	return rows
}

func columns(to io.Writer, header []string, rows [][]string) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // the writer below keeps the error
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// ratiosOf divides pair by pair: what stood side by side in time.
func ratiosOf(above, below []float64) []float64 {
	ratios := make([]float64, len(above))
	for i := range above {
		ratios[i] = above[i] / below[i]
	}
	return ratios
}

func number(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

func count(v float64) string { return number(v, 0) }

func spread(values []float64, digits int) string {
	return fmt.Sprintf("%s [%s..%s]", number(median(values), digits), number(slices.Min(values), digits),
		number(slices.Max(values), digits))
}

func describeMachine(redisVersion string, on cores) machine {
	m := machine{
		CPU: "unknown CPU", Kernel: kernel(), Go: runtime.Version(), Redis: redisVersion, Cores: runtime.NumCPU(),
		Pinned: "not pinned", Load: loadAverage(),
	}
	if on.server != nil {
		m.Pinned = fmt.Sprintf("servers on core %v, clients on %v", on.server, on.client)
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// loadAverage is of the last minute. Much more than what this program needs means that the machine was shared.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
