package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// Peers that do not do their part: that never read, never finish, or are not
// wanted. None of them may hold up or fill up the engine.

// listen serves TCP on a free port of the loopback interface.
func listen(t *testing.T, s *server.Server) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Addr()
}

// dialTCP connects, and sends one request.
func dialTCP(t *testing.T, to net.Addr, request ...string) net.Conn {
	t.Helper()
	conn, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write(resp.AppendCommand(nil, request...)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func do(t *testing.T, s *server.Server, words ...string) resp.Value {
	t.Helper()
	value, err := s.Do(context.Background(), args(words...))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// awaitConnections waits until so many connections are left.
func awaitConnections(t *testing.T, s *server.Server, want int) {
	t.Helper()
	for began := time.Now(); s.Connections() != want; {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d connections, want %d", s.Connections(), want)
		}
		do(t, s, "PING")
	}
}

// publishUntilDropped publishes to the channel until it has no subscriber left.
func publishUntilDropped(t *testing.T, s *server.Server, channel string) {
	t.Helper()
	message := strings.Repeat("m", 1<<20)
	for sent := 0; do(t, s, "PUBLISH", channel, message).Int > 0; sent++ {
		if sent > 200 {
			t.Fatalf("the subscriber has %d MB of unread messages and is still there", sent)
		}
	}
}

func TestASubscriberThatNeverReadsIsDropped(t *testing.T) {
	s := open(t, server.Options{})
	dialTCP(t, listen(t, s), "SUBSCRIBE", "news")
	for do(t, s, "PUBSUB", "NUMSUB", "news").Elems[1].Int == 0 {
		continue
	}
	publishUntilDropped(t, s, "news")
	awaitConnections(t, s, 0)
}

func TestASubscriberInProcessThatNeverReadsIsDropped(t *testing.T) {
	s := open(t, server.Options{})
	c := dial(t, s)
	c.send("SUBSCRIBE", "news")
	c.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	publishUntilDropped(t, s, "news")
	awaitConnections(t, s, 0)
}

// TestAKilledClientNeedNotRead: nobody waits for the replies of a client that
// is killed, least of all for ever.
func TestAKilledClientNeedNotRead(t *testing.T) {
	s := open(t, server.Options{})
	do(t, s, "SET", "big", strings.Repeat("v", 32<<20))
	dialTCP(t, listen(t, s), "GET", "big")
	for !strings.Contains(do(t, s, "CLIENT", "LIST").Str, "cmd=get") {
		continue
	}
	if killed := do(t, s, "CLIENT", "KILL", "TYPE", "normal").Int; killed != 1 {
		t.Fatalf("killed %d clients, want 1", killed)
	}
	awaitConnections(t, s, 0)
}

// TestARefusedConnectionHoldsUpNobody: the one that is told that there is no
// room does not read it.
func TestARefusedConnectionHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{MaxClients: 1})
		c := dial(t, s)
		peer, end := net.Pipe()
		defer peer.Close()
		refused := make(chan error)
		go func() { refused <- s.ServeConn(end) }()
		synctest.Wait()
		began := time.Now()
		c.send("PING")
		c.expect("+PONG\r\n")
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the engine stood still for %v", waited)
		}
		if <-refused == nil {
			t.Error("a second client was let in")
		}
	})
}

// remote is a connection from another machine.
type remote struct{ net.Conn }

func (remote) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 1), Port: 4711} }

// TestWithoutAPasswordOtherMachinesAreRefused: what counts is the password that
// there is now.
func TestWithoutAPasswordOtherMachinesAreRefused(t *testing.T) {
	s := open(t, server.Options{Password: "secret"})
	for _, step := range []struct{ password, protected, want string }{
		{"secret", "yes", "-NOAUTH"}, {"", "yes", "-DENIED"}, {"", "no", "+PONG"}, {"other", "yes", "-NOAUTH"},
	} {
		do(t, s, "CONFIG", "SET", "requirepass", step.password, "protected-mode", step.protected)
		peer, end := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(remote{end}) }()
		got := make([]byte, len(step.want))
		go func() { _, _ = peer.Write([]byte("PING\r\n")) }() // not taken when refused
		if _, err := io.ReadFull(peer, got); err != nil || string(got) != step.want {
			t.Errorf("password %q: got %q, %v, want %q", step.password, got, err, step.want)
		}
		_ = peer.Close()
		if err := <-served; (err != nil) != (step.want == "-DENIED") {
			t.Errorf("password %q: ServeConn returned %v", step.password, err)
		}
	}
}

// TestAReplyIsNotLostToACancelledContext: what has been taken off the list is
// returned, though the context has ended as well.
func TestAReplyIsNotLostToACancelledContext(t *testing.T) {
	s := open(t, server.Options{})
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		answers := make(chan resp.Value, 1)
		go func() {
			value, err := s.Do(ctx, args("BLPOP", "list", "0"))
			if err == nil && len(value.Elems) != 2 {
				t.Errorf("got %v without an error", value)
			}
			answers <- value
		}()
		for !strings.Contains(do(t, s, "INFO", "clients").Str, "blocked_clients:1") {
			continue
		}
		do(t, s, "RPUSH", "list", "x")
		cancel()
		if value := <-answers; len(value.Elems) != 2 {
			t.Fatalf("got %v: the element is gone", value)
		}
	}
}

// flaky is a listener whose first calls of Accept fail for the moment.
type flaky struct {
	net.Listener
	failures int
}

type momentary struct{ error }

func (momentary) Timeout() bool   { return false }
func (momentary) Temporary() bool { return true }

func (f *flaky) Accept() (net.Conn, error) {
	if f.failures > 0 {
		f.failures--
		return nil, momentary{errors.New("too many open files")}
	}
	return f.Listener.Accept()
}

func TestServingSurvivesAShortageOfFiles(t *testing.T) {
	s := open(t, server.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(&flaky{l, 3}) }()
	conn := dialTCP(t, l.Addr(), "PING")
	got := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "+PONG\r\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := errors.Join(s.Close(), <-served); err != nil {
		t.Error(err)
	}
}

// TestAConnectionEndsAtItsOwnersDeadline: a deadline that the engine has not
// set means that the owner wants the connection to end.
func TestAConnectionEndsAtItsOwnersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{})
		peer, end := net.Pipe()
		defer peer.Close()
		if err := end.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := s.ServeConn(end); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRequestsBehindABlockedOneAreBounded: a client that waits may not pile up
// requests without end meanwhile.
func TestRequestsBehindABlockedOneAreBounded(t *testing.T) {
	s := open(t, server.Options{})
	s.BoundWaiting(16 << 20)
	conn := dialTCP(t, listen(t, s), "BLPOP", "list", "0")
	ping := bytes.Repeat([]byte("PING\r\n"), 1<<18)
	for sent := 0; ; sent += len(ping) {
		if _, err := conn.Write(ping); err != nil {
			break
		}
		if sent > 64<<20 {
			t.Fatalf("%d bytes are waiting, and it goes on", sent)
		}
	}
	awaitConnections(t, s, 0)
}
