package exec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// LATENCY: the history of delays above latency-monitor-threshold, by the kind of
// work that took so long, and the distribution of each command's durations.
//
// An event keeps its latest 160 samples, one a second at most, the longest of
// that second. There are four events (see the constants), so the memory is bounded.

const (
	latencySamples = 160

	eventCommand       = "command"
	eventFastCommand   = "fast-command"
	eventExpireCycle   = "expire-cycle"
	eventEvictionCycle = "eviction-cycle"
)

type latency struct {
	thresholdMs int64 // 0: nothing is watched
	histograms  bool  // latency-tracking
	percentiles []float64
	events      map[string]*latencyEvent
}

type latencyEvent struct {
	samples []latencySample // oldest first
	maxMs   int64           // of all times
}

type latencySample struct{ atSec, ms int64 }

// parsePercentiles reads latency-tracking-info-percentiles: what INFO latencystats
// tells, in per cent, words apart by spaces, which the table of parameters has checked.
func parsePercentiles(text string) (percentiles []float64) {
	for _, word := range strings.Fields(text) {
		p, _ := strconv.ParseFloat(word, 64)
		percentiles = append(percentiles, p)
	}
	return percentiles
}

func (m *Machine) sampleCall(spec *command.Spec, tookNs int64) {
	event := eventCommand
	if spec.Flags&command.Fast != 0 {
		event = eventFastCommand
	}
	m.sample(event, tookNs)
}

// sample remembers a delay if it is long enough. Of one second it keeps the
// longest.
func (m *Machine) sample(event string, tookNs int64) {
	ms := tookNs / 1e6
	if m.latency.thresholdMs == 0 || ms < m.latency.thresholdMs {
		return
	}
	e := m.latency.events[event]
	if e == nil {
		e = &latencyEvent{}
		m.latency.events[event] = e
	}
	e.maxMs = max(e.maxMs, ms)
	now := m.nowUs / 1e6
	if n := len(e.samples); n > 0 && e.samples[n-1].atSec == now {
		e.samples[n-1].ms = max(e.samples[n-1].ms, ms)
		return
	}
	if len(e.samples) == latencySamples {
		e.samples = slices.Delete(e.samples, 0, 1)
	}
	e.samples = append(e.samples, latencySample{now, ms})
}

func (m *Machine) latencySpecs() []command.Spec {
	const (
		flags = command.Admin | command.NoScript | command.Loading | command.Stale
		since = "2.8.13"
	)
	sub := func(name string, arity int, since, summary string, run func(*command.Ctx) error) command.Spec {
		return command.Spec{Name: name, Arity: arity, Flags: flags, Since: since, Summary: summary, Complexity: "O(1)", Run: run}
	}
	return []command.Spec{{
		Name: "latency", Arity: -2, Group: "server", Since: since, Summary: "A container for commands on delays.",
		Complexity: "that of the subcommand",
		Sub: []command.Spec{
			sub("doctor", 2, since, "Says in words what the delays are.", m.latencyDoctor),
			sub("graph", 3, since, "Draws the delays of an event.", m.latencyGraph),
			sub("history", 3, since, "Lists the delays of an event.", m.latencyHistory),
			sub("latest", 2, since, "Lists the latest delay of each event.", m.latencyLatest),
			sub("reset", -2, since, "Forgets the delays of events, of all if none is named.", m.latencyReset),
			sub("histogram", -2, "7.0.0", "Answers with the distribution of the durations of commands.", m.latencyHistogram),
			command.HelpSpec("LATENCY", since,
				"DOCTOR", "    Return a human readable latency analysis report.",
				"GRAPH <event>", "    Return an ASCII latency graph for the <event> class.",
				"HISTORY <event>", "    Return time-latency samples for the <event> class.",
				"LATEST", "    Return the latest latency samples for all events.",
				"RESET [<event> ...]", "    Reset latency data of one or more <event> classes.",
				"    (default: reset all data for all event classes)",
				"HISTOGRAM [COMMAND ...]",
				"    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
				"    If no commands are specified then all histograms are replied."),
		},
	}}
}

func (m *Machine) latencyHistory(c *command.Ctx) error {
	var samples []latencySample
	if e := m.latency.events[c.Arg(2)]; e != nil {
		samples = e.samples
	}
	c.Out.Array(len(samples))
	for _, s := range samples {
		c.Out.Array(2)
		c.Out.Int(s.atSec)
		c.Out.Int(s.ms)
	}
	return nil
}

func (m *Machine) latencyLatest(c *command.Ctx) error {
	names := sortedKeys(m.latency.events)
	c.Out.Array(len(names))
	for _, name := range names {
		e := m.latency.events[name]
		last := e.samples[len(e.samples)-1]
		c.Out.Array(4)
		c.Out.BulkString(name)
		c.Out.Int(last.atSec)
		c.Out.Int(last.ms)
		c.Out.Int(e.maxMs)
	}
	return nil
}

func (m *Machine) latencyReset(c *command.Ctx) error {
	names := sortedKeys(m.latency.events)
	if len(c.Args) > 2 {
		names = nil
		for _, arg := range c.Args[2:] {
			names = append(names, string(arg))
		}
	}
	reset := 0
	for _, name := range names {
		if m.latency.events[name] != nil {
			delete(m.latency.events, name)
			reset++
		}
	}
	c.Out.Int(int64(reset))
	return nil
}

func (m *Machine) latencyDoctor(c *command.Ctx) error {
	var text strings.Builder
	if m.latency.thresholdMs == 0 {
		text.WriteString("Delays are not watched. CONFIG SET latency-monitor-threshold <milliseconds> makes the engine remember those that are at least so long.\n")
	}
	for _, name := range sortedKeys(m.latency.events) {
		e := m.latency.events[name]
		var sum, lowest, highest int64
		for i, s := range e.samples {
			sum += s.ms
			highest = max(highest, s.ms)
			if i == 0 || s.ms < lowest {
				lowest = s.ms
			}
		}
		n := int64(len(e.samples))
		fmt.Fprintf(&text, "%s: %d delays, %d to %d ms, %d ms on average; the longest of all was %d ms. Over %d seconds.\n",
			name, n, lowest, highest, sum/n, e.maxMs, e.samples[n-1].atSec-e.samples[0].atSec)
	}
	if m.latency.thresholdMs > 0 && len(m.latency.events) == 0 {
		fmt.Fprintf(&text, "No delay of %d ms or more has been seen.\n", m.latency.thresholdMs)
	}
	if m.latency.events[eventCommand] != nil || m.latency.events[eventFastCommand] != nil {
		text.WriteString("SLOWLOG GET names the commands that took long.\n")
	}
	c.Out.Verbatim("txt", text.String())
	return nil
}

// latencyHistogram tells what is asked for of the commands named, of those of
// their subcommands that were called, or of all.
func (m *Machine) latencyHistogram(c *command.Ctx) error {
	var told []*command.Spec
	tell := func(spec *command.Spec) {
		if m.count(spec).latency.total > 0 {
			told = append(told, spec)
		}
	}
	for _, spec := range m.named(c.Args[2:]) {
		if spec == nil {
			continue
		}
		tell(spec)
		for i := range spec.Sub {
			tell(&spec.Sub[i])
		}
	}
	c.Out.Map(len(told))
	for _, spec := range told {
		count := m.count(spec)
		c.Out.BulkString(spec.FullName())
		c.Out.Map(2)
		c.Out.BulkString("calls")
		c.Out.Int(int64(count.latency.total))
		c.Out.BulkString("histogram_usec")
		var pairs []uint64
		count.latency.cumulative(func(us, n uint64) { pairs = append(pairs, us, n) })
		c.Out.Map(len(pairs) / 2)
		for _, n := range pairs {
			c.Out.Int(int64(n))
		}
	}
	return nil
}
