package server

import (
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"
)

// Pipe returns the two ends of a connection in memory. Unlike net.Pipe it has
// buffers, as a socket has, so that both ends may write first and read later.
// The client's never waits: the engine bounds what it leaves unread. The
// server's waits when the client does not read.
func Pipe() (client, server net.Conn) {
	const mostUnreadBytes = 1 << 20
	toServer, toClient := newStream(math.MaxInt), newStream(mostUnreadBytes)
	return &pipeEnd{in: toClient, out: toServer}, &pipeEnd{in: toServer, out: toClient}
}

// stream is the bytes on their way in one direction.
type stream struct {
	mu       sync.Mutex
	data     []byte
	read     int           // how much of data has been read
	changed  chan struct{} // closed and renewed at every change that a reader waits for
	waiting  bool
	most     int           // how much may be unread
	room     chan struct{} // closed when a writer may go on; nil when none waits
	closed   bool
	deadline deadline
}

func newStream(most int) *stream { return &stream{changed: make(chan struct{}), most: most} }

// signal wakes the reader. mu is held.
func (s *stream) signal() {
	if s.waiting {
		s.waiting = false
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// write waits until the stream has taken all of b.
func (s *stream) write(b []byte) (n int, err error) {
	for {
		taken, room, err := s.put(b[n:], true)
		n += taken
		if room == nil {
			return n, err
		}
		<-room
	}
}

// put takes what there is room for. If that is not all, and the caller wants to
// wait, it returns what to wait for.
func (s *stream) put(b []byte, wait bool) (n int, room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, io.ErrClosedPipe
	}
	if s.read > len(s.data)/2 || s.read == len(s.data) {
		s.data, s.read = s.data[:copy(s.data, s.data[s.read:])], 0
	}
	n = min(len(b), max(s.most-(len(s.data)-s.read), 0))
	s.data = append(s.data, b[:n]...)
	s.signal()
	if n == len(b) || !wait {
		return n, nil, nil
	}
	if s.room == nil {
		s.room = make(chan struct{})
	}
	return n, s.room, nil
}

// makeRoom wakes the writers. mu is held.
func (s *stream) makeRoom() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

func (s *stream) readInto(b []byte) (int, error) {
	for {
		s.mu.Lock()
		switch {
		case s.deadline.passed():
			s.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case s.read < len(s.data):
			n := copy(b, s.data[s.read:])
			s.read += n
			if s.read == len(s.data) && cap(s.data) > keepBytes {
				s.data, s.read = nil, 0
			}
			s.makeRoom()
			s.mu.Unlock()
			return n, nil
		case s.closed:
			s.mu.Unlock()
			return 0, io.EOF
		}
		s.waiting = true
		changed := s.changed
		s.mu.Unlock()
		<-changed
	}
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.deadline.stop()
	s.signal()
	s.makeRoom()
}

// deadline is when a read gives up.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (s *stream) setDeadline(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline.stop()
	s.deadline.at = at
	if at.IsZero() || s.closed {
		return
	}
	if wait := time.Until(at); wait > 0 {
		s.deadline.timer = time.AfterFunc(wait, func() {
			s.mu.Lock()
			s.signal()
			s.mu.Unlock()
		})
		return
	}
	s.signal()
}

// pipeEnd is one end of a Pipe.
type pipeEnd struct{ in, out *stream }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe:0" }

func (p *pipeEnd) Read(b []byte) (int, error) { return p.in.readInto(b) }

func (p *pipeEnd) Write(b []byte) (int, error) { return p.out.write(b) }

// TryWrite is nonBlocking's.
func (p *pipeEnd) TryWrite(b []byte) (int, error) {
	n, _, err := p.out.put(b, false)
	return n, err
}

func (p *pipeEnd) Close() error {
	p.in.close()
	p.out.close()
	return nil
}

func (p *pipeEnd) LocalAddr() net.Addr  { return pipeAddr{} }
func (p *pipeEnd) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipeEnd) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

func (p *pipeEnd) SetReadDeadline(t time.Time) error {
	p.in.setDeadline(t)
	return nil
}

// SetWriteDeadline does nothing: a client's write never waits, and the engine
// sets none.
func (p *pipeEnd) SetWriteDeadline(time.Time) error { return nil }
