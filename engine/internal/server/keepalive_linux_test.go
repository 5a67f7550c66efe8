package server_test

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// TestAPeerThatHasVanishedIsNoticed: the system probes a silent connection as
// tcp-keepalive says, and gives it up after three probes without an answer.
func TestAPeerThatHasVanishedIsNoticed(t *testing.T) {
	for _, c := range []struct {
		setting                         string
		enabled, idle, interval, probes int
	}{{"300", 1, 300, 100, 3}, {"60", 1, 60, 20, 3}, {"0", 0, 0, 0, 0}} {
		s := open(t, server.Options{})
		configure(t, s, "tcp-keepalive", c.setting)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peer, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		end, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(end) }()
		answer := make([]byte, len("+PONG\r\n"))
		if _, err := io.WriteString(peer, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(peer, answer); err != nil {
			t.Fatal(err)
		}
		probing(t, end.(*net.TCPConn), unix.SOL_SOCKET, unix.SO_KEEPALIVE, c.enabled)
		if c.enabled == 1 {
			probing(t, end.(*net.TCPConn), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, c.idle)
			probing(t, end.(*net.TCPConn), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, c.interval)
			probing(t, end.(*net.TCPConn), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, c.probes)
		}
		_ = peer.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = l.Close()
	}
}

// probing checks an option of a socket.
func probing(t *testing.T, conn *net.TCPConn, level, option, want int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	var failed error
	if err := raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), level, option) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got != want {
		t.Errorf("option %d of level %d is %d, want %d", option, level, got, want)
	}
}
