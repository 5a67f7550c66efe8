package server_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// TestServingARequestDoesNotAllocate counts every allocation of the process
// while requests go over TCP and back: reading, running and writing them.
func TestServingARequestDoesNotAllocate(t *testing.T) {
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
	batch := resp.AppendCommand(nil, "SET", "key", "value")
	batch = resp.AppendCommand(batch, "GET", "key")
	batch = resp.AppendCommand(batch, "PING")
	want := "+OK\r\n$5\r\nvalue\r\n+PONG\r\n"
	got := make([]byte, len(want))
	run := func() {
		if _, err := conn.Write(batch); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	run()
	if n := testing.AllocsPerRun(1000, run); n > 0 {
		t.Errorf("a batch of SET, GET and PING allocates %v times", n)
	}
	if err := errors.Join(conn.Close(), s.Close(), <-served); err != nil {
		t.Error(err)
	}
}
