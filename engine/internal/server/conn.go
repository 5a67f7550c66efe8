package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

const (
	// pauseAboveBytes is how much unread output a client may pile up before
	// its further requests are left unread until it catches up.
	pauseAboveBytes = 64 << 20
	// dropAboveBytes is how many unread messages a subscriber may pile up
	// before it is disconnected: it would never catch up.
	dropAboveBytes = 32 << 20
	// keepBytes is how much of an output buffer is kept for the next replies.
	keepBytes = 64 << 10
)

// conn is one connection.
type conn struct {
	server   *Server
	nc       net.Conn
	writer   nonBlocking
	requests resp.Requests // the serving goroutine's

	// Guarded by the engine's lock.
	session  *exec.Session
	timer    *time.Timer // ends the wait of a blocked session
	leftover bool        // requests arrived behind a blocked one
	kicked   bool        // the read deadline was set to wake the reader

	// Guarded by out; never held while anything blocks.
	out     sync.Mutex
	pending []byte
	written int // how much of pending has been written
	writing bool
	hangup  bool // close once pending has been written
	broken  bool
	drained chan struct{} // closed when pending falls below the pause; nil when nobody waits
}

func newConn(s *Server, nc net.Conn) *conn {
	return &conn{server: s, nc: nc, writer: newNonBlocking(nc)}
}

// serve reads and runs requests until the connection ends.
func (c *conn) serve() {
	defer c.end()
	for {
		n, err := c.nc.Read(c.requests.Space())
		c.requests.Advance(n)
		if n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if !c.process() {
			return
		}
		if wait := c.full(); wait != nil {
			select {
			case <-wait:
			case <-c.server.done:
				return
			}
		}
	}
}

// process runs the requests that have arrived, as one batch. It reports
// whether to go on reading.
func (c *conn) process() bool {
	s := c.server
	s.mu.Lock()
	if s.closed || c.session.Closing() {
		s.mu.Unlock()
		return false
	}
	if c.kicked {
		c.kicked = false
		if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
			s.mu.Unlock()
			return false
		}
	}
	wasBlocked := c.isBlocked()
	goOn := c.runBatch()
	if !wasBlocked {
		c.armTimeout()
	}
	c.take()
	if !goOn {
		s.machine.Disconnect(c.session) // whoever sees it closed sees it gone
	}
	after := s.carryOut()
	s.mu.Unlock()
	c.flush()
	settle(after)
	return goOn
}

// runBatch steps the machine through every whole request, up to one that
// blocks or ends the connection. The lock is held.
func (c *conn) runBatch() bool {
	now := nowUs()
	for {
		if c.isBlocked() {
			c.leftover = c.requests.Buffered() > 0
			return true
		}
		c.leftover = false
		c.requests.Trusted = c.session.Authenticated()
		args, ok, err := c.requests.Next()
		switch {
		case err != nil:
			c.session.Out.Error("ERR Protocol error: " + err.Error())
			c.finish()
			return false
		case !ok:
			return true
		}
		c.server.machine.Step(now, c.session, args)
		if c.session.Closing() {
			c.finish()
			return false
		}
	}
}

func (c *conn) isBlocked() bool {
	_, _, blocked := c.session.Blocked()
	return blocked
}

// armTimeout starts the timer of a session that has just blocked.
func (c *conn) armTimeout() {
	number, untilUs, blocked := c.session.Blocked()
	if !blocked || untilUs == 0 {
		return
	}
	wait := time.Until(time.UnixMicro(untilUs))
	session := c.session
	c.timer = time.AfterFunc(wait, func() { c.server.timeout(session, number) })
}

// take moves the session's output to the connection's. The engine's lock is
// held, the output's is taken.
func (c *conn) take() {
	if c.session.Out.Len() == 0 {
		return
	}
	c.out.Lock()
	defer c.out.Unlock()
	if len(c.pending) == 0 && !c.writing {
		c.pending = c.session.Out.Swap(c.pending)
		return
	}
	c.pending = append(c.pending, c.session.Out.Bytes()...)
	c.session.Out.Reset()
	if c.session.Subscriber() && len(c.pending)-c.written > dropAboveBytes {
		c.broken = true
	}
}

// deliver is sink's: a message, or the end of a wait.
func (c *conn) deliver() {
	if c.timer != nil && !c.isBlocked() {
		c.timer.Stop()
		c.timer = nil
	}
	c.take()
	if c.leftover && !c.isBlocked() {
		c.kick()
	}
}

// hangUp is sink's: CLIENT KILL by another client.
func (c *conn) hangUp() {
	c.take()
	c.finish()
}

// settle is sink's.
func (c *conn) settle() { c.flush() }

// kick wakes the reader, so that it runs the requests behind a blocked one.
func (c *conn) kick() {
	c.kicked = true
	if err := c.nc.SetReadDeadline(time.Unix(1, 0)); err != nil {
		c.abandon()
	}
}

// finish closes the connection once everything has been written.
func (c *conn) finish() {
	c.out.Lock()
	c.hangup = true
	c.out.Unlock()
}

// flush writes what is pending without ever waiting. What the socket does not
// take goes on in a goroutine.
func (c *conn) flush() {
	c.out.Lock()
	defer c.out.Unlock()
	if c.writing {
		return
	}
	if c.broken {
		c.abandon()
		return
	}
	if len(c.pending) > c.written {
		n, err := c.writer.TryWrite(c.pending[c.written:])
		c.written += n
		if err != nil {
			c.broken = true
			c.abandon()
			return
		}
	}
	if c.written < len(c.pending) {
		c.writing = true
		c.server.tasks.Go(c.drain)
		return
	}
	c.wroteAll()
}

// drain writes what is pending, waiting for the peer as long as it takes.
func (c *conn) drain() {
	for {
		c.out.Lock()
		if c.written == len(c.pending) || c.broken {
			c.writing = false
			if c.broken {
				c.abandon()
			}
			c.wroteAll()
			c.out.Unlock()
			return
		}
		chunk := c.pending[c.written:]
		c.pending, c.written = nil, 0
		c.out.Unlock()
		if _, err := c.nc.Write(chunk); err != nil {
			c.out.Lock()
			c.broken = true
			c.out.Unlock()
		}
	}
}

// wroteAll makes ready for the next replies. c.out is held.
func (c *conn) wroteAll() {
	if cap(c.pending) > keepBytes {
		c.pending = nil
	}
	c.pending, c.written = c.pending[:0], 0
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
	if c.hangup {
		c.abandon()
	}
}

// full returns a channel to wait on if the client must first read what it was
// sent.
func (c *conn) full() <-chan struct{} {
	c.out.Lock()
	defer c.out.Unlock()
	if len(c.pending)-c.written <= pauseAboveBytes || c.broken {
		return nil
	}
	return c.whenDrained()
}

// whenDrained returns a channel that is closed once everything has been
// written. c.out is held.
func (c *conn) whenDrained() chan struct{} {
	if c.drained == nil {
		c.drained = make(chan struct{})
	}
	return c.drained
}

// abandon closes the socket; the serving goroutine then ends by itself.
func (c *conn) abandon() {
	_ = c.nc.Close() // closing twice, or a peer already gone, is no news
}

// end takes the connection out of the engine once all its output has been
// written, or cannot be.
func (c *conn) end() {
	s := c.server
	s.mu.Lock()
	if c.timer != nil {
		c.timer.Stop()
	}
	s.machine.Disconnect(c.session)
	delete(s.bySession, c.session)
	after := s.carryOut()
	s.mu.Unlock()
	settle(after)
	c.out.Lock()
	var drained chan struct{}
	if c.writing && c.hangup {
		drained = c.whenDrained()
	}
	c.out.Unlock()
	if drained != nil {
		select {
		case <-drained:
		case <-s.done:
		}
	}
	c.abandon()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}
