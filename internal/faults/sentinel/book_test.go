package sentinel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/topology"
)

// The book has every grant of two mutexes, and what was written with WAIT.
//
//	plain  granted as soon as the primary says so. A failover may lose the grant, and then two hold: only between the
//	       fault and the healing, and the later one has the larger token, so that the fence refuses the other.
//	sure   counts as held only if both replicas have it (WithReplicas). No failover loses that: as long as the
//	       replicas have it, nobody else is in.
//
// The fence is a store that takes a write if its token is the largest so far.

const (
	replicas    = 2
	replicaWait = 300 * time.Millisecond // far less than a third of sureTTL: no renewal is in between
	sureTTL     = 3 * time.Second
)

type held struct {
	name   string
	lease  *signalbox.Lease
	called time.Time
	until  time.Time // until when the replicas have it
}

type tokenAt struct {
	at    time.Time
	token int64
}

type book struct {
	t       *testing.T
	ctx     context.Context // ends when all are to stop
	stop    context.CancelFunc
	boxes   []*signalbox.Box
	writer  *redis.Client
	workers sync.WaitGroup

	mu      sync.Mutex
	wrong   string // the first promise that was broken
	held    map[string][]*held
	seen    map[string][]tokenAt
	fence   map[string]int64
	blind   bool      // writes may be lost just now
	calm    time.Time // since when they are not
	granted map[string]int
	double  map[string]int
	late    int // writes that the fence refused
	failed  int
	kept    []int64 // written, and acknowledged by both replicas
}

func openBook(t *testing.T, group *topology.Sentinel) *book {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	b := &book{
		t: t, ctx: ctx, stop: stop, held: map[string][]*held{}, seen: map[string][]tokenAt{}, fence: map[string]int64{},
		granted: map[string]int{}, double: map[string]int{}, calm: time.Now(),
	}
	t.Cleanup(b.close)
	addrs, master := group.Addrs()
	b.writer = redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: master, SentinelAddrs: addrs, ReadTimeout: time.Second, ContextTimeoutEnabled: true,
	})
	for range 4 {
		box := faults.Open(t, faults.WithOption(group.URL(), "read_timeout=500ms"), faults.Claim)
		b.boxes = append(b.boxes, box)
		b.workers.Go(func() { b.work(box, "plain", signalbox.TTL(faults.TTL)) })
		b.workers.Go(func() { b.work(box, "sure", signalbox.TTL(sureTTL), signalbox.WithReplicas(replicas, replicaWait)) })
	}
	b.workers.Go(b.write)
	b.turns()
	return b
}

// close ends all that work, and with them what they hold.
func (b *book) close() {
	b.stop()
	for _, box := range b.boxes {
		if err := box.Close(); err != nil {
			b.t.Errorf("close a box: %v", err)
		}
	}
	b.boxes = nil
	b.workers.Wait()
	if b.writer != nil {
		_ = b.writer.Close() // it has said what it had to say
		b.writer = nil
	}
	b.report()
}

func (b *book) report() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wrong != "" && !b.t.Failed() {
		b.t.Fatal(b.wrong)
	}
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%d plain grants, %d of them beside another; %d sure ones, %d beside another whose replicas had it no more; "+
		"%d writes refused by the fence; %d calls failed; %d writes acknowledged by both replicas, none lost",
		b.granted["plain"], b.double["plain"], b.granted["sure"], b.double["sure"], b.late, b.failed, len(b.kept))
}

// violated notes a promise that was broken. mu is held.
func (b *book) violated(format string, args ...any) {
	if b.wrong == "" {
		b.wrong = fmt.Sprintf(format, args...)
	}
}

// turns returns when each mutex was granted a few times more, and something more is written for good.
func (b *book) turns() {
	b.t.Helper()
	counts := func() [2]int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return [2]int{b.granted["plain"], b.granted["sure"]}
	}
	before := counts()
	faults.Await(b.t, "turns of the plain mutex", func() bool {
		b.report()
		return counts()[0] > before[0]+5
	})
}

// losing says whether writes may be lost from now on.
func (b *book) losing(now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blind, b.calm = now, time.Now()
}

func (b *book) work(box *signalbox.Box, name string, options ...signalbox.AcquireOption) {
	for b.ctx.Err() == nil {
		called := time.Now()
		ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
		lease, err := box.Mutex(name).Acquire(ctx, options...)
		cancel()
		switch {
		case errors.Is(err, signalbox.ErrClosed), b.ctx.Err() != nil && err != nil:
			return
		case err != nil:
			b.couldNot(err, called)
			continue
		}
		h := &held{name: name, lease: lease, called: called, until: lease.Deadline()}
		if name == "plain" || lease.Replicas() >= replicas {
			b.enter(h)
			b.hold(h)
			b.leave(h)
		}
		_ = lease.Release(context.Background()) // nobody may be there, or know of it
	}
}

// couldNot judges an acquisition that failed: nobody was there, or it lost its grant while it waited for the replicas.
func (b *book) couldNot(err error, called time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed++
	lost := errors.Is(err, signalbox.ErrLeaseLost) && (b.blind || called.Before(b.calm))
	if !lost && !errors.Is(err, signalbox.ErrUnavailable) {
		b.violated("an acquisition failed: %v", err)
	}
}

// enter judges a grant by those that are held already.
func (b *book) enter(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, token := time.Now(), h.lease.Token()
	for _, other := range b.seen[h.name] {
		if other.token == token || other.token > token && other.at.Before(h.called) {
			b.violated("L2: %s was granted with token %d after %d was seen", h.name, token, other.token)
		}
	}
	seen := append(b.seen[h.name], tokenAt{now, token})
	b.seen[h.name] = seen[max(0, len(seen)-100):]
	for _, other := range b.held[h.name] {
		if other.lease.Err() != nil || !now.Before(other.lease.Deadline()) || h.lease.Err() != nil {
			continue
		}
		b.double[h.name]++
		switch {
		case h.name == "sure" && now.Before(other.until):
			b.violated("two hold what both replicas had acknowledged: tokens %d (until %v) and %d at %v", other.lease.Token(), other.until, token, now)
		case !b.blind && other.lease.Token() > b.calm.UnixMicro():
			b.violated("L1: two hold %s, though nothing could be lost: tokens %d and %d", h.name, other.lease.Token(), token)
		}
	}
	b.granted[h.name]++
	b.held[h.name] = append(b.held[h.name], h)
}

// hold works for a moment, sometimes until the lease was renewed, and then writes with its token.
func (b *book) hold(h *held) {
	span := rand.N(5 * time.Millisecond)
	if rand.IntN(10) == 0 {
		span = faults.TTL
	}
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.lease.Done():
	case <-b.ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if token := h.lease.Token(); token >= b.fence[h.name] {
		b.fence[h.name] = token
	} else {
		b.late++
	}
}

func (b *book) leave(h *held) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held[h.name] = slices.DeleteFunc(b.held[h.name], func(other *held) bool { return other == h })
}

// write writes numbers, and remembers those that both replicas have.
func (b *book) write() {
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	for n := int64(1); b.ctx.Err() == nil; n++ {
		<-pace.C
		pipe := b.writer.Pipeline()
		pipe.SetBit(b.ctx, "numbers", n, 1)
		waited := pipe.Do(b.ctx, "WAIT", replicas, replicaWait.Milliseconds())
		if _, err := pipe.Exec(b.ctx); err != nil {
			continue
		}
		if have, err := waited.Int(); err == nil && have >= replicas {
			b.mu.Lock()
			b.kept = append(b.kept, n)
			b.mu.Unlock()
		}
	}
}

// nothingLost looks on the primary for all that both replicas had.
func (b *book) nothingLost(primary *redis.Client) {
	b.t.Helper()
	b.report()
	b.mu.Lock()
	kept := slices.Clone(b.kept)
	b.mu.Unlock()
	bits, err := primary.Get(b.t.Context(), "numbers").Bytes()
	if err != nil {
		b.t.Fatal(err)
	}
	var lost []int64
	for _, n := range kept {
		if at := n / 8; at >= int64(len(bits)) || bits[at]&(0x80>>(n%8)) == 0 {
			lost = append(lost, n)
		}
	}
	if len(lost) > 0 {
		b.t.Fatalf("%d of %d numbers that both replicas had acknowledged are lost: %d to %d, the last written was %d",
			len(lost), len(kept), lost[0], lost[len(lost)-1], kept[len(kept)-1])
	}
}
