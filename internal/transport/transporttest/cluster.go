package transporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// OpenCluster returns a transport over a new client of the Cluster that has nodes at these addresses, which connects with
// dial. The client looks where the slots are when it has reason to, not from time to time, and is closed at the end of the
// test.
type OpenCluster func(t *testing.T, addrs []string, dial func(addr string) (net.Conn, error)) transport.Transport

// ExerciseCluster holds a transport to what a Cluster asks of it.
func ExerciseCluster(t *testing.T, open OpenCluster) {
	t.Helper()
	c := startCluster(t)
	for name, rule := range map[string]func(*testing.T, transport.Transport){
		"commands find their keys":           c.commandsFindKeys,
		"servers are told apart":             c.serversAreToldApart,
		"each primary is visited":            c.primariesAreVisited,
		"keys are followed":                  c.keysAreFollowed,
		"together does not follow by halves": c.togetherIsWhole,
		"nothing is sent twice":              c.nothingIsSentTwice,
	} {
		t.Run(name, func(t *testing.T) { rule(t, open(t, c.addrs(), c.dial)) })
	}
	t.Run("who replaced a server is found", func(t *testing.T) { c.replacementIsFound(t, open(t, c.addrs(), c.dial)) })
}

// cluster is two primaries that share the slots. It is no more than the rules above need: keys in two places, and slots
// that move.
type cluster struct {
	nodes [2]*difftest.Server
	ids   [2]string
	lose  atomic.Int64 // of the next commands on lostKey so many have their replies lost
}

func (c *cluster) dial(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	return &losing{Conn: conn, lose: &c.lose}, err
}

// losing is a connection that breaks when the reply comes to a command on lostKey, if one is to be lost.
type losing struct {
	net.Conn
	lose   *atomic.Int64
	doomed atomic.Bool
}

func (l *losing) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(lostKey)) && l.lose.Add(-1) >= 0 {
		l.doomed.Store(true)
	}
	return l.Conn.Write(p)
}

func (l *losing) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err == nil && l.doomed.Load() {
		return 0, errors.Join(io.EOF, l.Close())
	}
	return n, err
}

const (
	slots     = 16384
	lowerKey  = "{3560}" // in slot 0
	lostKey   = "{3560} lost"
	higherKey = "{39296}" // in slot 16383
)

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	var bus [2]string
	for i := range c.nodes {
		bus[i] = difftest.FreePort(t)
		c.nodes[i] = difftest.Redis(t, "--cluster-enabled", "yes", "--cluster-port", bus[i])
		c.ids[i] = c.do(t, i, "CLUSTER", "MYID")
		c.do(t, i, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		first, last := i*slots/2, (i+1)*slots/2-1
		c.do(t, i, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
	}
	host, port, err := net.SplitHostPort(c.nodes[1].Addr)
	if err != nil {
		t.Fatal(err)
	}
	c.do(t, 0, "CLUSTER", "MEET", host, port, bus[1])
	for i := range c.nodes {
		c.await(t, i, "CLUSTER INFO", "cluster_state:ok")
		c.await(t, i, "CLUSTER NODES", " "+strconv.Itoa((1-i)*slots/2)+"-") // knows what the other has
	}
	return c
}

func (c *cluster) addrs() []string { return []string{c.nodes[0].Addr, c.nodes[1].Addr} }

// do sends a command to one node, by a connection of its own.
func (c *cluster) do(t *testing.T, node int, words ...string) string {
	t.Helper()
	conn, err := difftest.Connect(c.nodes[node].Dial)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := conn.Do(words...)
	if err := errors.Join(err, conn.Close()); err != nil {
		t.Fatal(err)
	}
	return reply.Text
}

// await asks until the answer contains a text.
func (c *cluster) await(t *testing.T, node int, question, text string) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(c.do(t, node, strings.Fields(question)...), text); {
		if time.Now().After(end) {
			t.Fatalf("node %d does not answer %s with %q", node, question, text)
		}
	}
}

// move gives a slot without keys to a node, the new owner first as Redis wants it.
func (c *cluster) move(t *testing.T, slot, to int) {
	t.Helper()
	for _, node := range []int{to, 1 - to} {
		if got := c.do(t, node, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", c.ids[to]); got != "OK" {
			t.Fatal(got)
		}
	}
}

func (c *cluster) commandsFindKeys(t *testing.T, over transport.Transport) {
	ctx := soon(t)
	for i, reply := range over.Pipeline(ctx, []transport.Command{
		keyed("incrby", lowerKey, 1), keyed("incrby", higherKey, 2), keyed("incrby", lowerKey, 1), keyed("incrby", higherKey, 2),
	}) {
		if want := []int64{1, 2, 2, 4}[i]; reply.Err != nil || reply.Value != want {
			t.Errorf("reply %d: %+v, want %d", i, reply, want)
		}
	}
	for range 10 { // what goes to any server might be lucky
		for owner, key := range []string{lowerKey, higherKey} {
			myID := transport.Command{Words: []any{"cluster", "myid"}}
			replies := over.Together(ctx, []transport.Command{keyed("exists", key), myID})
			if want := []transport.Reply{{Value: int64(1)}, {Value: c.ids[owner]}}; !slices.Equal(replies, want) {
				t.Fatalf("together with %s: %+v, want %+v", key, replies, want)
			}
		}
	}
	for i, reply := range over.Pipeline(ctx, []transport.Command{keyed("del", lowerKey), keyed("del", higherKey)}) {
		if reply.Err != nil {
			t.Errorf("del %d: %v", i, reply.Err)
		}
	}
	if info, err := over.Do(ctx, transport.Command{Words: []any{"info", "server"}}); err != nil {
		t.Errorf("a command without a key: %v, %v", info, err)
	}
}

// serversAreToldApart: a client that has been answered knows where keys are.
func (c *cluster) serversAreToldApart(t *testing.T, over transport.Transport) {
	if _, err := over.Do(soon(t), keyed("get", lowerKey)); err != nil {
		t.Fatal(err)
	}
	lower, higher := over.Server(lowerKey), over.Server(higherKey)
	if lower == higher || over.Server(lostKey) != lower {
		t.Errorf("the server of %s is %q as that of %s is %q, and the one of %s %q",
			lowerKey, lower, lostKey, over.Server(lostKey), higherKey, higher)
	}
}

func (c *cluster) primariesAreVisited(t *testing.T, over transport.Transport) {
	var ids []string
	err := over.EachPrimary(soon(t), func(ctx context.Context, server transport.Doer) error {
		id, err := server.Do(ctx, transport.Command{Words: []any{"cluster", "myid"}})
		ids = append(ids, id.(string))
		return err
	})
	slices.Sort(ids)
	if want := slices.Sorted(slices.Values(c.ids[:])); err != nil || !slices.Equal(ids, want) {
		t.Errorf("visited %v, %v; want %v", ids, err, want)
	}
}

func (c *cluster) keysAreFollowed(t *testing.T, over transport.Transport) {
	if _, err := over.Do(soon(t), keyed("get", lowerKey)); err != nil {
		t.Fatal(err)
	}
	c.move(t, 0, 1)
	defer c.move(t, 0, 0)
	for what, send := range map[string]func() error{
		"one by one": func() error { _, err := over.Do(soon(t), keyed("get", lowerKey)); return err },
		"pipeline":   func() error { return over.Pipeline(soon(t), []transport.Command{keyed("get", lowerKey)})[0].Err },
	} {
		if err := send(); err != nil {
			t.Errorf("%s, a key that moved: %v", what, err)
		}
	}
}

// togetherIsWhole: a server that has not the key any more does nothing and says so, and soon the right one is asked for all
// of it. Had only the command with the key been sent there, the other would tell of the wrong server.
func (c *cluster) togetherIsWhole(t *testing.T, over transport.Transport) {
	if err := over.Together(soon(t), []transport.Command{keyed("get", higherKey)})[0].Err; err != nil {
		t.Fatal(err)
	}
	c.move(t, slots-1, 0)
	commands := []transport.Command{keyed("incrby", higherKey, 1), {Words: []any{"cluster", "myid"}}}
	for end := time.Now().Add(patience); ; {
		replies := over.Together(soon(t), commands)
		err := replies[0].Err
		if err == nil {
			if replies[1].Value != c.ids[0] {
				t.Errorf("the second command went to %+v, the key is with %s", replies[1], c.ids[0])
			}
			break
		}
		if !transport.HasPrefix(err, "MOVED") || !ledger.Undone(err) || time.Now().After(end) {
			t.Fatalf("a key that moved: %v", err)
		}
	}
	if value, err := over.Do(soon(t), keyed("getdel", higherKey)); err != nil || value != "1" {
		t.Errorf("the counter is %v, %v; want 1", value, err)
	}
	c.move(t, slots-1, 1)
}

func (c *cluster) nothingIsSentTwice(t *testing.T, over transport.Transport) {
	increment := []transport.Command{keyed("incrby", lostKey, 1)}
	for i, send := range []func() error{
		func() error { _, err := over.Do(soon(t), increment[0]); return err },
		func() error { return over.Pipeline(soon(t), increment)[0].Err },
		func() error { return over.Together(soon(t), increment)[0].Err },
	} {
		c.lose.Store(1)
		if err := send(); err == nil || ledger.Undone(err) {
			t.Errorf("a reply that was lost: %v", err)
		}
		if got, want := c.do(t, 0, "GET", lostKey), strconv.Itoa(i+1); got != want {
			t.Fatalf("the counter is %q, want %q", got, want)
		}
	}
	c.lose.Store(0)
	c.do(t, 0, "DEL", lostKey) // a slot moves without keys only
}

// replacementIsFound has one node fall out and the other take its slot. It leaves the Cluster broken.
func (c *cluster) replacementIsFound(t *testing.T, over transport.Transport) {
	if _, err := over.Do(soon(t), keyed("get", lowerKey)); err != nil {
		t.Fatal(err)
	}
	c.nodes[0].Kill()
	c.do(t, 1, "CLUSTER", "SETSLOT", "0", "NODE", c.ids[1])
	for end := time.Now().Add(patience); ; {
		_, err := over.Do(soon(t), keyed("get", lowerKey))
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("a server that was replaced: %v", err)
		}
	}
}
