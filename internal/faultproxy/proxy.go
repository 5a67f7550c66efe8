package faultproxy

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// Fault is what a Proxy does to its connections, old and new. The zero value is a network that is well.
type Fault struct {
	Requests Direction // from the client to the server
	Replies  Direction // back
	// Only spares all connections but those on which the client has sent this text at some time, such as "subscribe".
	Only string
	// Spare spares the connections on which the client has sent this text.
	Spare string
}

// Direction is what happens to the bytes that go one way.
type Direction struct {
	Delay  time.Duration // each piece arrives so much later,
	Jitter time.Duration // and up to so much later again, in order
	Hold   bool          // nothing arrives until the fault is over
	Drop   bool          // nothing arrives, ever
	// CutAfter cuts a connection once so many bytes have passed since the fault began; 0 = never. The bytes up to there
	// arrive.
	CutAfter int64
}

// Proxy stands between clients and one server.
type Proxy struct {
	listener net.Listener
	network  string // that the server is reached by
	serving  sync.WaitGroup

	mu      sync.Mutex
	target  string
	fault   Fault
	changed chan struct{} // closed, and replaced, whenever fault changes
	era     int           // counts the faults
	links   map[*link]bool
	opened  int
	closed  bool
}

// TB is what Start needs of a test. It is not testing.TB, so that programs that use a proxy hold nothing of testing.
type TB interface {
	Helper()
	Cleanup(fn func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start returns a proxy of the server at an address, closed at the end of the test.
func Start(t TB, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatalf("start a proxy of %s: %v", target, err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close the proxy of %s: %v", target, err)
		}
	})
	return p
}

// Listen returns a proxy of the server at a TCP address. The caller closes it.
func Listen(target string) (*Proxy, error) { return ListenFor("tcp", target) }

// ListenFor is Listen for a server on a network of package net: tcp, or unix with the path of the socket.
func ListenFor(network, target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, network: network, target: target, changed: make(chan struct{}), links: make(map[*link]bool)}
	p.serving.Go(p.accept)
	return p, nil
}

// Addr is where clients find the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set begins a fault, in place of the one before. Connections that lost bytes to that one are cut.
func (p *Proxy) Set(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
	p.era++
	close(p.changed)
	p.changed = make(chan struct{})
}

// Restore ends the fault.
func (p *Proxy) Restore() { p.Set(Fault{}) }

// Retarget has new connections go to another server, and cuts the old ones: what a failover looks like behind an
// address that stays.
func (p *Proxy) Retarget(addr string) {
	p.mu.Lock()
	p.target = addr
	p.mu.Unlock()
	p.Cut()
}

// Cut cuts all connections, and returns how many there were. New ones may come.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	return len(p.links)
}

// Opened returns how many connections there have been.
func (p *Proxy) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// Close ends all connections, and returns when no goroutine is left.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.serving.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.serving.Go(func() { p.serve(client) })
	}
}

// dialPatience is how long the server may take to accept.
const dialPatience = 10 * time.Second

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout(p.network, target, dialPatience)
	if err != nil {
		_ = client.Close() // the client sees that nobody is there
		return
	}
	l := &link{proxy: p, client: client, server: server, gone: make(chan struct{})}
	p.mu.Lock()
	if p.closed || p.target != target {
		l.cut()
	}
	p.links[l] = true
	p.opened++
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// current returns what applies to a link, when it began, and what is closed when it is over.
func (p *Proxy) current(l *link) (fault Fault, era int, over <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault = p.fault
	sent := func(text string) bool { return bytes.Contains(l.words, []byte(text)) }
	if fault.Only != "" && !sent(fault.Only) || fault.Spare != "" && sent(fault.Spare) {
		fault = Fault{}
	}
	return fault, p.era, p.changed
}
