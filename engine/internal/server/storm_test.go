package server_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk/disktest"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// Everything that can happen to a connection, at once and in any order: what it is owed it
// gets, what is not wanted any more is gone, and in the end nothing is left.

// storm is what the clients of a test have in common.
type storm struct {
	t    *testing.T
	addr net.Addr
}

// clients, by what they do. Each ends its connection.
var stormy = []func(st *storm, name string, r *rand.Rand){
	(*storm).asks, (*storm).asks, (*storm).waits, (*storm).waits, (*storm).closesItsHalf,
	(*storm).resets, (*storm).isKilled, (*storm).isKilledWhileItWaits, (*storm).readsLate, (*storm).listens,
}

func (st *storm) asks(_ string, r *rand.Rand) {
	p := newPeer(st.t, st.addr)
	defer p.conn.Close()
	for range 1 + r.IntN(5) {
		requests := make([]string, 1+r.IntN(300))
		for i := range requests {
			requests[i] = fmt.Sprintf("SET key %d", i)
		}
		p.send(requests...)
		for range requests {
			p.expect("+OK")
		}
	}
}

// waits has requests behind the one that blocks, and some of them come while it does.
func (st *storm) waits(name string, r *rand.Rand) {
	p, giver := newPeer(st.t, st.addr), newPeer(st.t, st.addr)
	defer p.conn.Close()
	defer giver.conn.Close()
	for range 1 + r.IntN(5) {
		p.send("INCR "+name, "BLPOP q"+name+" 0", "PING")
		if r.IntN(2) == 0 {
			giver.send("RPUSH q"+name+" v", "PING")
			p.send("ECHO late")
		} else {
			p.send("ECHO late")
			giver.send("RPUSH q"+name+" v", "PING")
		}
		giver.expect(":1", "+PONG")
		p.expect(":", "*2", "$", "q", "$1", "v", "+PONG", "$4", "late")
	}
}

func (st *storm) closesItsHalf(_ string, r *rand.Rand) {
	p := newPeer(st.t, st.addr)
	defer p.conn.Close()
	n := 1 + r.IntN(3000)
	if _, err := io.WriteString(p.conn, strings.Repeat("INCR half\r\n", n)); err != nil {
		st.t.Error(err)
	}
	if err := p.conn.(*net.TCPConn).CloseWrite(); err != nil {
		st.t.Error(err)
	}
	for range n {
		p.expect(":")
	}
	p.expect("")
}

func (st *storm) resets(_ string, r *rand.Rand) {
	p := newPeer(st.t, st.addr)
	p.send([]string{"SET key v", "BLPOP nothing 0", "GET big", "SUBSCRIBE news", "QUIT"}[r.IntN(5)], "GET key")
	if r.IntN(2) == 0 {
		_ = p.conn.(*net.TCPConn).SetLinger(0)
	}
	_ = p.conn.Close()
}

// kill ends p's connection, whose number is the answer to its CLIENT ID.
func (st *storm) kill(p *peer) {
	killer := newPeer(st.t, st.addr)
	defer killer.conn.Close()
	p.send("CLIENT ID")
	id := strings.TrimPrefix(p.line(), ":")
	p.send("GET big", "GET big", "GET key")
	killer.send("CLIENT KILL ID " + id)
	killer.expect(":1")
	_, _ = io.Copy(io.Discard, p.in) // it may be a reset
}

func (st *storm) isKilled(string, *rand.Rand) {
	p := newPeer(st.t, st.addr)
	defer p.conn.Close()
	st.kill(p)
}

func (st *storm) isKilledWhileItWaits(string, *rand.Rand) {
	p, killer := newPeer(st.t, st.addr), newPeer(st.t, st.addr)
	defer p.conn.Close()
	defer killer.conn.Close()
	p.send("CLIENT ID")
	id := strings.TrimPrefix(p.line(), ":")
	p.send("BLPOP nothing 0", "PING")
	killer.send("CLIENT KILL ID " + id)
	killer.expect(":1")
	if said, err := io.ReadAll(p.in); err == nil && len(said) > 0 {
		st.t.Errorf("one that was killed while it waited is told %q", said)
	}
}

// readsLate gets more than its socket holds.
func (st *storm) readsLate(_ string, r *rand.Rand) {
	const bytes = len("$4194304\r\n\r\n") + 4<<20
	p := newPeer(st.t, st.addr)
	defer p.conn.Close()
	n := 2 + r.IntN(3)
	for range n {
		p.send("GET big")
	}
	p.send("PING")
	if _, err := io.CopyN(io.Discard, p.in, int64(n*bytes)); err != nil {
		st.t.Error(err)
	}
	p.expect("+PONG")
}

func (st *storm) listens(name string, r *rand.Rand) {
	p, speaker := newPeer(st.t, st.addr), newPeer(st.t, st.addr)
	defer p.conn.Close()
	defer speaker.conn.Close()
	p.send("SUBSCRIBE c" + name)
	p.expect("*3", "$9", "subscribe", "$", "c", ":1")
	n := 1 + r.IntN(200)
	for i := range n {
		speaker.send(fmt.Sprintf("PUBLISH c%s %d", name, i))
	}
	for i := range n {
		speaker.expect(":1")
		p.expect("*3", "$7", "message", "$", "c", "$", fmt.Sprint(i))
	}
}

// serveEach serves each connection of a listener by a goroutine of its own.
func serveEach(s *server.Server, l net.Listener) error {
	var served sync.WaitGroup
	defer served.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil //nolint:nilerr // it was closed
		}
		served.Go(func() { _ = s.ServeConn(conn) }) // the peer has been told
	}
}

func TestInAStormEverybodyGetsWhatHeIsOwed(t *testing.T) {
	settings := map[string][]string{"memory": {"appendonly", "no", "save", ""}, "always": withLog["always"], "everysec": withLog["everysec"]}
	ways := map[string]func(*server.Server, net.Listener) error{"loop": (*server.Server).Serve, "goroutines": serveEach}
	for name, parameters := range settings {
		for way, serve := range ways {
			t.Run(name+", "+way, func(t *testing.T) { weather(t, serve, parameters) })
		}
	}
}

// weather lets a storm pass.
func weather(t *testing.T, serve func(*server.Server, net.Listener) error, parameters []string) {
	const rounds = 12
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	files := openFiles()
	s := kept(t, disktest.New(), parameters...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(s, l) }()
	st := &storm{t, l.Addr()}
	do(t, s, "SET", "big", strings.Repeat("v", 4<<20))
	var clients sync.WaitGroup
	for i := range 4 * runtime.GOMAXPROCS(0) {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for j := range rounds {
				stormy[r.IntN(len(stormy))](st, fmt.Sprintf("%d-%d", i, j), r)
			}
		})
	}
	clients.Wait()
	awaitConnections(t, s, 0)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_ = l.Close() // Serve has closed it already
	if err := <-served; err != nil {
		t.Error(err)
	}
	if n := openFiles(); n > files+5 { // the clients' own are closed a moment later
		t.Errorf("%d files are open, and %d before", n, files)
	}
}

// TestCloseInAStormEnds, whatever the connections are in the middle of.
func TestCloseInAStormEnds(t *testing.T) {
	files := openFiles()
	for round := range 6 {
		s := kept(t, disktest.New(), withLog[[]string{"always", "everysec"}[round%2]]...)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		do(t, s, "SET", "big", strings.Repeat("v", 4<<20))
		var clients sync.WaitGroup
		first := make(chan struct{}, 100)
		for i := range 30 {
			clients.Go(func() {
				for {
					conn, err := net.Dial("tcp", l.Addr().String())
					if err != nil {
						return // closed, as it should be
					}
					said := []string{"SET key v\r\n", "BLPOP q 0\r\nPING\r\n", "GET big\r\nGET big\r\n", "RPUSH q v\r\n", "PING\r\nPI"}[i%5]
					_, _ = io.WriteString(conn, strings.Repeat(said, 1+i)) // it may be closed already
					_, _ = conn.Read(make([]byte, 1))
					_ = conn.Close()
					select {
					case first <- struct{}{}:
					default:
					}
				}
			})
		}
		for range 10 * (round + 1) {
			<-first
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		clients.Wait()
	}
	if n := openFiles(); n > files+5 {
		t.Errorf("%d files are open, and %d before", n, files)
	}
}
