package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
)

// printReport is a report as people read it: what was measured and where, then the tables.
func (a *app) printReport(r *benchmark.Report) error {
	out := a.stdout
	m := r.Machine
	fmt.Fprintf(out, "Server   %s at %s\n", r.Server, r.Server.Address)
	cpu := ""
	if m.CPU != "" {
		cpu = m.CPU + ", "
	}
	fmt.Fprintf(out, "Machine  %s%s, %s/%s, clients with %s\n", cpu, count(m.Cores, "core"), m.OS, m.Arch, m.Go)
	rounds := "one round"
	if r.Rounds > 1 {
		rounds = fmt.Sprintf("medians of %d rounds", r.Rounds)
	}
	fmt.Fprintf(out, "Cells    of %v, %s\n", r.Duration, rounds)
	if m.Busy() {
		fmt.Fprintf(out, "Warning: the load average was %.1f on %s before it began: the machine has other work, and numbers are lower\n"+
			"and less steady than they would be.\n", m.LoadBefore, count(m.Cores, "core"))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "Note: %s.\n", note)
	}
	for _, show := range []func(io.Writer, *benchmark.Report) error{printLocks, printPipelining, printCommands, printSemaphores} {
		if err := show(out, r); err != nil {
			return err
		}
	}
	return nil
}

func title(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, "\n%s\n", bold(out, fmt.Sprintf(format, args...)))
}

func printLocks(out io.Writer, r *benchmark.Report) error {
	if len(r.Locks) == 0 {
		return nil
	}
	title(out, "Locks: tries and acquires in %v, by clients that do nothing else (table 11.2)", r.Duration)
	t := newTable("LOCK", ">CLIENTS", ">TRIES", ">ACQUIRES", ">ACQUIRES/s", ">WAIT p50 ms", ">p99 ms", ">MAX ms", ">FEWEST", ">MOST OF A CLIENT")
	for _, row := range r.Locks {
		t.add(row.Lock, strconv.Itoa(row.Clients), thousands(row.Tries), thousands(row.Acquires), rate(row.AcquiresPerSecond),
			millis(row.WaitP50), millis(row.WaitP99), millis(row.WaitMax), thousands(row.Fewest), thousands(row.Most))
	}
	return t.print(out)
}

func printPipelining(out io.Writer, r *benchmark.Report) error {
	if len(r.Pipelining) == 0 {
		return nil
	}
	title(out, "Pipelining: update_token calls per second, five commands each, by one client (table 4.4)")
	t := newTable("LINK", ">ROUND TRIP ms", ">CALLS/s", ">PIPELINED CALLS/s", ">TIMES")
	for _, row := range r.Pipelining {
		if !row.Pipelined {
			continue
		}
		alone := oneByOne(r.Pipelining, row.Link)
		times := ""
		if alone > 0 {
			times = fmt.Sprintf("%.1f", row.CallsPerSecond/alone)
		}
		t.add(row.Link, millis(row.RoundTrip), rate(alone), rate(row.CallsPerSecond), times)
	}
	return t.print(out)
}

// oneByOne is the rate over a link without pipelining.
func oneByOne(rows []benchmark.PipelineRow, link string) float64 {
	for _, row := range rows {
		if row.Link == link && !row.Pipelined {
			return row.CallsPerSecond
		}
	}
	return 0
}

func printCommands(out io.Writer, r *benchmark.Report) error {
	if len(r.Commands) == 0 {
		return nil
	}
	title(out, "Commands: requests per second, as redis-benchmark measures")
	t := newTable("COMMAND", ">REQUESTS/s", ">LATENCY p50 ms", ">p95 ms", ">p99 ms", ">MAX ms", ">REQUESTS")
	for _, row := range r.Commands {
		t.add(row.Command, rate(row.RequestsPerSecond), millis(row.LatencyP50), millis(row.LatencyP95), millis(row.LatencyP99),
			millis(row.LatencyMax), thousands(row.Requests))
	}
	return t.print(out)
}

func printSemaphores(out io.Writer, r *benchmark.Report) error {
	if len(r.Semaphores) == 0 {
		return nil
	}
	first := r.Semaphores[0]
	title(out, "Semaphores: grants over the limit of %d, by %s whose clocks differ", first.Limit, count(first.Clients, "client"))
	t := newTable("SEMAPHORE", ">CLOCKS DIFFER BY", ">GRANTS", ">REFUSALS", ">OVER LIMIT", ">% OF GRANTS", ">MOST HOLDERS")
	for _, row := range r.Semaphores {
		t.add(row.Semaphore, row.Skew.String(), thousands(row.Grants), thousands(row.Refusals), thousands(row.OverLimit),
			fmt.Sprintf("%.1f", row.PercentOver()), strconv.Itoa(row.MostHolders))
	}
	return t.print(out)
}

// millis is a duration in milliseconds, with as many decimals as tell something.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.3f", ms)
}

// rate is a number per second, with decimals where they are most of it.
func rate(perSecond float64) string {
	switch {
	case perSecond < 10:
		return fmt.Sprintf("%.2f", perSecond)
	case perSecond < 100:
		return fmt.Sprintf("%.1f", perSecond)
	}
	return thousands(int64(perSecond + 0.5))
}

// thousands is a number that is not negative, with commas.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}
