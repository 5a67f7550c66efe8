package exec

import (
	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A blocked session keeps its request. When a key it waits for is touched, the
// request is run again from the start: it finds something and replies, or
// blocks on in its old place. So a blocking command is an ordinary handler, and
// nothing is handed to a client that another command could have taken.

type blocked struct {
	number    uint64
	spec      *command.Spec
	args      [][]byte
	waiter    *keyspace.Waiter
	untilUs   int64
	onTimeout func(out *resp.Writer)
	postponed bool  // waits for the end of a pause, and for no key
	workUs    int64 // how long the wait is, if it counts as work
}

func (m *Machine) block(s *Session, spec *command.Spec, args [][]byte, b command.Block) {
	m.blockings++
	if b.Again != nil {
		args = b.Again
	}
	s.blocked = &blocked{
		number: m.blockings, spec: spec, args: cloneArgs(args),
		waiter: s.db.Wait(s, b.Keys), onTimeout: b.OnTimeout,
	}
	if b.Bound {
		s.blocked.waiter.Bind()
	}
	if b.IsWork {
		s.blocked.workUs = b.TimeoutUs
	}
	if b.TimeoutUs > 0 {
		s.blocked.untilUs = m.nowUs + b.TimeoutUs
	}
}

func (s *Session) leaveQueue() {
	if s.blocked != nil {
		s.blocked.waiter.Leave()
		s.blocked = nil
	}
}

// serveReady serves the clients that wait for keys touched since the last
// call. Serving touches keys too; they come after in the same loop. Who comes
// in while a script is busy serves nobody: the script has not ended.
func (m *Machine) serveReady() {
	for !m.Busy() {
		db, key, ok := m.space.TakeReady()
		if !ok {
			return
		}
		m.serveQueue(db, key)
	}
}

// serveQueue retries those who wait for a key, head first, while it can serve them.
// One that is served leaves the queue, and the next one takes its place.
func (m *Machine) serveQueue(db *keyspace.DB, name string) {
	key := []byte(name)
	for at := 0; ; {
		next, ok := db.NextWaiter(name, at, m.nowUs/1000)
		if !ok {
			return
		}
		at = next
		session := db.Waiting(name)[at].Owner.(*Session)
		m.retry(session, key)
		if session.blocked != nil {
			at++
		}
	}
}

// retry runs a blocked session's request again, for the key that has become
// ready; if it still finds nothing, the session stays where it is.
func (m *Machine) retry(s *Session, ready []byte) {
	b := s.blocked
	if b == nil {
		return
	}
	m.ready = ready
	out := s.replies()
	m.current, m.replyFrom = s, s.Out.Len()
	if _, still := m.call(s, b.spec, b.args, out, true); !still {
		m.unblock(s, out)
	}
	m.hasRun(s)
}

// unblock lets a session go on whose reply has been written to out.
func (m *Machine) unblock(s *Session, out *resp.Writer) {
	s.leaveQueue()
	s.replied(out)
	m.wake(s)
}

// Timeout tells a session blocked under this number that its time is up. A
// number that is no longer current is ignored.
func (m *Machine) Timeout(nowUs int64, s *Session, number uint64) {
	m.nowUs = nowUs
	if s.blocked == nil || s.blocked.number != number || s.blocked.postponed {
		return
	}
	out := s.replies()
	s.blocked.onTimeout(out)
	m.called(s, s.blocked.spec, s.blocked.args, s.blocked.workUs*1000, nil)
	m.unblock(s, out)
}

func cloneArgs(args [][]byte) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	clone, all := make([][]byte, len(args)), make([]byte, 0, size)
	for i, a := range args {
		start := len(all)
		all = append(all, a...)
		clone[i] = all[start:len(all):len(all)]
	}
	return clone
}
