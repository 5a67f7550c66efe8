package exec

import (
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/command"
)

// CLIENT PAUSE: requests wait, all of them or those that could change data,
// until a time or until CLIENT UNPAUSE. A request that waits is a kind of
// blocked request: it is kept with its session, and takes its way from the
// start when the pause is over, in the order in which the requests came.
//
// While clients are paused the data stands still: what has expired is not
// there for readers, but is not removed either.

// pause is the one that is on; none if untilUs is 0.
type pause struct {
	untilUs    int64
	everything bool // not only writes
	ended      bool // by the command that is running
	waiting    []*Session
}

func (m *Machine) paused() bool { return m.pause.untilUs != 0 }

// mustWait reports whether a pause holds a request up: each one, or one that
// may write or send something to others.
func (m *Machine) mustWait(s *Session, spec *command.Spec, args [][]byte) bool {
	switch {
	case spec.Name == "shutdown": // it may be told to stop
		return false
	case m.pause.everything:
		return true
	}
	if spec.Name != "exec" || s.transaction == nil {
		return m.needsOf(spec, args).writes
	}
	for _, call := range s.transaction.calls {
		if m.needsOf(call.spec, call.args).writes {
			return true
		}
	}
	return false
}

// postpone keeps a request for the end of the pause.
func (m *Machine) postpone(s *Session, spec *command.Spec, args [][]byte) {
	m.blockings++
	s.blocked = &blocked{number: m.blockings, spec: spec, args: cloneArgs(args), waiter: s.db.Wait(s, nil), postponed: true}
	m.pause.waiting = append(m.pause.waiting, s)
}

// resume runs the requests that have waited for the end of the pause.
func (m *Machine) resume() {
	waiting := m.pause.waiting
	m.pause = pause{}
	m.freeze()
	for _, s := range waiting {
		b := s.blocked
		if b == nil || !b.postponed {
			continue // it has gone
		}
		s.leaveQueue()
		m.handle(s, b.args)
		m.wake(s)
	}
}

func (m *Machine) clientPause(c *command.Ctx) error {
	if len(c.Args) > 4 {
		return command.WrongSubcommand("CLIENT", c.Args[1])
	}
	everything := true
	if len(c.Args) == 4 {
		switch {
		case command.Is(c.Args[3], "WRITE"):
			everything = false
		case !command.Is(c.Args[3], "ALL"):
			return command.Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
		}
	}
	ms, ok := command.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.Error("ERR timeout is not an integer or out of range")
	case ms < 0:
		return command.Error("ERR timeout is negative")
	case ms > (math.MaxInt64-c.NowUs)/1000:
		return command.Error("ERR timeout is out of range")
	}
	m.pause.untilUs = max(m.pause.untilUs, c.NowUs+ms*1000)
	m.pause.everything = m.pause.everything || everything
	m.freeze()
	c.Out.SimpleString("OK")
	return nil
}

func (m *Machine) clientUnpause(c *command.Ctx) error {
	m.pause.ended = m.paused() && m.ending == nil
	c.Out.SimpleString("OK")
	return nil
}
