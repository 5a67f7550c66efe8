package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// A quorum over real servers, of which any minority may be cut off from one process or from all. Each process reaches
// each server through a proxy of its own.

const quorumClaim = 2 * time.Second // a slow machine must not make a grant that is not confirmed pass on

type quorumBench struct {
	*testing.T
	addresses []string
	direct    []*redis.Client
}

// process is a quorum with the proxies that its requests pass.
type process struct {
	*signalbox.Quorum
	proxies []*faultproxy.Proxy
	nowhere string
}

// overQuorums runs a test over three and five servers of either kind.
func overQuorums(t *testing.T, test func(*quorumBench)) {
	t.Helper()
	for name, serve := range map[string]func(*testing.T) string{
		"redis":  func(t *testing.T) string { return difftest.Redis(t).Addr },
		"engine": serveEngine,
	} {
		for _, n := range []int{3, 5} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				t.Parallel()
				b := &quorumBench{T: t}
				for range n {
					b.addresses = append(b.addresses, serve(t))
				}
				for _, address := range b.addresses {
					client := redis.NewClient(&redis.Options{
						Addr: address, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
					})
					t.Cleanup(func() { client.Close() })
					b.direct = append(b.direct, client)
				}
				test(b)
			})
		}
	}
}

func serveEngine(t *testing.T) string {
	t.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func (b *quorumBench) process() *process {
	b.Helper()
	p := &process{nowhere: "127.0.0.1:" + difftest.FreePort(b.T)}
	var boxes []*signalbox.Box
	for _, address := range b.addresses {
		proxy := faultproxy.Start(b.T, address)
		p.proxies = append(p.proxies, proxy)
		box, err := signalbox.Open(b.Context(), "redis://"+proxy.Addr(), signalbox.Claim(quorumClaim))
		b.must(err)
		b.Cleanup(func() { // what it could not tell behind what was cut it may say
			if err := box.Close(); err != nil && !errors.Is(err, signalbox.ErrUnavailable) {
				b.Error(err)
			}
		})
		boxes = append(boxes, box)
	}
	p.Quorum = signalbox.NewQuorum(boxes...)
	b.Cleanup(func() { b.cut(p) }) // before the boxes close, which tell the servers what they could not tell yet
	return p
}

// cut makes exactly these servers unreachable for the process.
func (b *quorumBench) cut(p *process, servers ...int) {
	for i, proxy := range p.proxies {
		target := b.addresses[i]
		for _, down := range servers {
			if i == down {
				target = p.nowhere
			}
		}
		proxy.Retarget(target)
	}
}

func (b *quorumBench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *quorumBench) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("got %v, want %v", err, want)
	}
}

func (b *quorumBench) minority() int { return (len(b.addresses) - 1) / 2 }

// anyMinority draws which servers are cut off: none to as many as may be.
func (b *quorumBench) anyMinority(random *rand.Rand) []int {
	return random.Perm(len(b.addresses))[:random.IntN(b.minority()+1)]
}

func (b *quorumBench) state(server int, name string) *ledger.Resource {
	b.Helper()
	resource, err := ledger.NewResource(name)
	b.must(err)
	return resource
}

// leases is how many leases a server knows of the name.
func (b *quorumBench) leases(server int, name string) int64 {
	b.Helper()
	reply, err := b.direct[server].Eval(b.Context(), ledger.Probe, b.state(server, name).Keys(), "read").Result()
	b.must(err)
	stored, err := ledger.ReadStored(reply)
	b.must(err)
	return int64(stored[0].Count)
}

// nothingLeft waits until no server knows of a lease or a waiter: what was given back in the background may take a moment.
func (b *quorumBench) nothingLeft(name string) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C { // that is less than a ttl
		left := int64(0)
		for i := range b.addresses {
			// Looking settles: what has expired is no more.
			state, err := ledger.New(goredis.New(b.direct[i])).Inspect(b.Context(), b.state(i, name), 1)
			b.must(err)
			left += int64(state.Leases + state.Waiters)
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%d leases and waiters of %q are left", left, name)
		}
	}
}

// A minority that is down, or forgets everything, changes nothing for those who hold or want to.
func TestQuorumBearsTheLossOfAMinority(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		one, two := b.process(), b.process()
		var down []int
		for i := range b.minority() {
			down = append(down, i) // the first, where they queue
		}
		b.cut(one, down...)
		b.cut(two, down...)
		lease, err := one.Mutex("m").Acquire(b.Context(), signalbox.TTL(10*time.Second))
		b.must(err)
		if got := lease.Servers(); got != len(b.addresses)-len(down) {
			b.Errorf("held on %d servers", got)
		}
		_, err = two.Mutex("m").TryAcquire(b.Context())
		b.is(err, signalbox.ErrBusy)
		next := make(chan *signalbox.QuorumLease, 1)
		go func() {
			lease, err := two.Mutex("m").Acquire(b.Context())
			if err != nil {
				b.Error(err)
			}
			next <- lease
		}()
		b.must(lease.Err())
		b.must(lease.Release(b.Context()))
		if second := <-next; second == nil || second.Token() <= lease.Token() {
			b.Errorf("L2: %v after token %d", second, lease.Token())
		} else {
			b.must(second.Release(b.Context()))
		}
		b.is(lease.Err(), signalbox.ErrReleased)
		b.nothingLeft("m")
	})
}

func TestQuorumBearsAMinorityThatForgets(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		one, two := b.process(), b.process()
		lease, err := one.Mutex("m").Acquire(b.Context(), signalbox.TTL(6*time.Second))
		b.must(err)
		for i := range b.minority() {
			b.must(b.direct[i].FlushAll(b.Context()).Err())
		}
		// Each renewal finds out by itself; the majority goes on, and regains the others.
		had := func() (n int) {
			for i := range b.addresses {
				n += int(b.leases(i, "m"))
			}
			return n
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(2 * patience); had() < len(b.addresses) || lease.Servers() < len(b.addresses); <-tick.C {
			if time.Now().After(end) {
				b.Fatalf("believed to be held on %d servers, of which %d know", lease.Servers(), had())
			}
		}
		b.must(lease.Err())
		_, err = two.Mutex("m").TryAcquire(b.Context())
		b.is(err, signalbox.ErrBusy)
		b.must(lease.Err())
		b.must(lease.Release(b.Context()))
		b.nothingLeft("m")
	})
}

// Tokens increase over many holders of two processes, whichever minority each of them misses, and although the clocks of
// the servers are minutes apart.
func TestQuorumTokensIncrease(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		random := rand.New(rand.NewPCG(uint64(len(b.addresses)), 1)) //nolint:gosec // repeatable, not secret
		processes := []*process{b.process(), b.process()}
		last := int64(0)
		for turn := range cases.Count(200) {
			p := processes[turn%2]
			b.cut(p, b.anyMinority(random)...)
			// A connection that was cut may be found out by the request that uses it. What that was granted is taken back
			// behind it, and may be in the way for as long.
			lease, err := p.Mutex("m").TryAcquire(b.Context())
			passing := func() bool { return errors.Is(err, signalbox.ErrUnavailable) || errors.Is(err, signalbox.ErrBusy) }
			for end := time.Now().Add(patience); passing() && time.Now().Before(end); {
				lease, err = p.Mutex("m").TryAcquire(b.Context())
			}
			b.must(err)
			if lease.Token() <= last {
				b.Fatalf("L2: token %d after %d in turn %d", lease.Token(), last, turn)
			}
			last = lease.Token()
			b.must(lease.Release(b.Context()))
			if turn == 0 {
				for i, client := range b.direct {
					ahead := time.Duration(i) * time.Minute
					b.must(client.Eval(b.Context(), ledger.Probe, b.state(i, "m").Keys(), "token", last+ahead.Microseconds()).Err())
				}
			}
		}
		b.nothingLeft("m")
	})
}

// Two processes that race with different minorities cut off are never inside together, and both get on.
func TestQuorumLetsOneIn(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		const turns = 12
		var inside atomic.Int64
		var last atomic.Int64
		var workers sync.WaitGroup
		for i := range 3 {
			p := b.process()
			random := rand.New(rand.NewPCG(uint64(i), 2)) //nolint:gosec // repeatable, not secret
			workers.Go(func() {
				for range turns {
					b.cut(p, b.anyMinority(random)...)
					lease, err := p.Mutex("m").Acquire(b.Context())
					if err != nil {
						b.Error(err)
						return
					}
					if n := inside.Add(1); n != 1 {
						b.Errorf("L1: %d inside", n)
					}
					if before := last.Swap(lease.Token()); before >= lease.Token() {
						b.Errorf("L2: token %d after %d", lease.Token(), before)
					}
					inside.Add(-1)
					if err := lease.Release(b.Context()); err != nil {
						b.Error(err)
					}
				}
			})
		}
		workers.Wait()
		b.nothingLeft("m")
	})
}

// A holder that loses the majority stops before anybody else can have it; one that loses a minority does not notice.
func TestQuorumHolderStopsInTime(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		const ttl = 4 * time.Second // a slow machine must not take it away
		one, two := b.process(), b.process()
		lease, err := one.Mutex("m").Acquire(b.Context(), signalbox.TTL(ttl))
		b.must(err)
		for i := range b.minority() {
			one.proxies[i].Set(faultproxy.Fault{Requests: faultproxy.Direction{Drop: true}})
		}
		next := make(chan error, 1)
		go func() {
			second, err := two.Mutex("m").Acquire(b.Context())
			if err == nil && lease.Err() == nil {
				err = fmt.Errorf("L1: token %d is held while %d is", second.Token(), lease.Token())
			}
			if err == nil {
				err = second.Release(b.Context())
			}
			next <- err
		}()
		for range 3 { // it outlives its ttl by the majority
			select {
			case <-lease.Done():
				b.Fatalf("a minority was cut off: %v", lease.Err())
			case <-time.After(ttl / 2):
			}
		}
		for _, proxy := range one.proxies {
			proxy.Set(faultproxy.Fault{Requests: faultproxy.Direction{Drop: true}})
		}
		b.must(<-next)
		<-lease.Done()
		b.is(lease.Err(), signalbox.ErrLeaseLost)
		for _, proxy := range one.proxies {
			proxy.Restore()
		}
		b.nothingLeft("m")
	})
}

// What is left of a lock that is held on a minority only is given back, though its holder does not release it.
func TestQuorumGivesAMinorityBack(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		lease, err := b.process().Mutex("m").Acquire(b.Context(), signalbox.TTL(6*time.Second))
		b.must(err)
		for i := range b.minority() + 1 {
			b.must(b.direct[i].FlushAll(b.Context()).Err())
		}
		<-lease.Done()
		b.is(lease.Err(), signalbox.ErrLeaseLost)
		b.nothingLeft("m")
		b.is(lease.Release(b.Context()), signalbox.ErrLeaseLost)
	})
}

// Without a majority a try says so at once, a wait goes on until its context ends, and neither leaves anything on those
// that could be reached.
func TestQuorumWithoutAMajority(t *testing.T) {
	t.Parallel()
	overQuorums(t, func(b *quorumBench) {
		p := b.process()
		var down []int
		for i := range b.minority() + 1 {
			down = append(down, i)
		}
		b.cut(p, down...)
		_, err := p.Mutex("m").TryAcquire(b.Context())
		b.is(err, signalbox.ErrUnavailable)
		b.nothingLeft("m")
		ctx, cancel := context.WithTimeout(b.Context(), 4*quorumClaim)
		defer cancel()
		_, err = p.Mutex("m").Acquire(ctx)
		b.is(err, context.DeadlineExceeded)
		b.nothingLeft("m")
		// It comes back while somebody waits.
		done := make(chan error, 1)
		go func() {
			done <- p.Mutex("m").Do(b.Context(), func(ctx context.Context) error { return ctx.Err() })
		}()
		b.cut(p)
		b.must(<-done)
		b.nothingLeft("m")
	})
}

func TestQuorumRefusesBadInput(t *testing.T) {
	t.Parallel()
	address := difftest.Redis(t).Addr
	boxes := []*signalbox.Box{openBox(t, address), openBox(t, address), openBox(t, address)}
	for name, quorum := range map[string]*signalbox.Quorum{
		"none":  signalbox.NewQuorum(),
		"two":   signalbox.NewQuorum(boxes[:2]...),
		"twice": signalbox.NewQuorum(boxes[0], boxes[1], boxes[0]),
		"nil":   signalbox.NewQuorum(boxes[0], boxes[1], nil),
	} {
		if _, err := quorum.Mutex("m").Acquire(t.Context()); !errors.Is(err, signalbox.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	mutex := signalbox.NewQuorum(boxes...).Mutex("m")
	for name, option := range map[string]signalbox.AcquireOption{
		"pace":      signalbox.Pace(signalbox.Every(time.Second), 1),
		"reentrant": signalbox.Reentrant(),
		"handoff":   signalbox.LocalHandoff(2),
		"replicas":  signalbox.WithReplicas(1, time.Second),
		"on wait":   signalbox.OnWait(func(signalbox.Waiting) {}),
		"ttl":       signalbox.TTL(0),
	} {
		if _, err := mutex.TryAcquire(t.Context(), option); !errors.Is(err, signalbox.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
