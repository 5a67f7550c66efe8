package faultproxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// echo serves lines: each is counted and answered by itself.
type echo struct {
	addr  string
	lines chan string
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e := &echo{listener.Addr().String(), make(chan string, 1000)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					e.lines <- line
					if _, err := io.WriteString(conn, line); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { // before this one, the proxies and the clients were closed
		must(t, listener.Close())
		serving.Wait()
	})
	return e
}

type client struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	must(c.t, err)
}

func (c *client) hears(want string) {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil || line != want+"\n" {
		c.t.Fatalf("heard %q, %v; want %q", line, err, want)
	}
}

// hearsNothing asserts that no byte comes within a moment. It can miss one that comes later, not report one wrongly.
func (c *client) hearsNothing() {
	c.t.Helper()
	must(c.t, c.conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	line, err := c.in.ReadString('\n')
	var network net.Error
	if !errors.As(err, &network) || !network.Timeout() {
		c.t.Fatalf("heard %q, %v", line, err)
	}
	must(c.t, c.conn.SetReadDeadline(time.Time{}))
}

func (c *client) isCut() {
	c.t.Helper()
	if rest, err := c.in.ReadString('\n'); err == nil {
		c.t.Fatalf("heard %q on a connection that was to be cut", rest)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWell(t *testing.T) {
	server := startEcho(t)
	c := dial(t, faultproxy.Start(t, server.addr))
	long := strings.Repeat("x", 1<<20)
	for _, line := range []string{"a", long, "b"} {
		go c.send(line) // longer than all buffers on the way
		c.hears(line)
	}
}

func TestDelayMakesLateAndNotFew(t *testing.T) {
	const delay, lines = 60 * time.Millisecond, 900 // were they delayed one after the other, it would be a minute
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	c := dial(t, p)
	p.Set(faultproxy.Fault{
		Requests: faultproxy.Direction{Delay: delay, Jitter: delay},
		Replies:  faultproxy.Direction{Delay: delay},
	})
	sent := time.Now()
	for i := range lines {
		c.send(strings.Repeat("x", i))
	}
	for i := range lines {
		c.hears(strings.Repeat("x", i)) // in order
		if took := time.Since(sent); took < 2*delay {
			t.Fatalf("an answer after %v", took)
		}
	}
	if took := time.Since(sent); took > lines*delay {
		t.Fatalf("%v for all: each waited for the one before", took)
	}
}

func TestHeldRepliesArriveLater(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	c := dial(t, p)
	p.Set(faultproxy.Fault{Replies: faultproxy.Direction{Hold: true}})
	c.send("a")
	<-server.lines
	c.hearsNothing()
	p.Restore()
	c.hears("a")
	c.send("b")
	c.hears("b")
}

func TestHeldRequestsArriveLater(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	c := dial(t, p)
	p.Set(faultproxy.Fault{Requests: faultproxy.Direction{Hold: true}})
	c.send("a")
	c.hearsNothing()
	if len(server.lines) > 0 {
		t.Fatal("the request arrived")
	}
	p.Restore()
	c.hears("a")
}

func TestDroppedRepliesNeverArrive(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	c, quiet := dial(t, p), dial(t, p)
	quiet.send("before")
	quiet.hears("before")
	p.Set(faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}})
	c.send("a")
	c.send("b")
	c.hearsNothing()
	p.Restore()
	c.isCut() // rather than hear "c" for an answer to "a"
	quiet.send("after")
	quiet.hears("after") // it lost nothing
}

func TestDroppedRequestsNeverArrive(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	c := dial(t, p)
	p.Set(faultproxy.Fault{Requests: faultproxy.Direction{Drop: true}})
	c.send("a")
	c.hearsNothing()
	p.Restore()
	c.isCut()
	if len(server.lines) > 0 {
		t.Fatal("the request arrived")
	}
}

func TestCutAfterBytes(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	c := dial(t, p)
	c.send("not counted")
	c.hears("not counted")
	p.Set(faultproxy.Fault{Replies: faultproxy.Direction{CutAfter: 5}})
	c.send("ab")
	c.hears("ab")
	c.send("cdef")
	if heard, err := io.ReadAll(c.in); string(heard) != "cd" {
		t.Fatalf("heard %q, %v; want the first 5 bytes of all", heard, err)
	}
	next := dial(t, p)
	next.send("0123456789")
	if heard, err := io.ReadAll(next.in); string(heard) != "01234" {
		t.Fatalf("heard %q, %v; want 5 bytes of a new connection", heard, err)
	}
}

func TestOnlyOneKindOfConnection(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	marked, other := dial(t, p), dial(t, p)
	marked.send("subscribe x")
	marked.hears("subscribe x")
	p.Set(faultproxy.Fault{Replies: faultproxy.Direction{Hold: true}, Only: "subscribe"})
	marked.send("a")
	marked.hearsNothing()
	other.send("b")
	other.hears("b")
	p.Restore()
	marked.hears("a")
}

func TestCutAndRetarget(t *testing.T) {
	first, second := startEcho(t), startEcho(t)
	p := faultproxy.Start(t, first.addr)
	c := dial(t, p)
	c.send("a")
	c.hears("a")
	if n := p.Cut(); n != 1 {
		t.Fatalf("%d connections were cut", n)
	}
	c.isCut()
	p.Retarget(second.addr)
	c = dial(t, p)
	c.send("b")
	c.hears("b")
	if line := <-second.lines; line != "b\n" {
		t.Fatalf("the second server got %q", line)
	}
}

func TestNobodyBehind(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := listener.Addr().String()
	must(t, listener.Close())
	dial(t, faultproxy.Start(t, addr)).isCut()
}

// TestManyTellItThings is for the race detector, and for goroutines that stay.
func TestManyTellItThings(t *testing.T) {
	server := startEcho(t)
	p := faultproxy.Start(t, server.addr)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, "x\n") // may be cut
				conn.Close()
			}
		})
		all.Go(func() {
			for range 50 {
				p.Set(faultproxy.Fault{
					Requests: faultproxy.Direction{Hold: i == 0, Jitter: time.Millisecond},
					Replies:  faultproxy.Direction{Drop: i == 1, CutAfter: int64(i)},
				})
				p.Cut()
			}
		})
	}
	all.Wait()
	p.Set(faultproxy.Fault{Requests: faultproxy.Direction{Hold: true}, Replies: faultproxy.Direction{Hold: true}})
	c := dial(t, p)
	c.send("held when the proxy closes")
}
