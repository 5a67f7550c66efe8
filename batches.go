package signalbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// What nobody's goroutine waits for is sent in batches: of one server, so that one that hangs delays nobody else's answers;
// of one kind; and renewals of leases that have about as much time, so that a lease in need does not cut the others short.
// The waiters of one resource are one request, their process's heartbeat, and so are the leases of one resource that are
// renewed.

const batchMax = ledger.MaxBatch // calls in one batch

// spawn runs fn as a task, unless the box has been closed.
func (b *Box) spawn(fn func()) {
	b.mu.first.Lock()
	defer b.mu.first.Unlock()
	if !b.finished {
		b.tasks.Go(fn)
	}
}

// dispatch makes calls in goroutines of their own.
func (b *Box) dispatch(sends []sending) {
	type kind struct {
		server string
		call   acquisition.Call
		rank   acquisition.Rank
	}
	batches := make(map[kind][]sending)
	for _, s := range sends {
		p, single := s.life.errand.(*permit)
		if !single || s.call == acquisition.CallReweigh {
			b.spawn(func() { b.request(b.stopping, s) })
			continue
		}
		of := kind{b.transport.Server(p.resource.Key()), s.call, s.rank}
		batches[of] = append(batches[of], s)
	}
	for of, batch := range batches {
		switch of.call {
		case acquisition.CallRenew:
			b.dispatchRenewals(batch)
			continue
		case acquisition.CallHeartbeat:
			slices.SortFunc(batch, byName) // those of one resource are one heartbeat, wherever a batch ends
		default:
		}
		for part := range slices.Chunk(batch, batchMax) {
			b.spawn(func() { b.sendBatch(of.call, part) })
		}
	}
}

// sendBatch makes calls of one kind, and tells the lives what became of them.
func (b *Box) sendBatch(call acquisition.Call, batch []sending) {
	ctx, sent := b.stopping, b.clock.Now()
	switch call {
	case acquisition.CallAcquire:
		requests := make([]*ledger.AcquireRequest, len(batch))
		for i, s := range batch {
			requests[i] = permitOf(s).acquireRequest(b, &s)
		}
		results := b.background.AcquireAll(ctx, requests)
		b.answeredAll(batch, sent, func(i int) reply {
			return acquired(results[i].AcquireAnswer, results[i].Err).after(requests[i].Waited)
		})
	case acquisition.CallRelease:
		requests := make([]ledger.ReleaseRequest, len(batch))
		for i, s := range batch {
			requests[i] = permitOf(s).releaseRequest(s.during)
		}
		results := b.background.ReleaseAll(ctx, requests)
		b.answeredAll(batch, sent, func(i int) reply { return held(results[i].Hold, results[i].Err) })
	case acquisition.CallCancel:
		requests := make([]ledger.CancelRequest, len(batch))
		for i, s := range batch {
			requests[i] = permitOf(s).cancelRequest(s.during)
		}
		results := b.background.CancelAll(ctx, requests)
		b.answeredAll(batch, sent, func(i int) reply { return held(ledger.Held, results[i].Err) })
	default:
		b.heartbeat(ctx, batch, sent)
	}
}

func permitOf(s sending) *permit { return s.life.errand.(*permit) }

// answeredAll tells the lives of a batch what became of their calls.
func (b *Box) answeredAll(batch []sending, sent acquisition.Instant, became func(i int) reply) {
	var out outbox
	b.mu.first.Lock()
	for i := range batch {
		r := became(i)
		b.answered(&batch[i], sent, &r, &out)
	}
	b.mu.first.Unlock()
	b.perform(&out)
}

func byName(x, y sending) int {
	return strings.Compare(permitOf(x).resource.Name, permitOf(y).resource.Name)
}

// heartbeat says for all waiters of a batch, which stand in the order of names, that they are there: of those of one resource
// in one word, if all were named not long ago and nothing has changed since, and else by name.
func (b *Box) heartbeat(ctx context.Context, batch []sending, sent acquisition.Instant) {
	var named, unnamed [][]sending // each of one resource
	var stills []ledger.StillRequest
	b.mu.first.Lock()
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && byName(batch[0], batch[n]) == 0 {
			n++
		}
		part := batch[:n:n]
		batch = batch[n:]
		if version := b.versionOf(part, sent); version > 0 {
			unnamed = append(unnamed, part)
			stills = append(stills, ledger.StillRequest{
				Resource: permitOf(part[0]).resource, Process: b.process, Claim: b.claim, Version: version,
			})
		} else {
			named = append(named, part)
		}
	}
	b.mu.first.Unlock()
	if len(stills) > 0 {
		for i, result := range b.background.StillAll(ctx, stills) {
			if !result.Same && result.Err == nil {
				named = append(named, unnamed[i])
				continue
			}
			b.answeredAll(unnamed[i], sent, func(j int) reply {
				of := ledger.HeartbeatResult{NowMs: result.NowMs, Next: result.Next, Head: -1, Err: result.Err}
				if permitOf(unnamed[i][j]).heard.head {
					of.Head = j
				}
				return kept(&of, j).after(stills[i].Waited)
			})
		}
	}
	b.name(ctx, named)
}

// versionOf is what the waiters of one resource were told when they were named last, 0 if they have to be named again: a
// server forgets them after some claim times. Called with mu held.
func (b *Box) versionOf(waiters []sending, now acquisition.Instant) int64 {
	version := permitOf(waiters[0]).heard.version
	for _, s := range waiters {
		if h := permitOf(s).heard; h.version != version || now.Sub(h.at) > (ledger.Claims-2)*b.claim {
			return 0
		}
	}
	return version
}

// name says by name which waiters are there, and keeps what is told of the queue.
func (b *Box) name(ctx context.Context, parts [][]sending) {
	if len(parts) == 0 {
		return
	}
	sent := b.clock.Now()
	requests := make([]ledger.HeartbeatRequest, len(parts))
	for i, part := range parts {
		requests[i] = ledger.HeartbeatRequest{Resource: permitOf(part[0]).resource, Claim: b.claim, Process: b.process}
		for _, s := range part {
			requests[i].IDs = append(requests[i].IDs, permitOf(s).id)
		}
	}
	for i, result := range b.background.HeartbeatAll(ctx, requests) {
		b.answeredAll(parts[i], sent, func(j int) reply {
			permitOf(parts[i][j]).heard = heard{sent, result.Version, result.Err == nil && result.Head == j}
			return kept(&result, j).after(requests[i].Waited)
		})
	}
}

// kept is what a heartbeat says of the jth of its waiters.
func kept(r *ledger.HeartbeatResult, j int) reply {
	if r.Err != nil {
		return failed(r.Err)
	}
	a := acquisition.Answer{Outcome: acquisition.Waiting, Ahead: acquisition.Unknown, NowMs: r.NowMs, Next: r.Next}
	if r.Head == j {
		a.Ahead = 0
	}
	if _, astray := slices.BinarySearch(r.Gone, j); astray {
		a.Outcome = acquisition.Astray
	}
	return reply{answer: a}
}

// dispatchRenewals sends renewals, those with the least time first.
func (b *Box) dispatchRenewals(batch []sending) {
	b.mu.first.Lock()
	patience := make(map[*life]time.Duration, len(batch))
	for now, i := b.clock.Now(), 0; i < len(batch); i++ {
		l := batch[i].life
		patience[l] = patienceFor(l.machine.Deadline().Sub(now), b.claim)
	}
	b.mu.first.Unlock()
	for _, part := range alike(batch, patience) {
		b.spawn(func() { b.renew(part, patience[part[0].life]) })
	}
}

// patienceFor is how long the answer to a renewal may take, of a lease that has so much time left.
func patienceFor(left, claim time.Duration) time.Duration {
	return min(claim, max(left/2, time.Millisecond))
}

// alike splits renewals into batches whose leases have about as much time, those with the least first: one that cannot
// wait long must not hurry the others.
func alike(batch []sending, patience map[*life]time.Duration) (parts [][]sending) {
	slices.SortStableFunc(batch, func(x, y sending) int { return cmp.Compare(patience[x.life], patience[y.life]) })
	for len(batch) > 0 {
		least, n := patience[batch[0].life], 1
		for n < min(len(batch), batchMax) && patience[batch[n].life] < 2*least {
			n++
		}
		parts = append(parts, batch[:n:n])
		batch = batch[n:]
	}
	return parts
}

// renew sends the renewals of a batch, whose answers may take so long.
func (b *Box) renew(batch []sending, patience time.Duration) {
	slices.SortFunc(batch, byName)
	var requests []ledger.RenewRequest
	for i, s := range batch {
		if i == 0 || byName(batch[i-1], s) != 0 {
			requests = append(requests, ledger.RenewRequest{Resource: permitOf(s).resource})
		}
		last := &requests[len(requests)-1]
		last.Leases = append(last.Leases, permitOf(s).renewal())
	}
	ctx, done := context.WithTimeout(b.stopping, patience)
	defer done()
	sent := b.clock.Now()
	replies := make([]reply, 0, len(batch))
	for i, result := range b.renewals.RenewAll(ctx, requests) {
		for j := range requests[i].Leases {
			hold := ledger.Lost
			if result.Err == nil {
				hold = result.Holds[j]
			}
			replies = append(replies, held(hold, result.Err).after(requests[i].Waited))
		}
	}
	b.answeredAll(batch, sent, func(i int) reply { return replies[i] })
}
