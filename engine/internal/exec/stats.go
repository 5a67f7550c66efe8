package exec

import (
	"bytes"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// What is counted of commands, and how long they take.
//
// The machine has no clock. The shell hands it a stopwatch, a function that
// reads a monotonic clock, and the machine uses it for nothing but the
// difference between the start and the end of a call: what a command does never
// depends on it. So commands inside transactions and scripts are measured as
// well, a run in virtual time measures nothing, and a run can be repeated.
//
// A call that blocks is counted when it is answered.

type stats struct {
	commands, connections int64
	refused               int64       // connections
	calls                 []callStats // by command.Spec.Number
	errors                map[string]int64
	errorReplies          int64
	reads, writes         int64 // of the shell
	inputBytes            int64
	outputBytes           int64
	peakBytes             int64
}

type callStats struct {
	calls, failed, rejected int64
	ns                      int64 // all calls together
	latency                 histogram
}

// mostErrorKinds bounds INFO errorstats: scripts can make up codes.
const mostErrorKinds = 128

func (m *Machine) newStats() stats {
	return stats{calls: make([]callStats, m.table.Count()), errors: map[string]int64{}}
}

func (m *Machine) count(spec *command.Spec) *callStats { return &m.stats.calls[spec.Number()] }

// called counts a call that has been answered, and tells those who look on.
func (m *Machine) called(s *Session, spec *command.Spec, args [][]byte, tookNs int64, reply []byte) {
	if m.replay != nil {
		return // it was counted when it was first run
	}
	m.stats.commands++
	count := m.count(spec)
	count.calls++
	count.ns += tookNs
	if m.latency.histograms {
		count.latency.add(tookNs)
	}
	if len(reply) > 0 && reply[0] == '-' {
		count.failed++
		m.countError(reply[1:])
	}
	if tookUs := tookNs / 1000; m.slowLog.slowerThanUs >= 0 && tookUs >= m.slowLog.slowerThanUs && spec.Flags&command.SkipSlowlog == 0 {
		m.logSlow(s, spec, args, tookUs)
	}
	if m.latency.thresholdMs > 0 {
		m.sampleCall(spec, tookNs)
	}
}

// countError counts an error reply by its code, the first word.
func (m *Machine) countError(text []byte) {
	m.stats.errorReplies++
	end := bytes.IndexAny(text, " \r\n")
	if end < 0 {
		end = len(text)
	}
	code := string(text[:end])
	if _, known := m.stats.errors[code]; known || len(m.stats.errors) < mostErrorKinds {
		m.stats.errors[code]++
	}
}

// Received counts what the shell has read from a client, who is not idle then, though
// it may not be a whole request yet.
func (m *Machine) Received(nowUs int64, s *Session, bytes int) {
	s.lastUs = nowUs
	if s.replica != nil {
		s.replica.ackUs = nowUs // an empty line says as much as that it lives
	}
	m.stats.reads++
	m.stats.inputBytes += int64(bytes)
	m.rates.input.look(m.nowUs, m.stats.inputBytes)
}

// Sent counts the output of a session, which the shell is about to send.
func (m *Machine) Sent(s *Session) {
	m.stats.writes++
	m.stats.outputBytes += int64(s.Out.Len() + s.Stream.Len())
	s.peak.note(&s.Out, m.nowUs)
	m.rates.output.look(m.nowUs, m.stats.outputBytes)
}
