package signalbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
	"github.com/signalbox-io/signalbox/internal/transport/over"
)

// A quorum whose servers fall silent and come back, in virtual time: how long it takes is exact.

// roundTrip is how long an answer takes.
const roundTrip = time.Millisecond

// hushed is a transport to a server that can fall silent: then requests hang for as long as a client lets them. They arrive
// or not, but no answer does.
type hushed struct {
	*goredis.Transport
	mu     sync.Mutex
	silent bool
	deaf   bool          // while it is silent requests do not arrive
	slow   time.Duration // added to a round trip
}

func (h *hushed) hush() { h.fallSilent(true) }

func (h *hushed) fallSilent(deaf bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent, h.deaf = true, deaf
}

func (h *hushed) speak() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = false
}

// Do is part of transport.Transport.
func (h *hushed) Do(ctx context.Context, command transport.Command) (any, error) {
	h.mu.Lock()
	silent, deaf, way := h.silent, h.deaf, (roundTrip+h.slow)/2
	h.mu.Unlock()
	if silent {
		if !deaf {
			_, _ = h.Transport.Do(context.WithoutCancel(ctx), command)
		}
		hung := time.NewTimer(3 * time.Second) // the read timeout of a client
		defer hung.Stop()
		select {
		case <-hung.C:
		case <-ctx.Done():
		}
		return nil, context.DeadlineExceeded // nobody can know which it was
	}
	time.Sleep(way)
	defer time.Sleep(way)
	return h.Transport.Do(ctx, command)
}

// Pipeline is part of transport.Transport.
func (h *hushed) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	replies := make([]transport.Reply, len(commands))
	for i, command := range commands {
		replies[i].Value, replies[i].Err = h.Do(ctx, command)
	}
	return replies
}

// hall is servers and the processes that use them.
type hall struct {
	*testing.T
	engines []*engine.Engine
	clients []*redis.Client
}

func inHall(t *testing.T, servers int, test func(h *hall)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &hall{T: t}
		for range servers {
			e, err := engine.Open(engine.Options{})
			must(t, err)
			client := redis.NewClient(&redis.Options{
				Dialer:     func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
				MaxRetries: -1, DisableIdentity: true, Addr: "engine",
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			h.engines, h.clients = append(h.engines, e), append(h.clients, client)
			t.Cleanup(func() {
				must(t, client.Close())
				must(t, e.Close())
			})
		}
		test(h)
	})
}

// process is a quorum over all servers, with what carries it there.
func (h *hall) process() (*signalbox.Quorum, []*hushed) {
	h.Helper()
	q, lines, _ := h.boxes()
	return q, lines
}

func (h *hall) boxes() (q *signalbox.Quorum, lines []*hushed, boxes []*signalbox.Box) {
	h.Helper()
	for _, client := range h.clients {
		line := &hushed{Transport: goredis.New(client)}
		box := over.New(line)
		h.Cleanup(func() { h.closed(box) })
		boxes, lines = append(boxes, box), append(lines, line)
	}
	return signalbox.NewQuorum(boxes...), lines, boxes
}

// closed closes a box. What a silent server could not be told may be said.
func (h *hall) closed(box *signalbox.Box) {
	h.Helper()
	if err := box.Close(); err != nil && !errors.Is(err, signalbox.ErrUnavailable) {
		h.Error(err)
	}
}

// free asserts that no server knows of a lease or waiter of the name after a while.
func (h *hall) free(name string) {
	h.Helper()
	time.Sleep(5 * time.Second)
	for i, client := range h.clients {
		box := signalbox.New(client)
		state, err := box.Inspect(h.Context(), name)
		must(h.T, err)
		if state.Leases+state.Waiters != 0 {
			h.Errorf("server %d has %d leases and %d waiters of %q", i, state.Leases, state.Waiters, name)
		}
		must(h.T, box.Close())
	}
}

func (h *hall) acquire(q *signalbox.Quorum, options ...signalbox.AcquireOption) (*signalbox.QuorumLease, time.Duration) {
	h.Helper()
	begun := time.Now()
	lease, err := q.Mutex("m").Acquire(h.Context(), options...)
	must(h.T, err)
	return lease, time.Since(begun)
}

func (h *hall) within(what string, took, most time.Duration) {
	h.Helper()
	if took > most {
		h.Errorf("%s took %v, more than %v", what, took, most)
	}
}

// heldOn waits until a lease is held on so many servers.
func (h *hall) heldOn(lease *signalbox.QuorumLease, servers int, most time.Duration) {
	h.Helper()
	for end := time.Now().Add(most); lease.Servers() != servers; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("held on %d servers after %v, not on %d: %v", lease.Servers(), most, servers, lease.Err())
		}
	}
	must(h.T, lease.Err())
}

// Finding 7: an acquisition took 5.1 s while the first server was silent, and so did each one after it.
func TestQuorumPassesOverASilentServer(t *testing.T) {
	for silent := range 3 {
		inHall(t, 3, func(h *hall) {
			q, lines := h.process()
			lease, usual := h.acquire(q)
			must(t, lease.Release(h.Context()))
			lines[silent].hush()
			for turn := range 3 {
				lease, took := h.acquire(q)
				if turn == 0 {
					h.within("finding out", took, 300*time.Millisecond)
				} else {
					h.within("the next", took, usual)
				}
				if lease.Servers() != 2 {
					h.Errorf("held on %d servers", lease.Servers())
				}
				begun := time.Now()
				must(t, lease.Release(h.Context()))
				h.within("releasing", time.Since(begun), 10*roundTrip)
			}
			lines[silent].speak()
			h.free("m")
			lease, _ = h.acquire(q) // which asks for a sign of life
			must(t, lease.Release(h.Context()))
			time.Sleep(time.Second)
			lease, took := h.acquire(q)
			h.within("with all", took, usual)
			if lease.Servers() != 3 {
				h.Errorf("held on %d servers after the silent one came back", lease.Servers())
			}
			must(t, lease.Release(h.Context()))
			h.free("m")
		})
	}
}

// A server that falls silent while it is held there does not hold up the release.
func TestQuorumReleasesBesideASilentServer(t *testing.T) {
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		lease, _ := h.acquire(q, signalbox.TTL(10*time.Second))
		lines[1].hush()
		begun := time.Now()
		must(t, lease.Release(h.Context()))
		h.within("releasing", time.Since(begun), 300*time.Millisecond)
		lines[1].speak()
		h.free("m")
	})
}

// Finding 7: one server away and back, then another, and the majority was lost though never two were away at once.
func TestQuorumRegainsAServerThatCameBack(t *testing.T) {
	const ttl = 3 * time.Second
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		lease, _ := h.acquire(q, signalbox.TTL(ttl))
		for round := range 6 {
			line := lines[round%3]
			line.hush()
			h.heldOn(lease, 2, 2*ttl)
			line.speak()
			h.heldOn(lease, 3, 2*ttl)
		}
		other, _ := h.process()
		if _, err := other.Mutex("m").TryAcquire(h.Context()); err == nil {
			h.Error("L1: two hold")
		}
		must(t, lease.Err())
		must(t, lease.Release(h.Context()))
		h.free("m")
		next, _ := h.acquire(other)
		if next.Token() <= lease.Token() {
			h.Errorf("L2: token %d after %d", next.Token(), lease.Token())
		}
		must(t, next.Release(h.Context()))
	})
}

// Servers forget all they know, one after the other, and are regained: each learns the token again before it counts. The
// clock of the first is ahead, so that what they would grant by themselves is smaller.
func TestQuorumRaisesTheTokenWhereItRegains(t *testing.T) {
	const ttl = 3 * time.Second
	inHall(t, 3, func(h *hall) {
		q, _ := h.process()
		lease, _ := h.acquire(q)
		must(t, lease.Release(h.Context()))
		keys := (&quorumBench{T: t}).state(0, "m").Keys()
		ahead := lease.Token() + time.Hour.Microseconds()
		must(t, h.clients[0].Eval(h.Context(), ledger.Probe, keys, "token", ahead).Err())
		lease, _ = h.acquire(q, signalbox.TTL(ttl))
		for _, client := range h.clients {
			must(t, client.FlushAll(h.Context()).Err())
			h.heldOn(lease, 2, 2*ttl)
			h.heldOn(lease, 3, 2*ttl)
		}
		must(t, lease.Release(h.Context()))
		next, _ := h.acquire(q)
		if next.Token() <= lease.Token() {
			h.Errorf("L2: token %d after %d", next.Token(), lease.Token())
		}
		must(t, next.Release(h.Context()))
		h.free("m")
	})
}

// A server that could not be had at first is had later.
func TestQuorumGetsAServerItNeverHad(t *testing.T) {
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		lines[0].hush()
		lease, _ := h.acquire(q, signalbox.TTL(3*time.Second))
		lines[0].speak()
		h.heldOn(lease, 3, 5*time.Second)
		must(t, lease.Release(h.Context()))
		h.free("m")
	})
}

// Those who queue at the server that is to be regained do not keep it from its holder, nor get in.
func TestQuorumRegainsBehindOthers(t *testing.T) {
	const ttl = 3 * time.Second
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		lease, _ := h.acquire(q, signalbox.TTL(ttl))
		lines[0].hush()
		h.heldOn(lease, 2, 2*ttl)
		inside := make(chan *signalbox.QuorumLease, 3)
		for range 3 {
			other, _ := h.process()
			go func() {
				next, err := other.Mutex("m").Acquire(h.Context())
				if err != nil {
					t.Error(err)
				} else if lease.Err() == nil {
					t.Error("L1: two hold")
				}
				inside <- next
			}()
		}
		time.Sleep(ttl)
		lines[0].speak()
		h.heldOn(lease, 3, 2*ttl)
		must(t, lease.Release(h.Context()))
		for range 3 {
			must(t, (<-inside).Release(h.Context()))
		}
		h.free("m")
	})
}

// An operator who ends the lease on one server means it: that server is left alone.
func TestQuorumDoesNotRegainWhatWasForced(t *testing.T) {
	const ttl = 3 * time.Second
	inHall(t, 3, func(h *hall) {
		q, _ := h.process()
		lease, _ := h.acquire(q, signalbox.TTL(ttl))
		box := signalbox.New(h.clients[1])
		_, err := box.ForceAll(h.Context(), "m")
		must(t, err)
		h.heldOn(lease, 2, ttl)
		time.Sleep(5 * ttl)
		h.heldOn(lease, 2, 0)
		must(t, lease.Release(h.Context()))
		must(t, box.Close())
		h.free("m")
	})
}

// What is regained is held for as long as was asked for in all, not anew.
func TestQuorumHoldsAtLeastFromTheFirstGrant(t *testing.T) {
	const ttl = 3 * time.Second
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		lease, _ := h.acquire(q, signalbox.TTL(ttl), signalbox.HoldAtLeast(time.Minute))
		begun := time.Now()
		time.Sleep(30 * time.Second)
		lines[2].hush()
		h.heldOn(lease, 2, 2*ttl)
		lines[2].speak()
		h.heldOn(lease, 3, 2*ttl)
		must(t, lease.Release(h.Context()))
		other, _ := h.process()
		if _, err := other.Mutex("m").TryAcquire(h.Context()); err == nil {
			h.Error("it was not held for as long as was asked for")
		}
		time.Sleep(time.Until(begun.Add(time.Minute + 100*time.Millisecond)))
		next, took := h.acquire(other)
		h.within("acquiring", took, 300*time.Millisecond)
		if next.Servers() != 3 {
			h.Errorf("held on %d servers", next.Servers())
		}
		must(t, next.Release(h.Context()))
	})
}

// Servers that are all slower than the patience are given the time they need.
func TestQuorumWaitsForServersThatAreAllSlow(t *testing.T) {
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		for _, line := range lines {
			line.slow = 400 * time.Millisecond
		}
		lease, took := h.acquire(q)
		h.within("acquiring", took, 6*time.Second)
		must(t, lease.Release(h.Context()))
		h.free("m")
	})
}

// Without a majority an acquisition goes on until there is one, and leaves nothing on the one server that answers.
func TestQuorumComesBackWithItsServers(t *testing.T) {
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		lines[0].hush()
		lines[2].hush()
		time.AfterFunc(20*time.Second, func() {
			lines[0].speak()
			lines[2].speak()
		})
		lease, took := h.acquire(q)
		h.within("acquiring after 20 s of silence", took-20*time.Second, 3*time.Second)
		must(t, lease.Release(h.Context()))
		h.free("m")
	})
}

// Close does not wait longer for a server that is silent because a lease is regaining it.
func TestQuorumClosesWhileItRegains(t *testing.T) {
	inHall(t, 3, func(h *hall) {
		q, lines, boxes := h.boxes()
		lease, _ := h.acquire(q, signalbox.TTL(3*time.Second))
		lines[1].hush()
		h.heldOn(lease, 2, 6*time.Second)
		time.Sleep(1500 * time.Millisecond) // it asks again
		begun := time.Now()
		for _, box := range boxes {
			h.closed(box)
		}
		h.within("closing", time.Since(begun), 7*time.Second) // twice the claim time, and what the test adds
		<-lease.Done()
		says(t, lease.Err(), signalbox.ErrClosed, "majority")
		lines[1].speak()
		h.free("m")
	})
}

// Processes from which servers fall away and come back at random, more than a minority at times: whoever holds is alone,
// tokens increase, and nothing stays behind.
func TestQuorumUnderRandomSilence(t *testing.T) {
	for seed := range uint64(cases.Count(10)) {
		inHall(t, 3+2*int(seed%2), func(h *hall) {
			var last, turns atomic.Int64
			var workers, nemeses sync.WaitGroup
			end := time.Now().Add(2 * time.Minute)
			for worker := range uint64(3) {
				random := rand.New(rand.NewPCG(seed, worker)) //nolint:gosec // repeatable, not secret
				q, lines := h.process()
				for i, line := range lines {
					random := rand.New(rand.NewPCG(seed, 100*worker+uint64(i)+10)) //nolint:gosec // repeatable, not secret
					nemeses.Go(func() { line.fail(random, end) })
				}
				workers.Go(func() {
					for time.Now().Before(end) {
						ctx, cancel := context.WithTimeout(h.Context(), 20*time.Second)
						lease, err := q.Mutex("m").Acquire(ctx, signalbox.TTL(time.Second+time.Duration(random.IntN(2000))*time.Millisecond))
						cancel()
						if err == nil {
							turns.Add(1)
							h.holdAlone(lease, &last, time.Duration(random.IntN(6000))*time.Millisecond)
						}
					}
				})
			}
			workers.Wait()
			nemeses.Wait()
			if turns.Load() < 10 {
				h.Errorf("only %d turns with seed %d", turns.Load(), seed)
			}
			h.free("m")
		})
	}
}

// fail falls silent and speaks again at random until the end.
func (h *hushed) fail(random *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(time.Duration(random.IntN(15000)) * time.Millisecond)
		h.fallSilent(random.IntN(2) == 0)
		time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		h.speak()
	}
}

// holdAlone holds a lease for a while, and looks whether anybody who came later is in too.
func (h *hall) holdAlone(lease *signalbox.QuorumLease, last *atomic.Int64, span time.Duration) {
	if before := last.Swap(lease.Token()); before >= lease.Token() && lease.Err() == nil {
		h.Errorf("L2: token %d after %d", lease.Token(), before)
	}
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		newest := last.Load()
		if lease.Err() != nil {
			break
		}
		if newest > lease.Token() {
			h.Errorf("L1: token %d is held while %d is", lease.Token(), newest)
		}
	}
	_ = lease.Release(h.Context()) // what was lost is no fault here
}

// Servers that say nothing give no reason: the error says that instead.
func TestQuorumOfSilentServersSaysSo(t *testing.T) {
	inHall(t, 3, func(h *hall) {
		q, lines := h.process()
		for i := range lines {
			lines[i].hush()
		}
		_, err := q.Mutex("m").TryAcquire(h.Context())
		says(t, err, signalbox.ErrUnavailable, "gave no answer in time")
	})
}
