package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

const (
	// pauseAboveBytes is how much unread output a client may pile up before
	// its further requests are left unread until it catches up.
	pauseAboveBytes = 64 << 20
	// freeBytes is how much unread output no limit counts, as in Redis, where it
	// is in a buffer that each client has.
	freeBytes = 16 << 10
)

// conn is one connection.
type conn struct {
	server   *Server
	nc       net.Conn
	secured  *tls.Conn // nc, if it speaks TLS
	loop     looped    // nc, if an event loop serves it
	writer   nonBlocking
	reader   awaiting       // nil: nc is to be read itself
	requests *resp.Requests // the serving goroutine's; nil while nothing of a request is here
	paused   bool           // the serving goroutine's: whole requests wait for the client to read

	// Guarded by the engine's lock.
	session  *exec.Session
	timer    *time.Timer // ends the wait of a blocked session
	leftover bool        // requests arrived behind a blocked one
	kicked   bool        // the read deadline was set to wake the reader
	// overSinceUs is since when the output is above the soft limit; 0 if it is not.
	overSinceUs int64

	// Guarded by out; never held while anything blocks.
	out     sync.Mutex
	pending []byte
	written int                // how much of pending has been written
	shared  replication.Pieces // of the stream, for a replica: comes after pending
	flying  int                // how much a goroutine is writing just now
	until   int64              // up to where the log is to be committed before pending may be written
	own     int64              // up to where the changes go that pending tells the one of who made them
	replica bool               // its requests are few, and are read whatever waits for it
	told    int                // messages among what has not been written yet: what the client did not ask for
	writing bool
	hangup  bool          // close once pending has been written
	killed  bool          // close, though pending may not have been written
	broken  bool          // closed, or about to be: nothing is written any more
	drained chan struct{} // closed when pending falls below the pause; nil when nobody waits
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, writer: newNonBlocking(nc)}
	c.secured, _ = nc.(*tls.Conn)
	c.loop, _ = nc.(looped)
	c.reader = newAwaiting(nc, c.room, c.vacate)
	return c
}

// looped is a connection that an event loop serves (eventloop_linux.go). What is said here
// of the serving goroutine is said of the loop then.
type looped interface {
	// start begins the service.
	start(c *conn)
	// wake has the loop run what waits behind a blocked request. It never waits.
	wake()
	// handOver has the loop go on without this connection until its batch has been run.
	handOver()
}

// begin serves the connection until it ends, in the background.
func (c *conn) begin() {
	if c.loop != nil {
		c.loop.start(c)
		return
	}
	go c.serve()
}

// serve reads and runs requests until the connection ends.
func (c *conn) serve() {
	defer c.server.tasks.Done()
	defer c.end()
	c.server.aside.Add(1)
	defer c.server.aside.Add(-1)
	for {
		n, err := c.receive()
		late := n == 0 && err != nil
		if late && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.reportPlain(err)
			return
		}
		for more := true; more; n, late = 0, false {
			goOn, after := c.run(n, late)
			if c.tell(&after); !goOn {
				return
			}
			if wait := c.full(); wait != nil {
				select {
				case <-wait:
				case <-c.server.done:
					return
				}
			}
			more = c.paused
		}
	}
}

// run runs the requests that have arrived, n bytes more than before, as one batch. It
// reports whether to go on reading, after tell. late says that the read has ended
// at a deadline: kick has set it, or else the connection's owner, who then wants
// it to end.
func (c *conn) run(n int, late bool) (goOn bool, after aftermath) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || c.session.Closing() || late && !c.kicked {
		return false, after
	}
	if c.kicked {
		c.kicked = false
		if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
			return false, after
		}
	}
	now := nowUs()
	if n > 0 {
		s.machine.Received(now, c.session, n)
	}
	wasBlocked := c.isBlocked()
	own := s.spares.lend(&c.session.Out)
	goOn = c.runBatch(now)
	s.machine.Weigh(c.session)
	s.machine.EvictClients()
	goOn = goOn && !c.session.Closing() // it was too heavy
	if !wasBlocked {
		c.armTimeout()
	}
	if !goOn {
		s.machine.Disconnect(c.session) // whoever sees it closed sees it gone
	}
	after = s.carryOut()
	c.take()
	s.spares.end(&c.session.Out, own)
	return goOn, after
}

// tell writes the replies of a batch, and does what else is left to do of it.
func (c *conn) tell(after *aftermath) {
	if after.commit() != nil {
		c.lose()
	}
	c.flush()
	after.settle()
}

// runBatch steps the machine through every whole request, up to one that
// blocks or ends the connection, or has more to say than the client must read first.
// The lock is held.
func (c *conn) runBatch(now int64) bool {
	c.noteRequests()
	for c.paused = false; ; {
		if c.isBlocked() {
			c.leftover = c.waiting() > 0
			return c.mayWait()
		}
		c.leftover = false
		if c.session.Out.Len() > pauseAboveBytes {
			c.paused = true
			return c.mayWait()
		}
		args, ok, err := c.next()
		switch {
		case err != nil:
			c.requests = nil // nobody can use it again
			c.giveUp(err)
			return false
		case !ok:
			return c.mayWait()
		}
		c.server.stepping, c.session.Large = c.loop, c.requests.Large()
		c.server.machine.Step(now, c.session, args)
		c.server.stepping, c.session.Large = nil, nil
		if c.session.Closing() {
			c.finish()
			return false
		}
	}
}

// mayWait reports whether the requests that cannot be run yet are few enough. Those that a
// transaction has queued are among them.
func (c *conn) mayWait() bool {
	c.noteRequests()
	if int64(c.session.Buffers.QueryBytes+c.session.QueuedBytes()) <= c.server.machine.QueryBufferLimit() {
		return true
	}
	c.finish()
	return false
}

// noteRequests tells the session of what has arrived for it and waits.
func (c *conn) noteRequests() {
	b := &c.session.Buffers
	b.QueryBytes, b.FreeBytes = c.waiting(), 0
	if b.QueryBytes > 0 {
		b.FreeBytes = c.requests.Free()
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
	if c.session.Out.Len() == 0 && c.session.Stream.Len() == 0 {
		return
	}
	c.server.machine.Sent(c.session)
	c.out.Lock()
	defer c.out.Unlock()
	switch {
	case c.broken:
		c.server.spares.empty(&c.session.Out)
		c.session.Stream.Clear()
	case c.shared.Len() > 0: // a reply comes after what of the stream was there before it
		c.shared.Add(bytes.Clone(c.session.Out.Bytes()))
		c.server.spares.empty(&c.session.Out)
	case len(c.pending) == 0 && !c.writing && c.session.Out.Len() > keepBytes:
		c.pending = c.session.Out.Swap(nil)
	default:
		c.pending = append(c.pending, c.session.Out.Bytes()...)
		c.server.spares.empty(&c.session.Out)
	}
	if c.session.Stream.Len() > 0 {
		c.shared.Join(&c.session.Stream)
		c.session.Stream.Clear()
	}
	if k := c.server.keeper; k != nil {
		c.until = max(c.until, k.reach())
		if k.changed {
			c.own = k.appended
		}
	}
	c.bound()
}

// unread is how much has not been written yet.
func (c *conn) unread() int {
	c.out.Lock()
	defer c.out.Unlock()
	return c.unwrittenBytes()
}

// unwrittenBytes is unread, with c.out held.
func (c *conn) unwrittenBytes() int { return len(c.pending) - c.written + c.shared.Len() + c.flying }

// bound disconnects a client that leaves more unread than it may: it would never
// catch up. Messages are bounded for everybody as for subscribers: a client that
// is told of changes to keys has not asked for each of them. Both locks are held.
func (c *conn) bound() {
	machine := c.server.machine
	limit := machine.OutputLimit(c.session.OutputClass())
	unread := int64(c.unwrittenBytes())
	if unread <= freeBytes {
		unread = 0
	}
	c.session.Buffers.UnreadBytes = int(unread)
	mostTold := machine.OutputLimit(exec.OutputPubSub).HardBytes
	if limit.HardBytes > 0 && unread > limit.HardBytes || mostTold > 0 && int64(c.told) > mostTold {
		c.broken = true
	}
	if limit.SoftBytes == 0 || unread <= limit.SoftBytes || c.broken {
		if c.overSinceUs != 0 {
			c.overSinceUs = 0
			delete(c.server.slow, c)
		}
		return
	}
	switch now := nowUs(); {
	case c.overSinceUs == 0:
		c.overSinceUs = now
		c.server.slow[c] = struct{}{}
	case now-c.overSinceUs > limit.SoftSeconds*1e6:
		c.broken = true
	}
}

// deliver is sink's: a message, or the end of a wait.
func (c *conn) deliver() {
	if c.timer != nil && !c.isBlocked() {
		c.timer.Stop()
		c.timer = nil
	}
	c.out.Lock()
	if c.replica = c.session.IsReplica(); !c.replica { // whose bound is another one
		c.told += c.session.Out.Len()
	}
	c.out.Unlock()
	c.take()
	c.server.machine.Weigh(c.session)
	switch {
	case c.session.Closing(): // a request that was postponed has ended it
		c.finish()
	case c.leftover && !c.isBlocked():
		c.kick()
	}
}

// hangUp is sink's: CLIENT KILL by another client. The killed one gets of its
// output what its socket takes at once.
func (c *conn) hangUp() {
	c.take()
	c.out.Lock()
	c.hangup, c.killed = true, true
	c.out.Unlock()
}

// settle is sink's.
func (c *conn) settle() { c.flush() }

// lose is sink's.
func (c *conn) lose() {
	c.out.Lock()
	c.broken = true
	c.out.Unlock()
}

// mayTell reports whether what is pending may be written: if not, whoever has it
// committed writes it. c.out is held.
func (c *conn) mayTell() bool {
	k := c.server.keeper
	return k == nil || k.mayTell(c.until) || k.mayTell(c.own) && k.mayShow(c.until)
}

// kick wakes the reader, so that it runs the requests behind a blocked one.
func (c *conn) kick() {
	if c.loop != nil {
		c.loop.wake()
		return
	}
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
	switch {
	case c.broken, c.killed && c.writing:
		c.fail()
		return
	case c.writing || !c.mayTell():
		return
	}
	if err := c.tryWrite(); err != nil {
		c.fail()
		return
	}
	switch {
	case c.unwrittenBytes() == 0:
		c.wroteAll()
	case c.killed:
		c.fail()
	default:
		c.writing = true
		c.server.tasks.Go(c.drain) // not broken, so serve is still counted
	}
}

// tryWrite writes what the socket takes at once. c.out is held.
func (c *conn) tryWrite() error {
	if len(c.pending) > c.written {
		n, err := c.writer.TryWrite(c.pending[c.written:])
		if c.written += n; err != nil || c.written < len(c.pending) {
			return err
		}
	}
	for c.shared.Len() > 0 {
		piece := c.shared.First()
		n, err := c.writer.TryWrite(piece)
		if c.shared.Drop(n); err != nil || n < len(piece) {
			return err
		}
	}
	return nil
}

// drain writes what is pending, waiting for the peer as long as it takes.
func (c *conn) drain() {
	for {
		c.out.Lock()
		if c.broken || c.unwrittenBytes() == 0 {
			c.writing = false
			if c.broken {
				c.fail()
			} else {
				c.wroteAll()
			}
			c.out.Unlock()
			return
		}
		if !c.mayTell() {
			until, own := c.until, !c.server.keeper.mayTell(c.own)
			c.out.Unlock()
			if c.server.keeper.commit(until, own) != nil {
				c.lose()
			}
			continue
		}
		chunk, own := c.pending[c.written:], true
		c.pending, c.written = nil, 0
		if len(chunk) == 0 {
			chunk, own = c.shared.First(), false
			c.shared.Drop(len(chunk))
		}
		c.flying = len(chunk)
		c.out.Unlock()
		_, err := c.nc.Write(chunk)
		if own {
			c.server.spares.returnOutput(chunk)
		}
		c.out.Lock()
		c.flying = 0
		c.broken = c.broken || err != nil
		c.out.Unlock()
	}
}

// wroteAll makes ready for the next replies. c.out is held.
func (c *conn) wroteAll() {
	if cap(c.pending) > 2*keepBytes { // what is appended to grows to twice its size
		c.server.spares.returnOutput(c.pending)
		c.pending = nil
	}
	c.pending, c.written, c.told = c.pending[:0], 0, 0
	c.tellDrained()
	if c.hangup && (c.secured == nil || c.killed) {
		c.abandon() // one that speaks TLS says goodbye first: see end
	}
}

// fail gives up what is pending, and the connection. c.out is held.
func (c *conn) fail() {
	c.broken = true
	c.pending, c.written = nil, 0
	c.shared.Clear()
	c.tellDrained()
	c.abandon()
}

// tellDrained wakes whoever waits for the output to be gone. c.out is held.
func (c *conn) tellDrained() {
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
}

// full returns a channel to wait on if the client must first read what it was
// sent.
func (c *conn) full() <-chan struct{} {
	c.out.Lock()
	defer c.out.Unlock()
	most := pauseAboveBytes
	if c.paused {
		most = 0
	}
	if c.unwrittenBytes() <= most || c.broken || c.replica {
		return nil
	}
	return c.whenDrained()
}

// whenDrained returns a channel that is closed once everything has been
// written, or given up. c.out is held.
func (c *conn) whenDrained() chan struct{} {
	if c.drained == nil {
		c.drained = make(chan struct{})
	}
	return c.drained
}

// abandon closes the socket; the serving goroutine then ends by itself. It
// never waits: closing the TLS connection would first write to its peer.
func (c *conn) abandon() {
	socket := c.nc
	if c.secured != nil {
		socket = c.secured.NetConn()
	}
	_ = socket.Close() // closing twice, or a peer already gone, is no news
}

// end takes the connection out of the engine, and closes it once all its output has been
// written, or cannot be.
func (c *conn) end() {
	after := c.depart()
	c.close(&after, c.unwritten())
}

// depart takes the connection out of the engine: it gets no further output. It never waits.
func (c *conn) depart() aftermath {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	s.machine.Disconnect(c.session)
	delete(s.bySession, c.session)
	delete(s.slow, c)
	return s.carryOut()
}

// close closes a connection that has departed, after waiting for the disk, and for its peer
// if drained is not nil.
func (c *conn) close(after *aftermath, drained <-chan struct{}) {
	s := c.server
	after.settle()
	c.vacate()
	if drained != nil {
		select {
		case <-drained:
		case <-s.done:
		}
	}
	c.sayGoodbye()
	c.out.Lock()
	c.fail() // from here on, nobody starts to write
	c.out.Unlock()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// unwritten returns a channel to wait on before a connection that has departed is closed, if
// there is something that its peer is to have.
func (c *conn) unwritten() <-chan struct{} {
	c.out.Lock()
	defer c.out.Unlock()
	if !c.writing || !c.hangup || c.broken {
		return nil
	}
	return c.whenDrained()
}

// sayGoodbye tells a TLS peer that nothing more is to come. Only the serving
// goroutine waits for that, and not for long.
func (c *conn) sayGoodbye() {
	c.out.Lock()
	polite := c.secured != nil && c.hangup && !c.killed && !c.broken && !c.writing
	c.out.Unlock()
	if polite {
		_ = c.secured.CloseWrite() // a peer that is gone needs no goodbye
	}
}
