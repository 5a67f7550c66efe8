package server_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// connect opens a connection without a network and sends a request.
func connect(t *testing.T, s *server.Server, request ...string) net.Conn {
	t.Helper()
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(resp.AppendCommand(nil, request...)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func configure(t *testing.T, s *server.Server, name, value string) {
	t.Helper()
	if reply := do(t, s, "CONFIG", "SET", name, value); reply.Kind == resp.Error {
		t.Fatal(reply.Text())
	}
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, s *server.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := server.New(server.Options{})
		test(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestASubscriberAboveTheSoftLimitHasTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		configure(t, s, "client-output-buffer-limit", "pubsub 100mb 1mb 10")
		conn := connect(t, s, "SUBSCRIBE", "ch")
		defer conn.Close()
		synctest.Wait()
		for range 4 {
			do(t, s, "PUBLISH", "ch", strings.Repeat("m", 1<<20))
		}
		time.Sleep(9 * time.Second)
		if s.Connections() != 1 {
			t.Fatal("gone before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.Connections() != 0 {
			t.Error("above the soft limit for longer than it may be, and still there")
		}
	})
}

func TestASubscriberThatCatchesUpStays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		configure(t, s, "client-output-buffer-limit", "pubsub 100mb 1mb 10")
		conn := connect(t, s, "SUBSCRIBE", "ch")
		defer conn.Close()
		synctest.Wait()
		for range 4 {
			do(t, s, "PUBLISH", "ch", strings.Repeat("m", 1<<20))
		}
		time.Sleep(9 * time.Second)
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		time.Sleep(time.Minute)
		if s.Connections() != 1 {
			t.Error("disconnected although it has caught up")
		}
	})
}

func TestAClientAboveTheHardLimitGoesAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		configure(t, s, "client-output-buffer-limit", "normal 1mb 0 0")
		do(t, s, "SET", "large", strings.Repeat("v", 2<<20))
		conn := connect(t, s, "GET", "large")
		defer conn.Close()
		synctest.Wait()
		if s.Connections() != 0 {
			t.Error("still there with more output than it may have")
		}
	})
}

// TestMessagesOfKeyChangesAreBounded: who tracks keys and does not read what it
// is told is bounded as a subscriber is.
func TestMessagesOfKeyChangesAreBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		configure(t, s, "client-output-buffer-limit", "pubsub 1mb 0 0")
		conn := connect(t, s, "HELLO", "3")
		defer conn.Close()
		if _, err := conn.Write(resp.AppendCommand(nil, "CLIENT", "TRACKING", "ON", "BCAST")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		key := strings.Repeat("k", 1<<10)
		for range 20_000 {
			do(t, s, "SET", key, "v")
		}
		synctest.Wait()
		if s.Connections() != 0 {
			t.Error("20 MB of messages wait for a client that does not read")
		}
	})
}

func TestIdleClientsAreDisconnected(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		idle, waiting, listening := connect(t, s, "PING"), connect(t, s, "BLPOP", "q", "0"), connect(t, s, "SUBSCRIBE", "ch")
		defer idle.Close()
		defer waiting.Close()
		defer listening.Close()
		synctest.Wait()
		configure(t, s, "timeout", "10")
		time.Sleep(9 * time.Second)
		if s.Connections() != 3 {
			t.Fatalf("%d connections are left before the time", s.Connections())
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if s.Connections() != 2 {
			t.Errorf("%d connections are left, want those that wait for something", s.Connections())
		}
		if reply := do(t, s, "CLIENT", "LIST"); strings.Contains(reply.Text(), "cmd=ping") {
			t.Errorf("the idle one is still there:\n%s", reply.Text())
		}
	})
}

func TestAPauseEndsByItself(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		do(t, s, "CLIENT", "PAUSE", "5000", "WRITE")
		began := time.Now()
		do(t, s, "GET", "k")
		if took := time.Since(began); took != 0 {
			t.Errorf("a read waited for %v", took)
		}
		do(t, s, "SET", "k", "v")
		if took := time.Since(began); took < 5*time.Second || took > 5200*time.Millisecond {
			t.Errorf("a write waited for %v", took)
		}
		do(t, s, "CLIENT", "PAUSE", "5000")
		began = time.Now()
		do(t, s, "GET", "k")
		if took := time.Since(began); took < 5*time.Second || took > 5200*time.Millisecond {
			t.Errorf("a read waited for %v", took)
		}
	})
}

// TestAPausedClientMayQuit: what has been postponed ends the connection too.
func TestAPausedClientMayQuit(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		do(t, s, "CLIENT", "PAUSE", "5000")
		conn := connect(t, s, "QUIT")
		defer conn.Close()
		if _, err := conn.Write(resp.AppendCommand(nil, "PING")); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if string(all) != "+OK\r\n" || err != nil {
			t.Errorf("QUIT answered %q, %v", all, err)
		}
	})
}

func TestTheNumberOfClientsIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		configure(t, s, "maxclients", "1")
		first := connect(t, s, "PING")
		defer first.Close()
		synctest.Wait()
		_, err := s.Dial()
		if err == nil || !strings.Contains(err.Error(), "max number of clients reached") {
			t.Errorf("the second connection: %v", err)
		}
		if info := do(t, s, "INFO", "stats").Text(); !strings.Contains(info, "rejected_connections:1\r\n") {
			t.Error("the refusal has not been counted")
		}
		if line, err := bufio.NewReader(first).ReadString('\n'); line != "+PONG\r\n" || err != nil {
			t.Errorf("the first connection: %q, %v", line, err)
		}
	})
}
