package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A driver is a process that puts load on a server, and says for windows of time how much it was and how long each
// answer took: redis-benchmark can tell that of whole runs only, and not of keys in any order.

// driveConfig is what the role drive is told.
type driveConfig struct {
	Addr                  string
	Connections, Pipeline int
	Keys, ValueBytes      int
	Write                 bool // SET of each key in turn, in an order of no pattern; else GET of keys at random
	Operations            int  // how many; 0: until the parent has enough
}

// driven is what a driver did in a while.
type driven struct {
	Operations, Seconds     float64
	MedianMs, P999Ms, MaxMs float64
	Fault                   string
}

func (w driven) rate() float64 { return w.Operations / w.Seconds }

// driver is the parent's side.
type driver struct{ process *process }

func startDriver(on []int, config driveConfig) (*driver, error) {
	p, err := startRole(on, "drive", config)
	if err != nil {
		return nil, err
	}
	d := &driver{p}
	var ready string
	if err := p.hear(&ready); err != nil {
		d.stop()
		return nil, err
	}
	if err := p.tell("go"); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

// window ends the window that has begun with the last call, or with the driver.
func (d *driver) window() (w driven, err error) {
	if err := d.process.tell("window"); err != nil {
		return w, err
	}
	return d.result()
}

// result waits for the end of a driver that has a number of operations.
func (d *driver) result() (w driven, err error) {
	if err := d.process.hear(&w); err != nil {
		return w, err
	}
	if w.Fault != "" {
		return w, errors.New(w.Fault)
	}
	return w, nil
}

func (d *driver) stop() { d.process.stop() }

// drive runs a driver of a number of operations.
func drive(on []int, config driveConfig) (driven, error) {
	d, err := startDriver(on, config)
	if err != nil {
		return driven{}, err
	}
	defer d.stop()
	return d.result()
}

// The child's side.

const (
	tickUs    = 10 // the resolution of a histogram
	histogram = 200_000
	noiseSize = 1 << 20
)

// tally counts the answers of a window by how long they took.
type tally struct {
	began time.Time
	ticks [histogram]atomic.Uint32
}

func (t *tally) note(took time.Duration, answers int) {
	t.ticks[min(took.Microseconds()/tickUs, histogram-1)].Add(uint32(answers))
}

// sum is the window that ends now.
func (t *tally) sum() driven {
	w := driven{Seconds: time.Since(t.began).Seconds()}
	for i := range t.ticks {
		w.Operations += float64(t.ticks[i].Load())
	}
	w.MedianMs, w.P999Ms, w.MaxMs = t.quantile(0.5, w.Operations), t.quantile(0.999, w.Operations), t.quantile(1, w.Operations)
	return w
}

// quantile is the time in ms within which so many of all answers came.
func (t *tally) quantile(q, all float64) float64 {
	seen := 0.0
	for i := range t.ticks {
		seen += float64(t.ticks[i].Load())
		if seen > 0 && seen >= q*all {
			return float64(i+1) * tickUs / 1000
		}
	}
	return 0
}

// load is what the connections of a driver share.
type load struct {
	config driveConfig
	noise  []byte
	next   atomic.Int64 // the number of the next operation
	tally  atomic.Pointer[tally]
	done   atomic.Bool
	fault  atomic.Pointer[error]
}

func driveRole(_ context.Context, config []byte) error {
	l := &load{noise: make([]byte, noiseSize)}
	if err := decode(config, &l.config); err != nil {
		return err
	}
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(l.noise) // it never fails
	conns := make([]net.Conn, l.config.Connections)
	for i := range conns {
		conn, err := net.Dial("tcp", l.config.Addr)
		if err != nil {
			return err
		}
		defer shut(conn)
		conns[i] = conn
	}
	if err := say("ready"); err != nil {
		return err
	}
	var word string
	if err := listen(&word); err != nil {
		return err
	}
	l.tally.Store(&tally{began: time.Now()})
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() { l.run(conn, uint64(i)) })
	}
	if l.config.Operations > 0 {
		all.Wait()
		if err := say(l.cut()); err != nil {
			return err
		}
		dismissed()
		return nil
	}
	for listen(&word) == nil {
		if err := say(l.cut()); err != nil {
			return err
		}
	}
	l.done.Store(true)
	all.Wait()
	return nil
}

// cut ends a window and begins the next one.
func (l *load) cut() driven {
	w := l.tally.Swap(&tally{began: time.Now()}).sum()
	if fault := l.fault.Load(); fault != nil {
		w.Fault = (*fault).Error()
	}
	return w
}

func (l *load) run(conn net.Conn, seed uint64) {
	if err := l.talk(conn, rand.New(rand.NewPCG(seed, seed))); err != nil {
		l.fault.CompareAndSwap(nil, &err)
	}
}

// talk sends requests and takes the answers, so many at once, until it has been enough.
func (l *load) talk(conn net.Conn, random *rand.Rand) error {
	c := l.config
	request, answers := []byte(nil), make([]byte, 64<<10)
	for !l.done.Load() {
		first := int(l.next.Add(int64(c.Pipeline))) - c.Pipeline
		n := c.Pipeline
		if c.Operations > 0 {
			if n = min(n, c.Operations-first); n <= 0 {
				return nil
			}
		}
		request = request[:0]
		for i := range n {
			request = l.request(request, first+i, random)
		}
		if err := conn.SetDeadline(time.Now().Add(loadPatience)); err != nil {
			return err
		}
		begin := time.Now()
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := l.answers(conn, answers, n); err != nil {
			return err
		}
		l.tally.Load().note(time.Since(begin), n)
	}
	return nil
}

// request appends the request of an operation.
func (l *load) request(to []byte, number int, random *rand.Rand) []byte {
	c := l.config
	if !c.Write {
		to = append(to, "*2\r\n$3\r\nGET\r\n"...)
		return appendKey(to, random.IntN(c.Keys))
	}
	to = append(to, "*3\r\n$3\r\nSET\r\n"...)
	to = appendKey(to, scattered(number, c.Keys))
	to = append(strconv.AppendInt(append(to, '$'), int64(c.ValueBytes), 10), "\r\n"...)
	from := random.IntN(noiseSize - c.ValueBytes)
	to = append(to, l.noise[from:from+c.ValueBytes]...)
	return append(to, "\r\n"...)
}

// scattered is the key of an operation: each of them once in a pass, and neighbours far from each other.
func scattered(number, keys int) int {
	const stride = 1_000_003 // a prime: every key comes, unless it divides their number
	return int(uint64(number) * stride % uint64(keys))
}

// keyBytes is how long a key is.
const keyBytes = 16

func appendKey(to []byte, number int) []byte {
	return fmt.Appendf(to, "$%d\r\nkey:%012d\r\n", keyBytes, number)
}

// answers reads so many answers, all of the length that is right.
func (l *load) answers(conn net.Conn, into []byte, n int) error {
	begin, each := "+OK\r\n", len("+OK\r\n")
	if !l.config.Write {
		begin = fmt.Sprintf("$%d\r\n", l.config.ValueBytes)
		each = len(begin) + l.config.ValueBytes + 2
	}
	for left := n * each; left > 0; {
		got, err := conn.Read(into[:min(left, len(into))])
		if err != nil {
			return err
		}
		if left == n*each && got >= len(begin) && string(into[:len(begin)]) != begin {
			return fmt.Errorf("the server said %q", into[:min(got, 100)])
		}
		left -= got
	}
	return nil
}
