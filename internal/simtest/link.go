package simtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// link is one connection between a host and the engine. Two goroutines carry it, one for each direction; they draw the
// fate of each packet, a packet being what was written in one call. As with TCP, bytes arrive in order or not at all,
// and what was written before a Close still arrives.
type link struct {
	host   *host
	number int
	server net.Conn
	done   chan struct{} // closed when the link is reset
	once   sync.Once

	mu       sync.Mutex
	outgoing []packet
	incoming []byte
	closed   bool  // by the client
	failed   error // what Read returns once incoming is empty
	deadline time.Time
	news     chan struct{} // closed and renewed when Read has to look again
	work     chan struct{} // of capacity 1: outgoing or closed has changed
}

type packet struct {
	data []byte
	sent time.Time
}

func newLink(h *host, number int, server net.Conn) *link {
	return &link{
		host: h, number: number, server: server, done: make(chan struct{}),
		news: make(chan struct{}), work: make(chan struct{}, 1),
	}
}

func (l *link) start() {
	place := fmt.Sprintf("%s link %d ", l.host.name, l.number)
	go l.carryUp(l.host.network.plan.random(place + "up"))
	go l.carryDown(l.host.network.plan.random(place + "down"))
}

// reset cuts the link: neither end hears more of the other.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		// Whichever end closes first, the other one finds it closed.
		_ = l.server.Close()
		l.host.drop(l)
		l.fail(&net.OpError{Op: "read", Net: "sim", Err: syscall.ECONNRESET})
	})
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	l.wake()
}

// wake lets Read look again. mu is held.
func (l *link) wake() {
	close(l.news)
	l.news = make(chan struct{})
}

// pause waits, and reports false if the link was reset meanwhile.
func (l *link) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}

// latency is the time a packet is under way: mostly short.
func latency(r *rand.Rand) time.Duration {
	return time.Duration(20_000 + r.IntN(400_000) + r.IntN(2)*r.IntN(2)*r.IntN(3_000_000))
}

// travel waits until a packet has arrived, and reports false if it never does.
func (l *link) travel(r *rand.Rand, sent time.Time, up bool) bool {
	plan := l.host.network.plan
	wait := latency(r)
	if r.IntN(1000) < plan.Stall {
		wait += time.Duration(r.Int64N(int64(plan.Claim / 3)))
		l.host.suffered()
	}
	if !l.pause(wait) {
		return false
	}
	for until := l.host.blocked(up); !until.IsZero(); until = l.host.blocked(up) {
		l.host.suffered()
		if !l.pause(time.Until(until) + latency(r)) {
			return false
		}
	}
	if l.host.isDead() || (!plan.Ancient && time.Since(sent) > plan.Claim/2) {
		l.reset()
		return false
	}
	return true
}

// carryUp carries what the client writes.
func (l *link) carryUp(r *rand.Rand) {
	for {
		p, ok := l.takeOutgoing()
		if !ok {
			l.reset()
			return
		}
		if !l.travel(r, p.sent, true) {
			return
		}
		l.host.network.inspectRequest(l.host.name, p.data)
		plan := l.host.network.plan
		fate := r.IntN(1000)
		if fate < plan.CutRequest {
			l.cut("request lost", p.data)
			return
		}
		if fate -= plan.CutRequest; fate < plan.Tear {
			// A server that has hung up hears nothing.
			_, _ = l.server.Write(p.data[:r.IntN(len(p.data))])
			l.cut("request torn", p.data)
			return
		}
		if _, err := l.server.Write(p.data); err != nil {
			l.reset()
			return
		}
		if fate -= plan.Tear; fate < plan.CutReply {
			l.cut("reply lost", p.data)
			return
		}
	}
}

func (l *link) cut(what string, data []byte) {
	l.host.wasCut()
	l.host.network.trace.note("%s link %d: %s of %s", l.host.name, l.number, what, brief(data))
	l.reset()
}

func (l *link) takeOutgoing() (packet, bool) {
	for {
		l.mu.Lock()
		if len(l.outgoing) > 0 {
			p := l.outgoing[0]
			l.outgoing = l.outgoing[1:]
			l.mu.Unlock()
			return p, true
		}
		closed := l.closed
		l.mu.Unlock()
		if closed {
			return packet{}, false
		}
		select {
		case <-l.work:
		case <-l.done:
			return packet{}, false
		}
	}
}

var pushMark = []byte(">3\r\n$7\r\nmessage\r\n")

// carryDown carries what the engine writes.
func (l *link) carryDown(r *rand.Rand) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buffer)
		if n > 0 {
			if !l.travel(r, time.Now(), false) {
				return
			}
			data := buffer[:n]
			l.host.network.hearReply(data)
			if bytes.HasPrefix(data, pushMark) && r.IntN(1000) < l.host.network.plan.DropPush {
				l.host.network.trace.note("%s link %d: message lost: %s", l.host.name, l.number, brief(data))
				continue
			}
			l.deliver(data)
		}
		if err != nil {
			l.hungUp()
			return
		}
	}
}

// hungUp ends a link that the engine has closed, or that is reset already. The client finds out when it next uses it:
// go-redis looks for that before only on sockets of the operating system.
func (l *link) hungUp() {
	select {
	case <-l.done:
	default:
		l.host.wasCut()
		l.reset()
	}
}

func (l *link) deliver(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.incoming = append(l.incoming, data...)
	l.wake()
}

// Read waits for bytes, the deadline, or the end of the link.
func (l *link) Read(b []byte) (int, error) {
	for {
		l.mu.Lock()
		if len(l.incoming) > 0 {
			n := copy(b, l.incoming)
			l.incoming = l.incoming[n:]
			l.mu.Unlock()
			return n, nil
		}
		err, deadline, news := l.failed, l.deadline, l.news
		l.mu.Unlock()
		switch {
		case err != nil:
			return 0, err
		case deadline.IsZero():
			<-news
			continue
		case !time.Now().Before(deadline):
			return 0, &net.OpError{Op: "read", Net: "sim", Err: os.ErrDeadlineExceeded}
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-news:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Write never waits: the network has buffers.
func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.closed {
		return 0, &net.OpError{Op: "write", Net: "sim", Err: syscall.EPIPE}
	}
	l.outgoing = append(l.outgoing, packet{bytes.Clone(b), time.Now()})
	l.signal()
	return len(b), nil
}

// signal tells carryUp to look again.
func (l *link) signal() {
	select {
	case l.work <- struct{}{}:
	default:
	}
}

// Close is the client's; what it has written still arrives.
func (l *link) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.fail(net.ErrClosed)
	l.signal()
	return nil
}

// SetReadDeadline lets Read give up.
func (l *link) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = t
	l.wake()
	return nil
}

// SetDeadline is SetReadDeadline, since Write never waits.
func (l *link) SetDeadline(t time.Time) error { return l.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (l *link) SetWriteDeadline(time.Time) error { return nil }

type address string

func (a address) Network() string { return "sim" }
func (a address) String() string  { return string(a) }

// LocalAddr names the host.
func (l *link) LocalAddr() net.Addr { return address(l.host.name) }

// RemoteAddr names the engine.
func (l *link) RemoteAddr() net.Addr { return address("engine") }

// brief shows a request or reply in one line.
func brief(data []byte) string {
	text := lengths.ReplaceAll(data, []byte(" "))
	text = bytes.ReplaceAll(text, []byte("\r\n"), nil)
	if len(text) > 150 {
		text = append(text[:150:150], "…"...)
	}
	return string(text)
}

var (
	lengths = regexp.MustCompile(`[*$>]\d+\r\n`)
	numbers = regexp.MustCompile(`\b\d{9,19}\b`)
)

// hearReply notes the numbers that the server tells: a fencing token, the mark of a limiter or the version of a queue is a
// time, and comes back.
func (n *network) hearReply(data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range numbers.FindAll(data, -1) {
		n.told[string(text)] = true
	}
}

func (n *network) hasTold(text []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told[string(text)]
}

// inspectRequest makes sure that no client tells the server a time of its own clock: in no unit may a number of a
// request be near the moment at which it was sent, unless it is the server's. The bubble's clock starts in a year of its own, so that no constant
// is.
func (n *network) inspectRequest(from string, data []byte) {
	now := time.Now().Unix()
	for _, text := range numbers.FindAll(data, -1) {
		number, err := strconv.ParseInt(string(text), 10, 64)
		for unit := int64(1); err == nil && unit <= 1e9; unit *= 1000 {
			if seconds := number / unit; seconds > now-86400 && seconds < now+86400 && !n.hasTold(text) {
				n.fault("clock: %s sent its own time %d: %s", from, number, brief(data))
			}
		}
	}
}
