package server_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// Many peers, or patient ones. What they cost is bounded, and is given back.

// memoryInUse is that of live objects and of stacks.
func memoryInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one shrinks stacks, the second one counts it
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// openFiles counts the descriptors of the process; 0 where that cannot be known.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd") // not every system has it
	return len(entries)
}

// TestTenThousandConnectionsLeaveNothing: some ask, some say half of something, some
// nothing at all. Most do not say goodbye either.
func TestTenThousandConnectionsLeaveNothing(t *testing.T) {
	const waves, atOnce = 25, 400
	s := open(t, server.Options{})
	addr := listen(t, s)
	wave := func() {
		conns := make([]net.Conn, atOnce)
		for i := range conns {
			said := []string{
				"", "*2\r\n$3\r\nGET\r\n$10\r\nabc", "*1\r\n$4\r\nPING\r\n", "*1\r\n$-7\r\n", "*100\r\n", "SUBSCRIBE c\r\n", "BLPOP q 0\r\n",
			}[i%7]
			var err error
			if conns[i], err = net.Dial(addr.Network(), addr.String()); err != nil {
				t.Fatal(err)
			}
			if _, err = io.WriteString(conns[i], said); err != nil {
				t.Fatal(err)
			}
		}
		for i, conn := range conns {
			if i%20 > 0 {
				_ = conn.(*net.TCPConn).SetLinger(0) // a reset
			}
			_ = conn.Close()
		}
		awaitConnections(t, s, 0)
	}
	wave()
	memory, goroutines, files := memoryInUse(), runtime.NumGoroutine(), openFiles()
	for range waves - 1 {
		wave()
	}
	if n := runtime.NumGoroutine(); n > goroutines+5 {
		t.Errorf("%d goroutines, and %d before", n, goroutines)
	}
	if n := openFiles(); n > files+5 {
		t.Errorf("%d files are open, and %d before", n, files)
	}
	if grown := memoryInUse() - memory; grown > 4<<20 {
		t.Errorf("%d bytes more are in use than before", grown)
	}
}

// TestAQuietConnectionIsSmall, however much has gone over it, and though it is in the
// middle of a request. The peers' ends are in the figure.
func TestAQuietConnectionIsSmall(t *testing.T) {
	const peers = 1000
	for name, c := range map[string]struct {
		sent      string
		answered  int
		mostBytes int64
	}{
		"a word":         {"PING\r\n", len("+PONG\r\n"), 16 << 10},
		"a pipeline":     {strings.Repeat("PING\r\n", 2000), 2000 * len("+PONG\r\n"), 16 << 10},
		"a long reply":   {"LRANGE list 0 -1\r\n", len("*600\r\n") + 600*len("$64\r\n\r\n") + 600*64, 16 << 10},
		"half a request": {"PING\r\n*3\r\n$3\r\nSET\r\n$3", len("+PONG\r\n"), 24 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, server.Options{})
			addr := listen(t, s)
			setUp(t, s)
			conns, reply := make([]net.Conn, peers), make([]byte, c.answered)
			exchange := func(i int) {
				conns[i] = dialTCP(t, addr, "PING")
				if _, err := io.ReadFull(conns[i], reply[:len("+PONG\r\n")]); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conns[i], c.sent); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(conns[i], reply); err != nil {
					t.Fatal(err)
				}
			}
			exchange(0)
			before := memoryInUse()
			for i := 1; i < peers; i++ {
				exchange(i)
			}
			if each := (memoryInUse() - before) / (peers - 1); each > c.mostBytes {
				t.Errorf("a connection costs %d bytes", each)
			}
			runtime.KeepAlive(conns)
		})
	}
}

// TestAByteASecondIsEnough: a slow client is not an idle one, and gets its answer. One
// that stops in the middle of a request is idle.
func TestAByteASecondIsEnough(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *server.Server) {
		configure(t, s, "timeout", "10")
		slow, silent := connect(t, s, "PING"), connect(t, s, "PING")
		defer slow.Close()
		defer silent.Close()
		request := resp.AppendCommand(nil, "SET", "key", "value")
		if _, err := silent.Write(request[:len(request)-3]); err != nil {
			t.Fatal(err)
		}
		for _, b := range request {
			time.Sleep(time.Second)
			if _, err := slow.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		want := "+PONG\r\n+OK\r\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(slow, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v", got, err)
		}
		if n := s.Connections(); n != 1 {
			t.Errorf("%d connections are left, want the slow one only", n)
		}
	})
}

// TestAPipelineOfLongRepliesWaitsForItsReader: what a client has asked for in one go is
// not all answered in memory if it does not read.
func TestAPipelineOfLongRepliesWaitsForItsReader(t *testing.T) {
	t.Parallel()
	const replies, size = 40, 8 << 20
	inBubble(t, func(t *testing.T, s *server.Server) {
		do(t, s, "SET", "big", strings.Repeat("v", size))
		conn := connect(t, s, "PING")
		defer conn.Close()
		if _, err := io.WriteString(conn, strings.Repeat("GET big\r\n", replies)+"PING\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var calls int
		stats := do(t, s, "INFO", "commandstats").Text()
		_, rest, _ := strings.Cut(stats, "cmdstat_get:calls=")
		if _, err := fmt.Sscanf(rest, "%d,", &calls); err != nil {
			t.Fatalf("%v: %s", err, stats)
		}
		if calls*size > 80<<20 {
			t.Errorf("%d MB of replies are in memory", calls*size>>20)
		}
		do(t, s, "SET", "big", "small") // others go on meanwhile
		whole := len("$8388608\r\n\r\n") + size
		want := len("+PONG\r\n") + calls*whole + (replies-calls)*len("$5\r\nsmall\r\n") + len("+PONG\r\n")
		if n, err := io.CopyN(io.Discard, conn, int64(want)); err != nil {
			t.Errorf("after %d of %d bytes: %v", n, want, err)
		}
		synctest.Wait()
		if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("+PONG\r\n"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "+PONG\r\n" {
			t.Errorf("after it: %q, %v", got, err)
		}
	})
}

// TestAPeerThatHasClosedItsHalf gets the replies to what it has sent.
func TestAPeerThatHasClosedItsHalf(t *testing.T) {
	s := open(t, server.Options{})
	conn := dialTCP(t, listen(t, s), "PING")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(conn); string(all) != "+PONG\r\n" || err != nil {
		t.Errorf("got %q, %v", all, err)
	}
	awaitConnections(t, s, 0)
}
