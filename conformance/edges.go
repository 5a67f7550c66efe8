package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport"
)

// What only shows where two spans of time cross: a key that expired before the state, a ttl shorter than the claim
// time, a close while a renewal is on its way.
var edgePromises = map[string]func(*bench){
	"L4 L5 leases expired before the state": leasesOutlived,
	"L6 queue expired before the state":     queueOutlived,
	"ttl shorter than the claim time":       ttlBelowClaim,
	"close while renewals are under way":    closeDuringRenewals,
	"close while a server is gone":          closeWithoutServer,
}

// leasesOutlived: the key of the leases lives as long as they do, the state may live longer, for ever with an
// operator's limit. A record that was left behind like that is no lease that somebody tore out.
func leasesOutlived(b *bench) {
	for _, operator := range []int{0, 1} {
		b.use(fmt.Sprint(b.name, operator))
		b.resize(operator)
		b.granted("before", 1, 1) // makes the state live for longer
		b.release("before")
		short := b.request("dead", 1, 1, 0)
		short.TTL = 10 * time.Millisecond
		_, err := b.ledger.Acquire(b.ctx, short)
		b.must(err)
		expires := b.stored().Leases[0].UntilMs
		b.eventually("the end of the lease", func() bool { return b.client.Time(b.ctx).Val().UnixMilli() > expires })
		b.must(b.client.Del(b.ctx, b.keys[1]).Err()) // as the server does in its own time
		equal(b, "renew", b.renew("dead"), ledger.Lost)
		b.granted("next", 1, 1)
		equal(b, "holders", b.holders(), "next")
	}
}

// queueOutlived: so may the records of waiters that died.
func queueOutlived(b *bench) {
	b.resize(1)
	b.granted("a", 1, 1)
	for _, id := range []string{"v", "w", "x", "y", "z"} {
		b.waits(id, 1, 1)
	}
	b.must(b.client.Del(b.ctx, b.keys[2], b.keys[3]).Err()) // as the server does in its own time
	b.release("a")
	b.granted("b", 1, 1)
	b.waits("c", 1, 1)
	for id, record := range b.client.HGetAll(b.ctx, b.keys[0]).Val() {
		if strings.HasPrefix(record, "W ") && id != qualified("c") {
			b.Errorf("the record of %s stays for ever: %s", id, record)
		}
	}
	equal(b, "waiters", b.waiters(), "c")
	equal(b, "held", b.inspect().Held, 1)
}

// ttlBelowClaim: a grant lasts for the claim time, and its first renewal, which the holder may not hear of, for the ttl.
func ttlBelowClaim(b *bench) {
	first := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	var broken faults
	box := b.hooked(&broken, b.claim(signalbox.DefaultClaim))
	granted := make(chan *signalbox.Lease, 1)
	queued := make(chan signalbox.Waiting, 1)
	go func() {
		lease, err := box.Mutex(b.name).Acquire(b.ctx, b.ttl(300*time.Millisecond),
			signalbox.OnWait(func(w signalbox.Waiting) { queued <- w }))
		if err != nil {
			b.Error(err)
		}
		granted <- lease
	}()
	awaited(b, "a place in the queue", queued)
	b.must(first.Release(b.ctx))
	lease := awaited(b, "the waiter's turn", granted)
	if lease == nil {
		return
	}
	broken.loseReplies.Store(1 << 30)
	next := b.lease(b.box().Mutex(b.name).Acquire(b.ctx))
	b.is(lease.Err(), signalbox.ErrLeaseLost)
	b.must(next.Release(b.ctx))
}

// hangingPipelines lets no pipeline, thus no renewal, reach the server, until it is told to let them pass.
type hangingPipelines struct {
	faults
	hangs, passes atomic.Bool
}

// Pipeline is part of transport.Transport.
func (h *hangingPipelines) Pipeline(ctx context.Context, commands []transport.Command) []transport.Reply {
	if h.passes.Load() {
		return h.Transport.Pipeline(ctx, commands)
	}
	h.hangs.Store(true)
	<-ctx.Done()
	return transport.Failed(len(commands), ctx.Err())
}

// closeDuringRenewals: what Close interrupts is a renewal, not the lease: it is still to be released.
func closeDuringRenewals(b *bench) {
	var network hangingPipelines
	box := b.hooked(&network)
	const count = 20
	leases := make([]*signalbox.Lease, count)
	for i := range leases {
		// The first must last until the last is there, however often the server is away meanwhile.
		leases[i] = b.lease(box.Semaphore(b.name, count).Acquire(b.ctx, signalbox.TTL(9*time.Second+4*b.away)))
	}
	b.eventually("renewals that hang", network.hangs.Load)
	network.passes.Store(true)
	b.must(box.Close())
	for _, lease := range leases {
		b.is(lease.Err(), signalbox.ErrClosed)
	}
	equal(b, "leases", b.inspect().Leases, 0)
}

// closeWithoutServer: Close does not wait for as long as its leases could.
func closeWithoutServer(b *bench) {
	var broken faults
	box := b.hooked(&broken)
	b.lease(box.Mutex(b.name).Acquire(b.ctx, signalbox.TTL(time.Hour)))
	broken.loseRequests.Store(1 << 30)
	closed := make(chan error, 1)
	go func() { closed <- box.Close() }()
	err := awaited(b, "the end of Close", closed)
	b.is(err, signalbox.ErrUnavailable)
	if !strings.Contains(err.Error(), "1 leases") || !strings.Contains(err.Error(), b.name) {
		b.Errorf("Close does not say what it could not tell: %v", err)
	}
}
