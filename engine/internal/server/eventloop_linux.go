package server

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Plain sockets are served by an event loop. It goes in rounds: it asks epoll which
// connections have sent something, reads and runs the batch of each in turn, and then, after
// one commit for all of them, writes the replies.
//
// There is one loop, however many processors there are. What one program sends on several
// connections is then run in the order in which it has sent it, as by Redis, and programs rely
// on that. Two loops would also wait for each other at the engine's lock, once a batch.
//
// A goroutine for each connection costs a switch for each batch, and Go's poller hands out
// what is ready last first: a connection waits for none or for two rounds where here it
// waits for one, which doubles the p99. And it commits for itself alone.
//
// Nothing in a round waits for a peer or holds up another connection for long:
//
//   - what a socket does not take at once goes on in a goroutine of the connection (conn.drain),
//   - a connection that must read first is away: the loop does not look at it until it is back,
//   - so is one whose script lets others in: the loop goes on in another goroutine (handOver),
//   - so is one that ends while something is not on disk yet: a goroutine waits for that.
//
// But a round waits for its own commit, and so for the disk with "appendfsync always". What
// would run meanwhile could be told no sooner: its replies have to wait for the next sync. A
// goroutine that waits in place of the loop halves the groups, since those of one sync are not
// back when the next one begins: 50 clients had 0.6 times the rate that they have so, for twice
// the processor's time.
//
// What is not a socket, and TLS, has a goroutine of its own, as on systems without epoll
// (conn.serve): the two ways share run and tell.
//
// Invariant E1: one goroutine at a time is in run of the loop, and no other touches what is the
// loop's own. A connection that is away belongs, with its turn, to whoever took it away.
// Invariant E2: a descriptor is closed when nobody can use it any more: no writer of its
// connection, no loop, and not epoll.

// eventLoop serves a server's sockets.
type eventLoop struct {
	server *Server
	epoll  int
	event  int // an eventfd, which wakes the loop

	// The loop's own.
	events  [128]unix.EpollEvent
	ready   []*socket // of this round
	next    int       // how many of ready have had their turn
	turns   []turn    // of this round: what is to be told at its end
	unread  int       // bytes of replies among it
	waiting waiting

	mu      sync.Mutex        // for moments; all locks but a socket's are taken before it
	sockets map[int32]*socket // from when they are let in, which is before they are served
	posted  []*socket         // to be looked at, though they may have sent nothing
	woken   bool
	gone    bool // the loop has ended
}

// mostRoundBytes of replies end a round early: they are still in the processor's cache then,
// and so is the memory in which the next ones are built.
const mostRoundBytes = 128 << 10

// turn is what a connection has left to do when its batch has been run.
type turn struct {
	s     *socket
	after aftermath
	goOn  bool
}

// adopt gives a connection to the loop, if it is one that it can serve: what it returns takes
// the place of nc. The engine's lock is held.
func (s *Server) adopt(nc net.Conn) net.Conn {
	fd, ok := descriptor(nc)
	if !ok {
		return nc
	}
	if s.loop == nil {
		l, err := newEventLoop(s)
		if err != nil { // for want of descriptors: goroutines do
			_ = unix.Close(fd) // the copy
			return nc
		}
		s.loop = l
		s.tasks.Go(l.run)
	}
	adopted := newSocket(s.loop, fd, nc)
	_ = nc.Close() // its descriptor: the connection goes on
	return adopted
}

// stop lets the loop end, if there is one, when no connection is left. The engine's lock is held.
func (l *eventLoop) stop() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// descriptor makes a copy of a socket's descriptor that Go's own poller knows nothing of.
func descriptor(nc net.Conn) (fd int, ok bool) {
	var sc syscall.Conn
	switch nc := nc.(type) { // not what embeds one of them, and has methods of its own
	case *net.TCPConn:
		sc = nc
	case *net.UnixConn:
		sc = nc
	default:
		return 0, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, false
	}
	failed := raw.Control(func(original uintptr) { fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, failed == nil && err == nil
}

func newEventLoop(s *Server) (*eventLoop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(err, unix.Close(epoll))
	}
	tick, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(err, unix.Close(event), unix.Close(epoll))
	}
	l := &eventLoop{server: s, epoll: epoll, event: event, sockets: map[int32]*socket{}, waiting: waiting{tick: tick}}
	err = errors.Join(
		l.control(unix.EPOLL_CTL_ADD, int32(event), unix.EPOLLIN),             //nolint:gosec // descriptors are small
		l.control(unix.EPOLL_CTL_ADD, int32(tick), unix.EPOLLIN|unix.EPOLLET), //nolint:gosec // like it; edges need no read
	)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *eventLoop) control(operation int, fd int32, events uint32) error {
	return unix.EpollCtl(l.epoll, operation, int(fd), &unix.EpollEvent{Events: events, Fd: fd})
}

// wake has the loop look at what is posted, and at whether to end. mu is held.
func (l *eventLoop) wake() {
	if l.woken || l.gone {
		return
	}
	l.woken = true
	_, _ = unix.Write(l.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it cannot be full
}

// run goes in rounds until the server is closed and all sockets are, or until another
// goroutine goes on.
func (l *eventLoop) run() {
	for {
		for l.next < len(l.ready) {
			s := l.ready[l.next]
			l.next++
			if !l.take(s) {
				return
			}
		}
		l.endRound()
		l.yield()
		if !l.collect() {
			return
		}
	}
}

// collect waits for connections that have something to say, or about which there is
// something to do. It reports false when there never will be any.
func (l *eventLoop) collect() bool {
	n := l.await()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.ready {
		l.ready[i], s.inRound = nil, false
	}
	l.ready, l.next = l.ready[:0], 0
	for _, event := range l.events[:n] {
		if int(event.Fd) == l.event {
			var count [8]byte
			_, _ = unix.Read(l.event, count[:]) // it is not empty
			l.woken = false
		} else if s := l.sockets[event.Fd]; s != nil && s.happened(event.Events) {
			l.join(s)
		}
	}
	for _, s := range l.posted {
		s.posted, s.missed = false, s.away
		if !s.away && !s.inRound { // all are posted at once when the server is closed
			l.join(s)
		}
	}
	clear(l.posted)
	l.posted = l.posted[:0]
	return len(l.sockets) > 0 || !l.end()
}

// join gives a connection a turn in the next round.
func (l *eventLoop) join(s *socket) {
	s.inRound = true
	l.ready = append(l.ready, s)
}

// end ends the loop if nobody can come any more. mu is held.
func (l *eventLoop) end() bool {
	select {
	case <-l.server.done:
	default:
		return false
	}
	l.gone = true
	_ = l.close()
	return true
}

func (l *eventLoop) close() error {
	return errors.Join(unix.Close(l.waiting.tick), unix.Close(l.event), unix.Close(l.epoll))
}

// take reads and runs what a connection has sent. It reports false if the loop has gone on
// without it meanwhile.
func (l *eventLoop) take(s *socket) bool {
	t := turn{s: s}
	if n, err := s.receive(); err == nil {
		t.goOn, t.after = s.conn.run(n, false)
		s.conn.vacate() // the next one in the round reads with it
	}
	if s.alone {
		s.alone = false
		t.end()
		return false
	}
	if !t.goOn {
		s.leave()
	}
	l.turns = append(l.turns, t)
	if l.unread += s.conn.unread(); l.unread >= mostRoundBytes {
		l.endRound()
	}
	return true
}

// endRound commits what the round has changed, and tells everybody.
func (l *eventLoop) endRound() {
	turns := l.turns
	if len(turns) == 0 {
		return
	}
	tell(turns)
	clear(l.turns)
	l.turns, l.unread = l.turns[:0], 0
}

// tell ends turns, after one commit for all of them.
func tell(turns []turn) {
	for i := len(turns) - 1; i >= 0; i-- {
		if latest := &turns[i].after; latest.keeper != nil {
			_ = latest.commit() // each hears of the error by itself
			break
		}
	}
	for i := range turns {
		turns[i].end()
	}
}

// end tells the peer what its batch has come to, and has the connection looked at again, or
// ended.
func (t *turn) end() {
	s, c := t.s, t.s.conn
	c.tell(&t.after)
	if !t.goOn {
		s.finish()
		return
	}
	if wait := c.full(); wait != nil {
		s.leave()
		c.server.tasks.Go(func() {
			select {
			case <-wait:
			case <-c.server.done:
			}
			s.comeBack(true)
		})
		return
	}
	s.comeBack(c.paused)
}
