package exec

import (
	"math"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Who has heard how much of the stream. Replicas tell each second, and when they are asked (REPLCONF
// GETACK), which WAIT has done. WAIT counts who has all that the connection has written or seen: who says again what
// another connection has said, and changes nothing, waits for that as well. Inside a transaction it does not wait. min-replicas-to-write counts who has told anything lately.

// ackWaiter is a session in WAIT.
type ackWaiter struct {
	session *Session
	number  uint64 // of its blocking
	offset  int64
	wanted  int64
}

func (m *Machine) hearAck(s *Session, args [][]byte) error {
	if !s.IsReplica() {
		return nil // as Redis: no answer, whatever it says
	}
	offset, ok := command.ParseInt(args[1])
	if !ok {
		return nil
	}
	r := s.replica
	r.ackOffset, r.ackUs = max(r.ackOffset, offset), m.nowUs
	if r.state == replicaSent {
		m.isOnline(s)
	}
	m.countGood()
	m.serveWaiters()
	m.failoverHears()
	m.lookWhoLags()
	return nil
}

// acked counts the replicas that have the stream up to an offset.
func (m *Machine) acked(offset int64) (n int64) {
	for _, s := range m.repl.replicas {
		if s.replica.state == replicaOnline && s.replica.ackOffset >= offset {
			n++
		}
	}
	return n
}

// serveWaiters answers those whose number is reached.
func (m *Machine) serveWaiters() {
	waiters := m.repl.waiters
	m.repl.waiters = nil
	for _, w := range waiters {
		if w.session.blocked == nil || w.session.blocked.number != w.number {
			continue
		}
		n := m.acked(w.offset)
		if n < w.wanted {
			m.repl.waiters = append(m.repl.waiters, w)
			continue
		}
		out := w.session.replies()
		out.Int(n)
		m.unblock(w.session, out)
	}
}

// countGood counts the replicas that were heard of lately.
func (m *Machine) countGood() {
	most := m.settings.Int("min-replicas-max-lag")
	m.repl.good = 0
	for _, s := range m.repl.replicas {
		if s.replica.state == replicaOnline && (m.nowUs-s.replica.ackUs)/1e6 <= most {
			m.repl.good++
		}
	}
}

// hasGoodReplicas reports whether a primary has as many as it needs to write.
func (m *Machine) hasGoodReplicas() bool {
	return m.settings.Int("min-replicas-max-lag") == 0 || m.repl.good >= m.settings.Int("min-replicas-to-write")
}

// cutSilentReplicas disconnects those of whom nothing was heard for too long.
func (m *Machine) cutSilentReplicas() {
	const warning = 3
	mostSec := m.settings.Int("repl-timeout")
	for _, s := range append([]*Session(nil), m.repl.replicas...) {
		state := s.replica.state
		if (state == replicaOnline || state == replicaSent) && (m.nowUs-s.replica.ackUs)/1e6 > mostSec {
			m.options.Log(warning, "the replica "+s.Addr+" was silent for "+strconv.FormatInt(mostSec, 10)+" s (repl-timeout), and is disconnected")
			m.drop(s)
		}
	}
	limit := m.OutputLimit(OutputReplica).HardBytes
	for _, sync := range append([]*Sync(nil), m.repl.syncs...) {
		if limit > 0 && int64(sync.stream.Len()) > limit {
			m.options.Log(warning, "what has changed since a snapshot was sent is more than client-output-buffer-limit allows replicas: they are disconnected")
			sync.GiveUp()
		}
	}
}

func (m *Machine) waitSpecs() []command.Spec {
	return []command.Spec{{
		Name: "wait", Arity: 3, Flags: command.NoScript, Group: "generic", Since: "3.0.0",
		Summary: "Waits until replicas have what the connection has written.", Complexity: "O(1)", Run: m.wait,
	}}
}

func (m *Machine) wait(c *command.Ctx) error {
	if m.repl.link != nil {
		return command.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 " +
			"if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
	}
	replicas, err := c.Int(1)
	if err != nil {
		return err
	}
	timeoutMs, ok := command.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.Error("ERR timeout is not an integer or out of range")
	case timeoutMs < 0:
		return command.ErrNegative
	}
	offset := session(c).sawUpTo
	if n := m.acked(offset); n >= replicas || !c.CanBlock {
		c.Out.Int(n)
		return nil
	}
	// More than a µs count can hold is as good as for ever.
	if timeoutMs > math.MaxInt64/1000 {
		timeoutMs = 0
	}
	m.repl.waiters = append(m.repl.waiters, ackWaiter{session(c), m.blockings + 1, offset, replicas})
	m.repl.wantAcks = len(m.repl.replicas) > 0
	return c.Block(nil, timeoutMs*1000, func(out *resp.Writer) { out.Int(m.acked(offset)) })
}
