package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-io/signalbox/internal/cases"
)

// cutter stands between replicas and their primary: it cuts its first connection when so many bytes have come from the
// primary, and passes the second one on, perhaps to another primary.
type cutter struct {
	listener net.Listener
	after    int
	targets  [2]string
	passing  sync.WaitGroup

	mu    sync.Mutex
	heard [2][]byte // of the first bytes of each connection
	conns []net.Conn
	over  bool
}

func startCutter(t *testing.T, after int, first, then string) *cutter {
	t.Helper()
	c := &cutter{listener: listenAt(t, "127.0.0.1:0"), after: after, targets: [2]string{first, then}}
	c.passing.Go(func() {
		for i := range 2 {
			replica, err := c.listener.Accept()
			if err != nil {
				return
			}
			c.passing.Go(func() { c.pass(replica, i) })
		}
	})
	t.Cleanup(func() {
		c.listener.Close()
		c.mu.Lock()
		c.over = true
		for _, conn := range c.conns {
			conn.Close()
		}
		c.mu.Unlock()
		c.passing.Wait()
	})
	return c
}

func (c *cutter) pass(replica net.Conn, i int) {
	primary, err := net.Dial("tcp", c.targets[i])
	if err != nil {
		replica.Close()
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, replica, primary)
	if c.over {
		replica.Close()
		primary.Close()
	}
	c.mu.Unlock()
	c.passing.Go(func() {
		_, _ = io.Copy(primary, replica) // it ends when either does
		primary.Close()
	})
	from := io.Reader(primary)
	if i == 0 {
		from = io.LimitReader(primary, int64(c.after))
	}
	_, _ = io.Copy(replica, io.TeeReader(from, writerFunc(func(b []byte) (int, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		const most = 4 << 10
		c.heard[i] = append(c.heard[i], b[:min(len(b), most-min(most, len(c.heard[i])))]...)
		return len(b), nil
	})))
	replica.Close()
	primary.Close()
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// said is what came on a connection.
func (c *cutter) said(i int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.heard[i])
}

// whole is how many bytes there are up to the end of the snapshot; 0 if it is not whole.
func whole(heard []byte) int {
	_, snapshot, ok := bytes.Cut(heard, []byte("$EOF:"))
	const markLength = 40
	if !ok || len(snapshot) < markLength {
		return 0
	}
	at := bytes.LastIndex(snapshot, snapshot[:markLength])
	if at <= 0 {
		return 0
	}
	return len(heard) - len(snapshot) + at + markLength
}

// TestCutsAtEveryByte cuts the first connection of a replica after each number of bytes, through the handshake, the
// snapshot and a stream with transactions. It has the same data in the end. It goes on where it was, if and only if the
// snapshot was whole and the server behind the second connection has the same history.
func TestCutsAtEveryByte(t *testing.T) {
	const most, together = 900, 150
	for _, kind := range []string{"engine", "redis"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			step := map[string]int{"engine": 1, "redis": 7}[kind]
			var all []int
			for n := 1; n <= most; n += step {
				all = append(all, n*389%most+1) // the first ones are from everywhere
			}
			all = cases.Few(all)
			for from := 0; from < len(all); from += together {
				cutAll(t, kind, all[from:min(from+together, len(all))])
			}
		})
	}
}

func cutAll(t *testing.T, kind string, cuts []int) {
	t.Helper()
	primary, other := start(t, kind), start(t, "engine")
	follower := start(t, "engine") // so that there is a history from the start
	follower.follow(other.addr)
	for i := range 3 {
		primary.do("SET", fmt.Sprint("key", i), "value")
		other.do("SET", fmt.Sprint("other", i), strings.Repeat("v", 1000))
	}
	replicas, cutters := make([]*server, len(cuts)), make([]*cutter, len(cuts))
	for i, after := range cuts {
		then := primary.addr
		if i%10 == 9 {
			then = other.addr
		}
		replicas[i], cutters[i] = startEngine(t), startCutter(t, after, primary.addr, then)
		replicas[i].follow(cutters[i].listener.Addr().String())
	}
	for i := range 3 {
		for _, line := range []string{"SELECT 3", "MULTI", "INCR n", fmt.Sprint("RPUSH list ", i), "EXEC", "SELECT 0", fmt.Sprint("SET late ", i)} {
			primary.do(strings.Fields(line)...)
		}
	}
	for i, c := range cutters {
		from := primary
		if c.targets[1] == other.addr {
			from = other
		}
		uncut := func() bool {
			return len(c.said(0)) < c.after && primary.do("DEBUG", "DIGEST").Text == replicas[i].do("DEBUG", "DIGEST").Text
		}
		await(t, func() string { return fmt.Sprintf("cut after %d bytes, the second connection", c.after) }, func() bool { return len(c.said(1)) > 0 || uncut() })
		if len(c.said(1)) == 0 {
			continue // there was not so much to say
		}
		awaitSame(t, from, replicas[i])
		end := whole(c.said(0))
		goesOn := bytes.Contains(c.said(1), []byte("+CONTINUE"))
		if want := end > 0 && from == primary; goesOn != want {
			t.Errorf("cut after %d bytes, the snapshot ends at %d, and it goes on where it was: %v", c.after, end, goesOn)
		}
	}
}
