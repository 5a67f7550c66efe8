package exec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// What a client may take of the engine before it is turned away. The machine
// keeps the figures, which CONFIG SET changes; the shell, which has the
// sockets, looks at them and acts.

type limits struct {
	maxClients       int64
	idleSec          int64 // 0 is no limit
	keepAliveSec     int64 // 0 is off
	queryBufferBytes int64
	output           [outputClasses]OutputLimit
}

// OutputLimit bounds what a client leaves unread; 0 is no bound. Above HardBytes
// it is disconnected at once, above SoftBytes after SoftSec seconds on end.
type OutputLimit struct{ HardBytes, SoftBytes, SoftSec int64 }

// OutputClass is which of the limits holds for a session.
type OutputClass int

// The classes of client-output-buffer-limit. A session that watches all commands
// (MONITOR) is under the limit for replicas: it cannot keep up if they cannot.
const (
	OutputNormal OutputClass = iota
	OutputReplica
	OutputPubSub
	outputClasses
)

var outputClassNames = [outputClasses]string{"normal", "slave", "pubsub"}

func defaultLimits(maxClients int) limits {
	return limits{
		maxClients: int64(maxClients), keepAliveSec: 300, queryBufferBytes: 1 << 30,
		output: [outputClasses]OutputLimit{OutputReplica: {256 << 20, 64 << 20, 60}, OutputPubSub: {32 << 20, 8 << 20, 60}},
	}
}

// MaxClients is how many connections there may be.
func (m *Machine) MaxClients() int64 { return m.limits.maxClients }

// KeepAliveSec is after how long a silent connection is probed; 0 is never.
func (m *Machine) KeepAliveSec() int64 { return m.limits.keepAliveSec }

// QueryBufferLimit is how many bytes of requests a client may have waiting.
func (m *Machine) QueryBufferLimit() int64 { return m.limits.queryBufferBytes }

// SetQueryBufferLimit changes it.
func (m *Machine) SetQueryBufferLimit(n int64) { m.limits.queryBufferBytes = n }

// OutputLimit is what holds for sessions of a class.
func (m *Machine) OutputLimit(class OutputClass) OutputLimit { return m.limits.output[class] }

// OutputClass says which limit holds for the session.
func (s *Session) OutputClass() OutputClass {
	switch {
	case s.monitoring:
		return OutputReplica
	case s.Subscriber():
		return OutputPubSub
	}
	return OutputNormal
}

// outputLimits writes client-output-buffer-limit.
func (m *Machine) outputLimits() string {
	var parts []string
	for class, limit := range m.limits.output {
		parts = append(parts, fmt.Sprintf("%s %d %d %d", outputClassNames[class], limit.HardBytes, limit.SoftBytes, limit.SoftSec))
	}
	return strings.Join(parts, " ")
}

// SetOutputLimits takes client-output-buffer-limit: one or more times a class,
// its hard limit, its soft limit and the seconds of the soft limit. Classes that
// are not named keep theirs.
func (m *Machine) SetOutputLimits(text string) error {
	words := strings.Fields(text)
	if len(words)%4 != 0 {
		return errors.New("Wrong number of arguments in buffer limit configuration.") //nolint:staticcheck // the text is Redis's
	}
	limits := m.limits.output
	for ; len(words) > 0; words = words[4:] {
		class, ok := outputClass(words[0])
		if !ok {
			return errors.New("Invalid client class specified in buffer limit configuration.") //nolint:staticcheck // the text is Redis's
		}
		hard, okHard := parseBytes(words[1])
		soft, okSoft := parseBytes(words[2])
		sec, err := strconv.ParseInt(words[3], 10, 64)
		if !okHard || !okSoft || err != nil || sec < 0 || sec > math.MaxInt32 {
			return errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.") //nolint:staticcheck // the text is Redis's
		}
		limits[class] = OutputLimit{hard, soft, sec}
	}
	m.limits.output = limits
	return nil
}

func outputClass(name string) (OutputClass, bool) {
	name = strings.ToLower(name)
	if name == "replica" {
		return OutputReplica, true
	}
	for class, known := range outputClassNames {
		if known == name {
			return OutputClass(class), true
		}
	}
	return 0, false
}

// Refused counts a connection that was turned away at the door.
func (m *Machine) Refused() { m.stats.refused++ }

// endIdle ends the sessions that have been silent for too long. Once a second
// is often enough: the limit is in seconds.
func (m *Machine) endIdle() {
	if m.limits.idleSec == 0 || m.nowUs-m.idleCheckedUs < 1e6 {
		return
	}
	m.idleCheckedUs = m.nowUs
	m.each(func(s *Session) {
		if (m.nowUs-s.lastUs)/1e6 <= m.limits.idleSec || s.blocked != nil || s.Subscriber() || s.monitoring || s.Addr == localAddr {
			return
		}
		m.Disconnect(s)
		m.effects.Close = append(m.effects.Close, s)
	})
}
