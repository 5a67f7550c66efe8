package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// The link to the primary of a replica: one goroutine, which dials, speaks the handshake, reads the snapshot, and
// runs the stream in batches, each under the engine's lock, like those of any connection. When the connection
// breaks it begins again after a second, until another link takes its place or the server is closed.
//
//	link.go      the link's life, and the stream
//	linkload.go  the way to the stream: dialling, the handshake, the snapshot
//	sync.go      the other side: the snapshot that is sent to replicas
//
// Invariant R3: whatever a link tells the machine it tells under the lock, and only as long as it is the server's
// link (current).

const (
	linkRetry = time.Second // before it dials again
	ackEvery  = time.Second
)

// link is the server's link to the primary.
type link struct {
	server *Server
	to     *exec.Link
	ctx    context.Context // ends when the link is over
	cancel context.CancelFunc

	// Guarded by the engine's lock.
	nc      net.Conn
	session *exec.Session
	told    string // the trouble that was last told

	// The goroutine's own.
	timeout  time.Duration // repl-timeout
	requests *resp.Requests
	heard    []byte // what the requests were cut from, and was not run
	ackDue   time.Time
	silent   time.Time // since when
}

// errOver is for a link that is not the server's any more.
var errOver = errors.New("the link is over")

// divergedError is for a stream that this server cannot follow.
type divergedError struct{ err error }

func (e divergedError) Error() string {
	return e.err.Error() + "; the link stops here, so that the data does not become another than the primary's: " +
		"see to the cause, then say REPLICAOF again"
}

func (e divergedError) Unwrap() error { return e.err }

// relink makes the server's link the one that the machine wants. The lock is held.
func (s *Server) relink() {
	s.link.end()
	s.link = nil
	to := s.machine.Link()
	if to == nil || s.closed {
		return
	}
	l := &link{server: s, to: to}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	s.link = l
	s.tasks.Go(l.run)
}

// end ends a link, if there is one. The lock is held.
func (l *link) end() {
	if l == nil {
		return
	}
	l.cancel()
	l.hangUp()
	if l.session != nil {
		delete(l.server.bySession, l.session)
	}
}

// deliver, hangUp, settle and lose make the link the sink of the session that runs the stream, to which nothing
// is ever told.
func (l *link) deliver() {}

func (l *link) hangUp() {
	switch nc := l.nc.(type) {
	case nil:
	case *tls.Conn:
		_ = nc.NetConn().Close() // or it would write to its peer first
	default:
		_ = nc.Close() // its reader sees that
	}
}

func (l *link) settle() {}

func (l *link) lose() {}

// current reports whether the link is still the server's. The lock is held.
func (l *link) current() bool { return l.server.link == l && !l.server.closed }

func (l *link) run() {
	for {
		err := l.follow()
		if !l.down(err) {
			return
		}
		select {
		case <-time.After(linkRetry):
		case <-l.ctx.Done():
			return
		}
	}
}

// down tells that the connection has come to its end, and reports whether to try again.
func (l *link) down(why error) (again bool) {
	s := l.server
	s.lockAtRest()
	if !l.current() {
		s.mu.Unlock()
		return false
	}
	if l.session != nil {
		delete(s.bySession, l.session)
		l.session = nil
	}
	var diverged divergedError
	if errors.As(why, &diverged) {
		l.to.Stop(nowUs(), why)
	} else {
		l.to.Down(nowUs(), why)
	}
	if text := why.Error(); text != l.told {
		s.warn("the link to the primary %s: %s", l.to, text)
		l.told = text
	}
	l.nc = nil
	after := s.carryOut()
	again = l.current() && !l.to.Stopped()
	s.mu.Unlock()
	after.settle()
	return again
}

// follow is one connection, from dialling to its end.
func (l *link) follow() error {
	nc, err := l.dial()
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }() // it may be closed already
	in := bufio.NewReaderSize(nc, 64<<10)
	answer, err := l.handshake(nc, in)
	if err != nil {
		return err
	}
	from := io.Reader(in)
	if answer.Full {
		from, err = l.load(nc, in, answer)
	} else {
		err = l.locked(func() error {
			l.server.note("goes on with the stream of the primary %s at offset %d", l.to, answer.Offset)
			l.to.Continue(nowUs(), answer.ID, address(nc.RemoteAddr()), address(nc.LocalAddr()))
			return nil
		})
	}
	if err != nil {
		return err
	}
	return l.stream(nc, from)
}

// locked does something with the machine, if the link is still the server's.
func (l *link) locked(do func() error) error {
	s := l.server
	s.lockAtRest()
	if !l.current() {
		s.mu.Unlock()
		return errOver
	}
	err := do()
	if session := l.to.Session(); session != l.session {
		if l.session != nil {
			delete(s.bySession, l.session)
		}
		if l.session = session; session != nil {
			s.bySession[session] = l
		}
	}
	after := s.carryOut()
	s.mu.Unlock()
	after.settle()
	return err
}

// stream runs what comes, and acknowledges it, until the connection breaks.
func (l *link) stream(nc net.Conn, from io.Reader) error {
	l.requests, l.heard = &resp.Requests{Memory: &l.server.spares, Trusted: true}, nil
	l.silent = time.Now()
	if err := l.acknowledge(nc); err != nil {
		return err
	}
	for {
		space := l.requests.Space()
		n, err := from.Read(space)
		if n > 0 {
			l.silent = time.Now()
			l.heard = append(l.heard, space[:n]...)
			l.requests.Advance(n)
			asked := false
			if err := l.locked(func() (err error) {
				asked, err = l.apply()
				return err
			}); err != nil {
				return err
			}
			if asked || !time.Now().Before(l.ackDue) {
				if err := l.acknowledge(nc); err != nil {
					return err
				}
			}
			continue
		}
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return lost(err)
		case time.Since(l.silent) > l.timeout:
			return fmt.Errorf("the primary was silent for %v (repl-timeout): it hangs, is cut off, or is a replica itself, in a circle with this one", l.timeout)
		}
		if err := l.acknowledge(nc); err != nil {
			return err
		}
	}
}

// apply runs the requests that have arrived. The lock is held.
func (l *link) apply() (asked bool, err error) {
	now, whole := nowUs(), 0
	l.requests.MaxBulkBytes = l.server.machine.MaxBulkBytes()
	for err == nil {
		var args [][]byte
		var ok, done bool
		if args, ok, err = l.requests.Next(); err != nil {
			err = divergedError{fmt.Errorf("the stream is damaged at offset %d: %w", l.to.Offset()+int64(whole), err)}
			break
		}
		if !ok {
			break
		}
		l.session.Large = l.requests.Large()
		if done, err = l.to.Apply(now, args); err != nil {
			err = divergedError{fmt.Errorf("a request of the stream behind offset %d cannot be run: %w", l.to.Offset()+int64(whole), err)}
			break
		}
		if done {
			whole = len(l.heard) - l.requests.Buffered()
		}
	}
	l.session.Large = nil
	l.to.Advance(now, l.heard[:whole])
	l.heard = append(l.heard[:0], l.heard[whole:]...)
	return l.to.TakeAck(), err
}

// acknowledge tells the primary how much was heard, and sets when to look up from reading the next time.
func (l *link) acknowledge(nc net.Conn) error {
	s := l.server
	s.mu.Lock()
	offset := l.to.Offset()
	l.timeout = time.Duration(s.machine.Settings().Int("repl-timeout")) * time.Second
	s.mu.Unlock()
	now := time.Now()
	l.ackDue = now.Add(ackEvery)
	if err := nc.SetWriteDeadline(now.Add(l.timeout)); err != nil {
		return lost(err)
	}
	if _, err := nc.Write(replication.AppendRequest(nil, "REPLCONF", "ACK", strconv.FormatInt(offset, 10))); err != nil {
		return lost(err)
	}
	if err := nc.SetReadDeadline(l.ackDue); err != nil {
		return lost(err)
	}
	return nil
}

// lost is the error of a connection that has broken.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return errors.New("the connection was closed")
	}
	return fmt.Errorf("the connection was lost: %w", err)
}

// Follow makes the server a replica of whom its settings name. It is called once, when what was kept is loaded.
func (s *Server) Follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.machine.Follow(nowUs())
	after := s.carryOut()
	s.tasks.Go(after.settle)
}

// trimLine is a line without its end.
func trimLine(line string) string { return strings.TrimRight(line, "\r\n") }
