package exec

import (
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// What sessions hold of memory besides the data: requests that are half there or wait, the
// queue of a transaction, replies that nobody reads, subscriptions and watched keys. It counts
// for maxmemory, and has a bound of its own, maxmemory-clients, above which those who hold most
// are disconnected.
//
// A session is weighed at the end of each batch, which is a few additions. What is written to its
// socket after that makes it lighter, and nobody notices; so those who held anything are weighed
// again before a bound is acted upon, and before the sum is shown.

type clientMemory struct {
	bytes   int64 // of all sessions, besides sessionBytes for each
	heavy   map[*Session]struct{}
	limit   int64 // maxmemory-clients; a percentage of maxmemory if it is negative, 0 for no bound
	evicted int64
}

// Buffers are the memory of a session that the shell keeps. It tells of it after each batch.
type Buffers struct {
	QueryBytes  int // of requests that have arrived and not been run
	FreeBytes   int // behind them, in the same buffer
	UnreadBytes int // sent, and not taken by the peer
}

const (
	topicBytes   = 128 // a subscription, with its share in the broker's tables
	callBytes    = 64  // a queued request
	argBytes     = 24  // an argument of it
	watchedBytes = 192 // a watched key, with its share in the database's table
)

// holds is what a session holds; 0 if that is within what each session is counted with.
func (s *Session) holds() int64 {
	b := &s.Buffers
	n := b.QueryBytes + b.FreeBytes + b.UnreadBytes + s.Out.Len() +
		s.channels.bytes + s.patterns.bytes + s.shards.bytes + s.watch.Bytes() + s.watch.Len()*watchedBytes
	if s.transaction != nil {
		n += s.transaction.bytes + len(s.transaction.calls)*callBytes
	}
	if s.blocked != nil {
		n += bytesOf(s.blocked.args)
	}
	if n <= sessionBytes {
		return 0
	}
	return int64(n)
}

func bytesOf(args [][]byte) (n int) {
	for _, arg := range args {
		n += len(arg)
	}
	return n
}

// Weigh is called at the end of a batch of the session's, and when something was sent to it.
func (m *Machine) Weigh(s *Session) {
	if now := s.holds(); now != s.held {
		m.weighed(s, now)
	}
}

func (m *Machine) weighed(s *Session, now int64) {
	switch {
	case m.sessions[s.ID] != s: // it has ended
		return
	case now == 0:
		delete(m.clients.heavy, s)
	case s.held == 0:
		m.clients.heavy[s] = struct{}{}
	}
	m.clients.bytes += now - s.held
	s.held = now
}

// weighAgain weighs all who held anything.
func (m *Machine) weighAgain() {
	for s := range m.clients.heavy {
		if s.Unread != nil {
			s.Buffers.UnreadBytes = s.Unread()
		}
		m.weighed(s, s.holds())
	}
}

// clientBytes is what all sessions take.
func (m *Machine) clientBytes() int64 { return int64(len(m.sessions))*sessionBytes + m.clients.bytes }

// clientLimit is maxmemory-clients in bytes; 0 for no bound.
func (m *Machine) clientLimit() int64 {
	if m.clients.limit < 0 {
		return m.memory.maxBytes / 100 * -m.clients.limit
	}
	return m.clients.limit
}

// EvictClients is called at the end of a batch. It disconnects those who hold most until the rest is within the bound, but none who
// has asked to stay (CLIENT NO-EVICT), and no caller in process.
func (m *Machine) EvictClients() {
	const warning = 3
	limit := m.clientLimit()
	if limit == 0 || m.clientBytes() <= limit {
		return
	}
	m.weighAgain()
	if m.clientBytes() <= limit {
		return
	}
	var candidates []*Session
	m.each(func(s *Session) {
		if !s.noEvict && !s.monitoring && !s.IsReplica() && s.link == nil && s.Addr != localAddr {
			candidates = append(candidates, s)
		}
	})
	slices.SortStableFunc(candidates, func(a, b *Session) int { return int(b.held - a.held) })
	for _, s := range candidates {
		if m.clientBytes() <= limit {
			return
		}
		m.options.Log(warning, "Evicting client: "+m.describe(s))
		m.clients.evicted++
		m.Disconnect(s)
		m.effects.Close = append(m.effects.Close, s)
	}
}

// forgetWeight is called when a session ends.
func (m *Machine) forgetWeight(s *Session) {
	if s.held != 0 {
		m.clients.bytes -= s.held
		s.held = 0
		delete(m.clients.heavy, s)
	}
}

// QueuedBytes is the size of the arguments that a transaction keeps.
func (s *Session) QueuedBytes() int {
	if s.transaction == nil {
		return 0
	}
	return s.transaction.bytes
}

// argumentBytes is the size of the arguments that the session's request holds on to.
func (m *Machine) argumentBytes(s *Session) int {
	switch {
	case s == m.current:
		return bytesOf(m.callArgs)
	case s.blocked != nil:
		return bytesOf(s.blocked.args)
	}
	return 0
}

// replyPeak is the largest reply of a few seconds, for CLIENT LIST.
type replyPeak struct {
	bytes   int
	sinceUs int64
}

func (p *replyPeak) note(out *resp.Writer, nowUs int64) {
	const keptUs = 5e6
	if nowUs-p.sinceUs > keptUs {
		*p = replyPeak{sinceUs: nowUs}
	}
	p.bytes = max(p.bytes, out.Len())
}
