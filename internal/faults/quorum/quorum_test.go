//go:build unix

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/faults"
)

func TestMain(m *testing.M) { faults.Main(m) }

const (
	processes        = 2
	workersOfProcess = 2
	longest          = time.Minute // an acquisition may take; it passes in full only if the test fails
	// What must not be lost lasts for longer than a busy machine is late, and a grant that is not confirmed yet too.
	ttl   = 4 * time.Second
	claim = 2 * time.Second
)

// site is three servers with a proxy each, and workers of two processes that take turns on one name.
type site struct {
	t       *testing.T
	servers []*difftest.Server
	proxies []*faultproxy.Proxy
	quorums []*signalbox.Quorum
	workers sync.WaitGroup
	ctx     context.Context // ends when the workers are to stop
	stop    context.CancelFunc
	turns   [processes * workersOfProcess]atomic.Int64

	mu     sync.Mutex
	holder *signalbox.QuorumLease
	newest int64
}

func start(t *testing.T) *site {
	t.Helper()
	faults.Begin(t)
	s := &site{t: t}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for range 3 {
		server := difftest.Redis(t)
		s.servers, s.proxies = append(s.servers, server), append(s.proxies, faultproxy.Start(t, server.Addr))
	}
	for range processes {
		var boxes []*signalbox.Box
		for _, proxy := range s.proxies {
			url := faults.WithOption("redis://"+proxy.Addr(), "read_timeout=500ms")
			box := faults.Open(t, url, claim)
			t.Cleanup(func() {
				// A server that is away for good is told nothing.
				if err := box.Close(); err != nil && !errors.Is(err, signalbox.ErrUnavailable) {
					t.Errorf("close a box: %v", err)
				}
			})
			boxes = append(boxes, box)
		}
		s.quorums = append(s.quorums, signalbox.NewQuorum(boxes...))
	}
	for i := range s.turns {
		s.workers.Go(func() { s.work(s.quorums[i%processes], &s.turns[i]) })
	}
	t.Cleanup(s.finish) // before the boxes close
	s.everybody(1)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) work(quorum *signalbox.Quorum, turns *atomic.Int64) {
	for s.ctx.Err() == nil {
		ctx, done := context.WithTimeout(s.ctx, longest)
		lease, err := quorum.Mutex("contended").Acquire(ctx, signalbox.TTL(ttl))
		done()
		if err != nil {
			if s.ctx.Err() == nil {
				s.t.Errorf("an acquisition failed though the majority is there: %v", err)
			}
			return
		}
		s.granted(lease)
		turns.Add(1)
		timer := time.NewTimer(rand.N(3 * time.Millisecond))
		select {
		case <-timer.C:
		case <-lease.Done():
		}
		s.mu.Lock()
		if s.holder == lease {
			s.holder = nil
		}
		s.mu.Unlock()
		alive := lease.Err() == nil
		// One of the servers that granted it may be the one that is away.
		err = lease.Release(context.Background())
		if err != nil && alive && !errors.Is(err, signalbox.ErrUnavailable) {
			s.t.Errorf("a release failed though the majority is there: %v", err)
		}
	}
}

// granted checks L1 and L2. A lease that is over on arrival, which a busy machine may bring about, does not count.
func (s *site) granted(lease *signalbox.QuorumLease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease.Err() != nil {
		return
	}
	if other := s.holder; other != nil && other.Err() == nil && lease.Err() == nil {
		s.t.Errorf("L1: tokens %d and %d are held at once", other.Token(), lease.Token())
	}
	if lease.Token() <= s.newest {
		s.t.Errorf("L2: token %d after %d", lease.Token(), s.newest)
	}
	s.holder, s.newest = lease, lease.Token()
}

// everybody returns when every worker has had n turns more.
func (s *site) everybody(n int64) {
	s.t.Helper()
	for i := range s.turns {
		goal := s.turns[i].Load() + n
		faults.Await(s.t, fmt.Sprintf("%d turns for worker %d", n, i), func() bool { return s.turns[i].Load() >= goal })
	}
}

func (s *site) finish() {
	s.stop()
	s.workers.Wait()
}

// hold returns a lease that nobody else wants.
func (s *site) hold() *signalbox.QuorumLease {
	s.t.Helper()
	lease, err := s.quorums[0].Mutex("held").Acquire(faults.Patient(s.t), signalbox.TTL(ttl))
	must(s.t, err)
	return lease
}

// whole waits until a lease is held on all servers: one that has just come back, and whose clients do not know it yet, would be
// away at once with the next.
func (s *site) whole(held *signalbox.QuorumLease) {
	s.t.Helper()
	faults.Await(s.t, "a lease on all servers", func() bool { return held.Servers() == len(s.servers) || held.Err() != nil })
	must(s.t, held.Err())
}

// outlast goes on until what was granted before would be over, and everybody has had a turn.
func (s *site) outlast(held *signalbox.QuorumLease) {
	s.t.Helper()
	over := time.Now().Add(ttl + time.Second)
	s.everybody(1)
	faults.Await(s.t, "the end of all leases of before", func() bool { return time.Now().After(over) })
	if err := held.Err(); err != nil {
		s.t.Errorf("a lease that two of three servers renew was lost: %v", err)
	}
}

// eachAway has each server fail and come back, with a lease that is held meanwhile and one for the time after.
func (s *site) eachAway(fail, restore func(i int)) {
	for i := range s.servers {
		held := s.hold()
		s.whole(held)
		fail(i)
		s.outlast(held)
		restore(i)
		must(s.t, held.Release(faults.Patient(s.t)))
		s.everybody(1)
	}
}
