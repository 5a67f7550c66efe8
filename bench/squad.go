package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"
)

// The parent's side of a bout. A squad is a number of processes on the same cores that are kept from bout to bout:
// starting a hundred takes longer than many a bout.

const (
	settleTime = 200 * time.Millisecond
	startDelay = 50 * time.Millisecond
	// boutPatience is how long after its window a bout may take to end. The squad that takes longer is killed.
	boutPatience = 20 * time.Second
)

type squad struct {
	on        []int
	processes []*process
}

func (q *squad) stop() {
	for _, p := range q.processes {
		p.stop()
	}
	q.processes = nil
}

func (q *squad) grow(n int) error {
	for len(q.processes) < n {
		p, err := startRole(q.on, "contended", nil)
		if err != nil {
			return err
		}
		q.processes = append(q.processes, p)
	}
	return nil
}

// match is one case: so many clients on one lock, and what the rounds found.
type match struct {
	name, kind string
	where      string
	server     *server // nil: an engine in process
	squad      *squad
	hold       time.Duration
	window     time.Duration
	settle     time.Duration
	clients    int
	together   bool // the clients are goroutines of one client library
	limit      int
	bouts      []bout
	faults     []string
}

// comparesWith says whether only the contestant, or what it plays on, is another.
func (m *match) comparesWith(other *match) bool {
	return m.clients == other.clients && m.hold == other.hold && m.squad == other.squad
}

func (m *match) config() contendedConfig {
	c := contendedConfig{
		Kind: m.kind, Hold: m.hold, Window: m.window, Settle: m.settle, Clients: 1, Together: m.together, Limit: m.limit,
		Name: fmt.Sprintf("contended %s %d", m.kind, time.Now().UnixNano()),
	}
	if m.server != nil {
		c.Addr = m.server.addr
	}
	if m.processes() == 1 {
		c.Clients = m.clients
	}
	return c
}

// processes is how many the clients are in: one each, unless they share a library or an engine.
func (m *match) processes() int {
	if m.together || m.server == nil {
		return 1
	}
	return m.clients
}

// play plays one bout. A squad that fails is replaced.
func (m *match) play(ctx context.Context) error {
	b, err := m.playBout(ctx)
	if err != nil {
		m.squad.stop()
		m.faults = append(m.faults, err.Error())
		return fmt.Errorf("%s on %s: %w", m.name, m.where, err)
	}
	if b.fault != "" {
		m.faults = append(m.faults, b.fault)
	}
	m.bouts = append(m.bouts, b)
	return nil
}

func (m *match) playBout(ctx context.Context) (bout, error) {
	config, n := m.config(), m.processes()
	if err := m.squad.grow(n); err != nil {
		return bout{}, err
	}
	processes := m.squad.processes[:n]
	if n > 1 {
		var err error
		if config.Shared, err = newSharedFile(); err != nil {
			return bout{}, err
		}
		defer removeShared(config.Shared)
	}
	// A process that is killed ends the conversation below.
	guard := time.AfterFunc(m.settle+m.window+boutPatience, func() {
		for _, p := range processes {
			_ = p.command.Process.Kill() // it may have ended already
		}
	})
	defer guard.Stop()
	for _, p := range processes {
		if err := p.tell(config); err != nil {
			return bout{}, err
		}
	}
	var word string
	for _, p := range processes {
		if err := p.hear(&word); err != nil {
			return bout{}, err
		}
	}
	begin := time.Now().Add(startDelay + m.settle)
	for _, p := range processes {
		if err := p.tell(begin); err != nil {
			return bout{}, err
		}
	}
	return m.collect(ctx, processes, begin)
}

// collect counts commands while the clients compete, and then hears them.
func (m *match) collect(ctx context.Context, processes []*process, begin time.Time) (bout, error) {
	var delta calls
	var serverCPU time.Duration
	if m.server != nil {
		time.Sleep(time.Until(begin))
		serverCPU = m.server.process.cpu()
		var err error
		if delta, err = callsInWindow(ctx, backend{Addr: m.server.addr}, begin, m.window); err != nil {
			return bout{}, err
		}
		serverCPU = m.server.process.cpu() - serverCPU
	}
	reports := make([]processReport, len(processes))
	for i, p := range processes {
		if err := p.hear(&reports[i]); err != nil {
			return bout{}, err
		}
	}
	if m.server == nil {
		delta = reports[0].Calls
	}
	return sum(reports, m.window, delta, m.kind, serverCPU), nil
}

func newSharedFile() (string, error) {
	file, err := os.CreateTemp("", "signalbox-bench-witness-")
	if err != nil {
		return "", err
	}
	return file.Name(), errors.Join(file.Truncate(int64(unsafe.Sizeof(witness{}))), file.Close())
}

func removeShared(path string) {
	_ = os.Remove(path) // what is left is in the system's folder for such things
}

// series is one number of each bout.
func (m *match) series(of func(bout) float64) []float64 {
	var values []float64
	for _, b := range m.bouts {
		values = append(values, of(b))
	}
	return values
}

func (m *match) median(of func(bout) float64) float64 { return median(m.series(of)) }

func (m *match) rates() []float64 { return m.series(func(b bout) float64 { return b.rate }) }

// faulty counts what must never happen: two holders, tokens out of order, too many holders.
func (m *match) faulty() []float64 {
	var n int64
	for _, b := range m.bouts {
		n += b.overlaps + b.disorders + int64(b.over)
	}
	if len(m.bouts) == 0 {
		return nil
	}
	return []float64{float64(n)}
}
