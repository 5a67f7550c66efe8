package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// client is a connection that a test drives by hand.
type client struct {
	t    *testing.T
	conn net.Conn
	read *bufio.Reader
}

func open(t *testing.T, options server.Options) *server.Server {
	t.Helper()
	s := server.New(options)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, s *server.Server) *client {
	t.Helper()
	conn, err := s.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(args ...string) {
	c.t.Helper()
	if _, err := c.conn.Write(resp.AppendCommand(nil, args...)); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads the reply and compares its bytes.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.read, got); err != nil {
		c.t.Fatalf("waiting for %q: %v (got %q)", want, err, got)
	}
	if string(got) != want {
		c.t.Fatalf("got %q, want %q", got, want)
	}
}

// skipTo reads up to and including a line.
func (c *client) skipTo(want string) {
	c.t.Helper()
	for line := ""; line != want; {
		var err error
		if line, err = c.read.ReadString('\n'); err != nil {
			c.t.Fatalf("waiting for %q: %v", want, err)
		}
	}
}

func (c *client) expectClosed() {
	c.t.Helper()
	if b, err := c.read.ReadByte(); err == nil {
		c.t.Fatalf("got %q, want the connection closed", b)
	}
}

func TestRepliesComeInOrderOfAPipeline(t *testing.T) {
	c := dial(t, open(t, server.Options{}))
	const n = 10_000
	var batch []byte
	for range n {
		batch = resp.AppendCommand(batch, "INCR", "n")
	}
	if _, err := c.conn.Write(batch); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= n; i++ {
		c.expect(fmt.Sprintf(":%d\r\n", i))
	}
}

func TestRequestsBehindABlockedOneWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{})
		c, other := dial(t, s), dial(t, s)
		c.send("BLPOP", "list", "0")
		c.send("PING")
		c.send("PING", "again")
		synctest.Wait()
		other.send("RPUSH", "list", "x")
		other.expect(":1\r\n")
		c.expect("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n+PONG\r\n$5\r\nagain\r\n")
		c.send("PING") // the connection reads on as before
		c.expect("+PONG\r\n")
	})
}

func TestBlockedClientsAreServedInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{})
		var waiting []*client
		for range 5 {
			c := dial(t, s)
			c.send("BLPOP", "a", "b", "0")
			synctest.Wait()
			waiting = append(waiting, c)
		}
		other := dial(t, s)
		other.send("RPUSH", "b", "0", "1")
		other.expect(":2\r\n")
		other.send("RPUSH", "a", "2", "3", "4")
		other.expect(":3\r\n")
		for i, c := range waiting {
			key := "a"
			if i < 2 {
				key = "b"
			}
			c.expect(fmt.Sprintf("*2\r\n$1\r\n%s\r\n$1\r\n%d\r\n", key, i))
		}
	})
}

func TestBlockingTimesOutInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, open(t, server.Options{}))
		began := time.Now()
		c.send("BLPOP", "list", "90")
		c.expect("*-1\r\n")
		if waited := time.Since(began); waited != 90*time.Second {
			t.Errorf("waited %v, want 90s", waited)
		}
	})
}

func TestABlockedClientThatLeavesTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{})
		gone, other := dial(t, s), dial(t, s)
		gone.send("BLPOP", "list", "0")
		synctest.Wait()
		if err := gone.conn.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		other.send("RPUSH", "list", "x")
		other.expect(":1\r\n")
		other.send("LLEN", "list")
		other.expect(":1\r\n")
	})
}

func TestKeysExpireWithoutBeingLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dial(t, open(t, server.Options{}))
		for i := range 500 {
			c.send("SET", fmt.Sprintf("k%d", i), "v", "PX", "1500")
			c.expect("+OK\r\n")
		}
		c.send("DBSIZE")
		c.expect(":500\r\n")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		c.send("DBSIZE")
		c.expect(":0\r\n")
	})
}

func TestMessagesReachSubscribersInOrder(t *testing.T) {
	s := open(t, server.Options{})
	subscriber, publisher := dial(t, s), dial(t, s)
	subscriber.send("SUBSCRIBE", "news")
	subscriber.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	for i := range 1000 {
		publisher.send("PUBLISH", "news", fmt.Sprintf("%03d", i))
		publisher.expect(":1\r\n")
	}
	for i := range 1000 {
		subscriber.expect(fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\n%03d\r\n", i))
	}
}

func TestAMessageToOneselfStaysOutOfExecsReply(t *testing.T) {
	c := dial(t, open(t, server.Options{}))
	c.send("HELLO", "3")
	c.skipTo("modules\r\n")
	c.expect("*0\r\n")
	c.send("SUBSCRIBE", "me")
	c.expect(">3\r\n$9\r\nsubscribe\r\n$2\r\nme\r\n:1\r\n")
	c.send("MULTI")
	c.expect("+OK\r\n")
	c.send("PUBLISH", "me", "hi")
	c.expect("+QUEUED\r\n")
	c.send("PING")
	c.expect("+QUEUED\r\n")
	c.send("EXEC")
	c.expect("*2\r\n:1\r\n+PONG\r\n>3\r\n$7\r\nmessage\r\n$2\r\nme\r\n$2\r\nhi\r\n")
}

// A client may write far more than any buffer holds before it reads at all.
func TestAHugePipelineNeedsNoReaderOverTCP(t *testing.T) {
	s := open(t, server.Options{})
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
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("v", 4000)
	one := resp.AppendCommand(nil, "ECHO", value)
	const n = 5000 // 20 MB each way
	for range n {
		if _, err := conn.Write(one); err != nil {
			t.Fatal(err)
		}
	}
	got, err := io.CopyN(io.Discard, conn, int64(n*(len(value)+len("$4000\r\n\r\n"))))
	if err != nil {
		t.Fatalf("after %d bytes: %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve returned %v after Close, want nil", err)
	}
}

func TestClientsBeyondTheLimitAreToldSo(t *testing.T) {
	s := open(t, server.Options{MaxClients: 1})
	dial(t, s)
	if _, err := s.Dial(); err == nil {
		t.Fatal("a second client was let in")
	}
}

func TestGarbageIsAnsweredAndTheConnectionClosed(t *testing.T) {
	for name, garbage := range map[string]string{
		"negative length": "*1\r\n$-5\r\n",
		"not a length":    "*x\r\n",
		"wrong type":      "*1\r\n:1\r\n",
		"open quotes":     "SET \"a\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, open(t, server.Options{}))
			if _, err := c.conn.Write([]byte(garbage)); err != nil {
				t.Fatal(err)
			}
			c.expect("-ERR Protocol error: ")
			if _, err := c.read.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			c.expectClosed()
		})
	}
}

func TestAPasswordIsNeeded(t *testing.T) {
	c := dial(t, open(t, server.Options{Password: "secret"}))
	c.send("GET", "k")
	c.expect("-NOAUTH Authentication required.\r\n")
	c.send("AUTH", "wrong")
	c.expect("-WRONGPASS ")
	if _, err := c.read.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c.send("AUTH", "secret")
	c.expect("+OK\r\n")
	c.send("GET", "k")
	c.expect("$-1\r\n")
}

func TestDoWaitsAndCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, server.Options{})
		popped := make(chan resp.Value)
		go func() {
			value, err := s.Do(context.Background(), args("BLPOP", "list", "0"))
			if err != nil {
				t.Error(err)
			}
			popped <- value
		}()
		synctest.Wait()
		if _, err := s.Do(context.Background(), args("RPUSH", "list", "x")); err != nil {
			t.Fatal(err)
		}
		if value := <-popped; len(value.Elems) != 2 || value.Elems[1].Str != "x" {
			t.Errorf("got %v", value)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := s.Do(ctx, args("BLPOP", "list", "0")); err != context.DeadlineExceeded { //nolint:errorlint // the very error
			t.Errorf("got %v, want the context's error", err)
		}
		if _, err := s.Do(context.Background(), args("RPUSH", "list", "y")); err != nil {
			t.Fatal(err)
		}
		if value, err := s.Do(context.Background(), args("LLEN", "list")); err != nil || value.Int != 1 {
			t.Errorf("LLEN = %v, %v: a cancelled wait took an element", value, err)
		}
	})
}

func TestCallsInProcessLeaveNothingForTheNext(t *testing.T) {
	s := open(t, server.Options{})
	ctx := context.Background()
	for _, call := range [][]string{{"SELECT", "5"}, {"MULTI"}, {"WATCH", "k"}, {"SUBSCRIBE", "c"}, {"HELLO", "3"}} {
		if _, err := s.Do(ctx, args(call...)); err != nil {
			t.Fatal(err)
		}
		value, err := s.Do(ctx, args("SET", "k", "v"))
		if err != nil || value.Str != "OK" {
			t.Fatalf("after %v: SET answers %v, %v", call, value, err)
		}
	}
	if value, err := s.Do(ctx, args("DBSIZE")); err != nil || value.Int != 1 {
		t.Errorf("DBSIZE = %v, %v, want 1: all calls are on database 0", value, err)
	}
}

func TestKillingAClientClosesIt(t *testing.T) {
	s := open(t, server.Options{})
	victim, killer := dial(t, s), dial(t, s)
	victim.send("CLIENT", "ID")
	victim.expect(":1\r\n")
	killer.send("CLIENT", "KILL", "ID", "1")
	killer.expect(":1\r\n")
	victim.expectClosed()
}

func args(words ...string) [][]byte {
	b := make([][]byte, len(words))
	for i, w := range words {
		b[i] = []byte(w)
	}
	return b
}
