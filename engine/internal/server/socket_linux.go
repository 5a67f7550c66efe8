package server

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a connection that an event loop serves. It is a net.Conn to whoever writes or
// closes; only the loop reads.
type socket struct {
	loop    *eventLoop
	conn    *conn
	id      int32 // its descriptor, as epoll and the loop know it
	inRound bool  // the loop's: it is in ready
	alone   bool  // of whoever runs it: the loop goes on without it
	ended   atomic.Bool

	local, remote net.Addr

	// Guarded by the loop's lock.
	here     bool          // the loop serves it
	away     bool          // the loop is not to look at it
	posted   bool          // the loop is to look at it
	missed   bool          // it was, while it was away
	masked   bool          // epoll is not asked whether there is something to read
	deaf     bool          // epoll is asked nothing
	writable chan struct{} // closed when a write may go on; nil when none waits

	mu sync.Mutex // for moments; what uses the descriptor beside the loop
	fd int        // -1 when it is closed
}

// newSocket makes one that is not served yet. Its loop does not end before it: somebody may
// close the server just now.
func newSocket(l *eventLoop, fd int, nc net.Conn) *socket {
	s := &socket{loop: l, id: int32(fd), fd: fd, local: nc.LocalAddr(), remote: nc.RemoteAddr()} //nolint:gosec // descriptors are small
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets[s.id] = s
	return s
}

// start begins the service. From then on the loop owns c.
func (s *socket) start(c *conn) {
	s.conn = c
	l := s.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	s.here = true
	if err := l.control(unix.EPOLL_CTL_ADD, s.id, unix.EPOLLIN); err != nil {
		s.deaf = true
		s.ended.Store(true)
	}
	if s.ended.Load() {
		s.post()
	}
}

// post has the loop look at it. The loop's lock is held.
func (s *socket) post() {
	if !s.here || s.posted {
		return
	}
	s.posted = true
	s.loop.posted = append(s.loop.posted, s)
	s.loop.wake()
}

// wake has the loop look at it, as soon as it is back.
func (s *socket) wake() {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	s.post()
}

// leave takes it away from the loop.
func (s *socket) leave() {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	s.away = true
}

// comeBack gives it back to the loop, if it is away; look says that there may be something to
// do at once.
func (s *socket) comeBack(look bool) {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	if s.away {
		look = look || s.missed
		s.away, s.missed = false, false
		if s.masked {
			s.masked = false
			s.ask()
		}
	}
	if look || s.deaf {
		s.post()
	}
}

// handOver is called while a script of this connection lets others in: another goroutine
// goes on with the loop.
func (s *socket) handOver() {
	if s.alone {
		return
	}
	s.alone = true
	s.leave()
	s.loop.server.tasks.Go(s.loop.run)
}

// happened takes what epoll has to say, and reports whether there is something to read. The
// loop's lock is held.
func (s *socket) happened(events uint32) bool {
	if events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 && s.writable != nil {
		close(s.writable)
		s.writable = nil
		s.ask()
	}
	if events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
		return false
	}
	switch {
	case !s.away:
		return true
	case !s.masked:
		s.masked = true
		s.ask()
	case !s.deaf: // it cannot be asked not to tell of the end
		s.deaf = true
		_ = s.loop.control(unix.EPOLL_CTL_DEL, s.id, 0)
	}
	return false
}

// ask asks epoll what is of interest. The loop's lock is held.
func (s *socket) ask() {
	if s.deaf {
		return
	}
	var events uint32
	if !s.masked {
		events |= unix.EPOLLIN
	}
	if s.writable != nil {
		events |= unix.EPOLLOUT
	}
	_ = s.loop.control(unix.EPOLL_CTL_MOD, s.id, events) // it is there
}

// receive reads what there is, which may be nothing. Only the loop calls it.
func (s *socket) receive() (n int, err error) {
	if s.ended.Load() {
		return 0, io.EOF
	}
	room := s.conn.room()
	for {
		switch n, err = readNow(int(s.id), room); {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		case err == nil && n == 0:
			return 0, io.EOF
		case err == nil:
			s.conn.requests.Advance(n)
		}
		return n, err
	}
}

// finish ends the connection, which is away, once everything has been written. It never waits.
func (s *socket) finish() {
	after, drained := s.conn.depart(), s.conn.unwritten()
	if drained != nil || after.waitsForDisk() {
		go s.end(&after, drained) // counted since the connection was admitted
		return
	}
	s.end(&after, drained)
}

// end ends the connection, which has departed.
func (s *socket) end(after *aftermath, drained <-chan struct{}) {
	s.conn.close(after, drained)
	s.release()
	s.conn.server.tasks.Done()
}

// release closes the descriptor.
func (s *socket) release() {
	l := s.loop
	l.mu.Lock()
	if !s.deaf {
		s.deaf = true
		_ = l.control(unix.EPOLL_CTL_DEL, s.id, 0)
	}
	s.here = false
	delete(l.sockets, s.id)
	if len(l.sockets) == 0 {
		l.wake() // it may be time to end
	}
	l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = unix.Close(s.fd)
	s.fd = -1
}

// TryWrite is nonBlocking's. It is called under the lock of the connection's output, and not
// when that is broken: so not after release.
func (s *socket) TryWrite(b []byte) (n int, err error) {
	for {
		n, err = writeNow(int(s.id), b)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		}
		return n, err
	}
}

// Write waits until the socket has taken everything.
func (s *socket) Write(b []byte) (n int, err error) {
	for {
		s.mu.Lock()
		if s.fd < 0 || s.ended.Load() {
			s.mu.Unlock()
			return n, net.ErrClosed
		}
		written, err := s.TryWrite(b[n:])
		s.mu.Unlock()
		if n += written; err != nil || n == len(b) {
			return n, err
		}
		if err := s.awaitRoom(); err != nil {
			return n, err
		}
	}
}

// awaitRoom waits until a write may go on.
func (s *socket) awaitRoom() error {
	s.loop.mu.Lock()
	if s.deaf || !s.here || s.ended.Load() {
		s.loop.mu.Unlock()
		return net.ErrClosed
	}
	if s.writable == nil {
		s.writable = make(chan struct{})
		s.ask()
	}
	writable := s.writable
	s.loop.mu.Unlock()
	<-writable
	return nil
}

// Close ends the connection in both directions. The loop sees it, and closes the descriptor.
func (s *socket) Close() error {
	s.mu.Lock()
	if s.fd < 0 || s.ended.Swap(true) {
		s.mu.Unlock()
		return net.ErrClosed
	}
	err := unix.Shutdown(s.fd, unix.SHUT_RDWR)
	s.mu.Unlock()
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	if s.writable != nil {
		close(s.writable)
		s.writable = nil
	}
	s.post()
	return err
}

// Read is not for others than the loop.
func (s *socket) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// LocalAddr is net.Conn's.
func (s *socket) LocalAddr() net.Addr { return s.local }

// RemoteAddr is net.Conn's.
func (s *socket) RemoteAddr() net.Addr { return s.remote }

// SetDeadline is not needed: the loop waits for nobody.
func (s *socket) SetDeadline(time.Time) error { return errors.ErrUnsupported }

// SetReadDeadline is like SetDeadline.
func (s *socket) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline is like SetDeadline.
func (s *socket) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }
