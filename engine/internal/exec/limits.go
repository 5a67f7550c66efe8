package exec

import "github.com/signalbox-io/signalbox/engine/internal/conf"

// What a client may take of the engine before it is turned away. The machine
// keeps the figures, which follow the parameters; the shell, which has the
// sockets, looks at them and acts.

type limits struct {
	maxClients       int64
	idleSec          int64 // 0 is no limit
	keepAliveSec     int64 // 0 is off
	queryBufferBytes int64
	output           [3]conf.Limit // by OutputClass
}

// OutputClass is which of the limits holds for a session.
type OutputClass int

// The classes of client-output-buffer-limit. A session that watches all commands
// (MONITOR) is under the limit for replicas: it cannot keep up if they cannot.
const (
	OutputNormal  = OutputClass(conf.LimitNormal)
	OutputReplica = OutputClass(conf.LimitReplica)
	OutputPubSub  = OutputClass(conf.LimitPubSub)
)

// MaxClients is how many connections there may be.
func (m *Machine) MaxClients() int64 { return m.limits.maxClients }

// KeepAliveSec is after how long a silent connection is probed; 0 is never.
func (m *Machine) KeepAliveSec() int64 { return m.limits.keepAliveSec }

// QueryBufferLimit is how many bytes of requests a client may have waiting.
func (m *Machine) QueryBufferLimit() int64 { return m.limits.queryBufferBytes }

// SetQueryBufferLimit changes it, below what a configuration may.
func (m *Machine) SetQueryBufferLimit(n int64) { m.limits.queryBufferBytes = n }

// OutputLimit bounds what a client of a class leaves unread.
func (m *Machine) OutputLimit(class OutputClass) conf.Limit { return m.limits.output[class] }

// OutputClass says which limit holds for the session.
func (s *Session) OutputClass() OutputClass {
	switch {
	case s.monitoring, s.IsReplica():
		return OutputReplica
	case s.Subscriber():
		return OutputPubSub
	}
	return OutputNormal
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
		if (m.nowUs-s.lastUs)/1e6 <= m.limits.idleSec || s.blocked != nil || s.Subscriber() || s.monitoring || s.IsReplica() || s.link != nil || s.Addr == localAddr {
			return
		}
		m.Disconnect(s)
		m.effects.Close = append(m.effects.Close, s)
	})
}
