package simtest

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-io/signalbox/engine"
)

// network joins hosts to the one engine there is, which a restart replaces.
type network struct {
	plan  *Plan
	trace *trace
	fault func(format string, args ...any) // what no message may hold was found in one

	mu     sync.Mutex
	engine *engine.Engine
	told   map[string]bool // numbers that the server has sent, which may come back to it
}

func (n *network) server() *engine.Engine {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.engine
}

func (n *network) replace(e *engine.Engine) (before *engine.Engine) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.engine = n.engine, e
	return before
}

// direct is a connection that no fault reaches but the end of the server.
func (n *network) direct() (net.Conn, error) {
	conn, err := n.server().Dial()
	return directConn{conn}, err
}

// directConn says EOF for every failure, since that is what go-redis retries after.
type directConn struct{ net.Conn }

func (c directConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// host is the machine that one box runs on, as the network sees it.
type host struct {
	network *network
	name    string

	mu       sync.Mutex
	links    map[*link]struct{}
	dials    int
	dead     bool
	died     time.Time
	up, down time.Time // nothing passes until then: requests, replies
	trouble  time.Time // the last moment at which the network failed this host for longer than a cut
	cuts     []time.Time
}

func newHost(n *network, name string) *host {
	return &host{network: n, name: name, links: make(map[*link]struct{})}
}

// random is a source of its own for each place that draws, so that what one draws does not depend on the order in
// which others do.
func (p *Plan) random(place string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(place))
	return rand.New(rand.NewPCG(p.Seed, h.Sum64())) //nolint:gosec // a seed must give the same run each time
}

var errPartition = errors.New("simulated: no route to host")

// dial is the Dialer of the host's Redis client. Into a partition it hangs, as SYN packets do that are lost.
func (h *host) dial(ctx context.Context) (net.Conn, error) {
	for {
		h.mu.Lock()
		until, dead := h.up, h.dead
		if h.down.After(until) {
			until = h.down
		}
		h.mu.Unlock()
		wait := time.Until(until)
		if !dead && wait <= 0 {
			break
		}
		if dead {
			wait = time.Hour
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, &net.OpError{Op: "dial", Net: "sim", Err: errPartition}
		}
	}
	server, err := h.network.server().Dial()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "sim", Err: syscall.ECONNREFUSED}
	}
	return h.connect(server), nil
}

func (h *host) connect(server net.Conn) *link {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dials++
	l := newLink(h, h.dials, server)
	h.links[l] = struct{}{}
	l.start()
	return l
}

func (h *host) drop(l *link) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.links, l)
}

// resetAll cuts every connection.
func (h *host) resetAll() {
	h.mu.Lock()
	links := make([]*link, 0, len(h.links))
	for l := range h.links {
		links = append(links, l)
	}
	h.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
}

// partition lets nothing pass for d: requests, replies or both. A partition in force is never shortened.
func (h *host) partition(requests, replies bool, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := time.Now().Add(d)
	if requests && until.After(h.up) {
		h.up = until
	}
	if replies && until.After(h.down) {
		h.down = until
	}
}

// crash ends the host for good: no byte of it arrives any more.
func (h *host) crash() {
	h.mu.Lock()
	h.dead, h.died = true, time.Now()
	h.mu.Unlock()
	h.resetAll()
}

func (h *host) isDead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// deathAt is when the host crashed, zero if it lives.
func (h *host) deathAt() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.died
}

// blocked says until when a direction is shut; zero if it is open.
func (h *host) blocked(requests bool) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.down
	if requests {
		until = h.up
	}
	if time.Now().Before(until) {
		return until
	}
	return time.Time{}
}

func (h *host) suffered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trouble = time.Now()
}

func (h *host) wasCut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cuts = append(h.cuts, time.Now())
}

// wellSince reports whether the host could speak since t, and how many connections were cut under it.
func (h *host) wellSince(t time.Time) (well bool, cuts int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.cuts) - 1; i >= 0 && !h.cuts[i].Before(t); i-- {
		cuts++
	}
	return !h.dead && h.trouble.Before(t) && h.up.Before(t) && h.down.Before(t), cuts
}
