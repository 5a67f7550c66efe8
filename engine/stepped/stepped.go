// Package stepped is the engine without its shell: no goroutine, no socket, no
// clock. Whoever holds it says what each connection sends, when, and what time
// it is; nothing happens by itself. It is for tests and for programs that look
// into how clients of Redis interleave: the same calls have the same replies,
// always.
//
// Package engine has the same machine with a clock and connections of its own.
// An Engine here is not safe for concurrent use: there is one order of things,
// and the caller makes it.
package stepped

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// Engine is a machine that is stepped by its calls.
type Engine struct {
	machine *exec.Machine
	nowUs   int64
	own     *exec.Session // of Do
	conns   []*Conn
}

// New returns an empty engine on which it is now. What commands draw at random
// is the same for every engine.
func New(now time.Time) *Engine {
	e := &Engine{nowUs: now.UnixMicro()}
	e.machine = exec.New(exec.Options{RunID: strings.Repeat("0", 40)}, e.nowUs)
	e.own = e.machine.ConnectLocal(e.nowUs)
	return e
}

// Now is the engine's time, in whole microseconds.
func (e *Engine) Now() time.Time { return time.UnixMicro(e.nowUs).UTC() }

// Advance lets time pass. Blocked requests whose time is up meanwhile are
// answered, in the order in which they were sent. A negative d is a clock that
// was set back.
func (e *Engine) Advance(d time.Duration) {
	e.nowUs += d.Microseconds()
	due := map[uint64]*exec.Session{}
	for _, c := range e.conns {
		if number, untilUs, blocked := c.session.Blocked(); blocked && untilUs != 0 && untilUs <= e.nowUs {
			due[number] = c.session
		}
	}
	for _, number := range slices.Sorted(maps.Keys(due)) {
		e.machine.Timeout(e.nowUs, due[number], number)
	}
	e.machine.TakeEffects()
}

// Reset closes all connections, drops all keys and sets the time, which may go
// back. Scripts that were loaded stay.
func (e *Engine) Reset(now time.Time) {
	for _, c := range e.conns {
		e.machine.Disconnect(c.session)
	}
	e.conns = nil
	e.Do("FLUSHALL")
	e.nowUs = now.UnixMicro()
}

// Do runs one command that cannot block, without a connection, and returns its
// reply in the protocol's bytes.
func (e *Engine) Do(args ...string) []byte {
	words := make([][]byte, len(args))
	for i, arg := range args {
		words[i] = []byte(arg)
	}
	e.machine.Step(e.nowUs, e.own, words)
	e.machine.TakeEffects()
	return take(e.own)
}

// Close ends the engine.
func (e *Engine) Close() { e.machine.Close() }

// Conn is one connection.
type Conn struct {
	engine  *Engine
	session *exec.Session
}

// Connect opens a connection, which needs no password.
func (e *Engine) Connect() *Conn {
	c := &Conn{e, e.machine.Connect(e.nowUs, "stepped:0", "stepped:0")}
	e.conns = append(e.conns, c)
	return c
}

// Send runs one request. Its reply is what Received returns, unless the
// request blocks. A connection that is blocked must not send.
func (c *Conn) Send(args [][]byte) {
	c.engine.machine.Step(c.engine.nowUs, c.session, args)
	c.engine.machine.TakeEffects()
}

// Received takes what the engine has sent to this connection since the last
// call, in the protocol's bytes: replies, late ones too, and messages.
func (c *Conn) Received() []byte { return take(c.session) }

// Pending reports whether there is anything to receive.
func (c *Conn) Pending() bool { return c.session.Out.Len() > 0 }

// Blocked reports whether the last request waits, and until when; the zero time
// is for ever. Of two that wait, the one with the smaller number was first.
func (c *Conn) Blocked() (number uint64, until time.Time, blocked bool) {
	number, untilUs, blocked := c.session.Blocked()
	if untilUs != 0 {
		until = time.UnixMicro(untilUs).UTC()
	}
	return number, until, blocked
}

// Disturbed reports whether a key that the connection watches has changed, so
// that EXEC will fail.
func (c *Conn) Disturbed() bool { return c.session.Disturbed(c.engine.nowUs) }

// Close ends the connection. The engine forgets what it waits for.
func (c *Conn) Close() {
	c.engine.machine.Disconnect(c.session)
	for i, open := range c.engine.conns {
		if open == c {
			c.engine.conns = append(c.engine.conns[:i], c.engine.conns[i+1:]...)
			return
		}
	}
}

func take(s *exec.Session) []byte {
	taken := append([]byte(nil), s.Out.Bytes()...)
	s.Out.Reset()
	return taken
}
