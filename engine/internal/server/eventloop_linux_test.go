package server

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the loop does at moments that a client cannot choose.

// admitted is a connection that has been let in and is not served yet, and its peer.
func admitted(t *testing.T, s *Server) (c *conn, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if peer, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if err := peer.SetDeadline(time.Now().Add(time.Minute)); err != nil { // rather than to hang
		t.Fatal(err)
	}
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if c, err = s.admit(nc, s.adopt); err != nil {
		t.Fatal(err)
	}
	return c, peer
}

func wantEnd(t *testing.T, peer net.Conn) {
	t.Helper()
	if n, err := peer.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the peer read %d bytes, %v, want the end", n, err)
	}
}

// TestAConnectionThatBeginsWhileTheServerIsClosed is ended: its loop waits for it, though it
// has no other connection left.
func TestAConnectionThatBeginsWhileTheServerIsClosed(t *testing.T) {
	s := New(Options{})
	c, peer := admitted(t, s)
	s.mu.Lock()
	err := s.stop()
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	l := s.loop
	for woken := true; woken; runtime.Gosched() { // until the loop has seen it
		l.mu.Lock()
		woken = l.woken
		l.mu.Unlock()
	}
	c.begin()
	wantEnd(t, peer)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestAConnectionThatCannotBeWatched, since the system will not have it, is ended.
func TestAConnectionThatCannotBeWatched(t *testing.T) {
	s := New(Options{})
	c, peer := admitted(t, s)
	socket := c.loop.(*socket)
	// It cannot be added a second time.
	if err := socket.loop.control(unix.EPOLL_CTL_ADD, socket.id, 0); err != nil {
		t.Fatal(err)
	}
	c.begin()
	wantEnd(t, peer)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
