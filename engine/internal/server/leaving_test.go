package server_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// TestCloseDoesNotWaitForAReaderThatHasLeft: the client quits, and never reads
// the replies that it has asked for before.
func TestCloseDoesNotWaitForAReaderThatHasLeft(t *testing.T) {
	s := server.New(server.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := s.Do(context.Background(), args("SET", "big", strings.Repeat("v", 32<<20))); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(append(resp.AppendCommand(nil, "GET", "big"), resp.AppendCommand(nil, "QUIT")...)); err != nil {
		t.Fatal(err)
	}
	for quit := false; !quit; { // the connection is gone, for whoever asks, once QUIT has been run
		info, err := s.Do(context.Background(), args("INFO", "clients", "stats", "commandstats"))
		if err != nil {
			t.Fatal(err)
		}
		quit = strings.Contains(info.Str, "cmdstat_quit:calls=1") && strings.Contains(info.Str, "connected_clients:0")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

// TestAKilledClientIsGoneAtOnce: CLIENT KILL and what comes after it, in one
// batch, do not see the client any more.
func TestAKilledClientIsGoneAtOnce(t *testing.T) {
	s := open(t, server.Options{})
	victim, other := dial(t, s), dial(t, s)
	victim.send("SUBSCRIBE", "news")
	victim.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	batch := resp.AppendCommand(nil, "CLIENT", "KILL", "TYPE", "pubsub")
	batch = resp.AppendCommand(batch, "PUBLISH", "news", "hello")
	batch = resp.AppendCommand(batch, "CLIENT", "LIST", "TYPE", "pubsub")
	if _, err := other.conn.Write(batch); err != nil {
		t.Fatal(err)
	}
	other.expect(":1\r\n:0\r\n$0\r\n\r\n")
	victim.expectClosed()
}

// TestASkippedReplyMayTakeItsTime: CLIENT REPLY SKIP before a request that
// blocks holds back that request's reply, and no other's.
func TestASkippedReplyMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{})
		c, other := dial(t, s), dial(t, s)
		c.send("CLIENT", "REPLY", "SKIP")
		c.send("BLPOP", "list", "0")
		c.send("PING")
		synctest.Wait()
		other.send("RPUSH", "list", "x")
		other.expect(":1\r\n")
		c.expect("+PONG\r\n")
	})
}

// TestResetIsHeard: it ends CLIENT REPLY OFF, and is answered.
func TestResetIsHeard(t *testing.T) {
	c := dial(t, open(t, server.Options{}))
	c.send("CLIENT", "REPLY", "OFF")
	c.send("RESET")
	c.expect("+RESET\r\n")
	c.send("PING")
	c.expect("+PONG\r\n")
}

// TestTheBoundOfArgumentsCanBeSet: CONFIG SET holds for what is received after.
func TestTheBoundOfArgumentsCanBeSet(t *testing.T) {
	c := dial(t, open(t, server.Options{}))
	c.send("CONFIG", "SET", "proto-max-bulk-len", "1mb")
	c.expect("+OK\r\n")
	if _, err := c.conn.Write([]byte("*2\r\n$4\r\nECHO\r\n$1048577\r\n")); err != nil {
		t.Fatal(err)
	}
	c.expect("-ERR Protocol error: invalid bulk length\r\n")
	c.expectClosed()
}
