package signalbox

import (
	"container/heap"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// The keeper is the one goroutine that knows when which lease must be renewed and which waiter be heard from. Leases
// and waiters put their duty into its heap, each at most once. When duties are due, the keeper takes them out and sends
// them in pipelines, each in a goroutine of its own so that one slow server delays nobody. The answer puts the duty in
// again. Due times are aligned to a grid, so that what can go together does.

const batchMax = 500 // calls in one pipeline

// duty is a place in the heap, owned by a lease or by a waiter.
type duty struct {
	due    time.Time
	index  int // in the heap plus 1, 0 = not in it
	over   bool
	lease  *Lease
	waiter *waiter
}

type keeper struct {
	box    *Box
	origin time.Time // of the grid
	wake   chan struct{}

	mu      sync.Mutex
	duties  duties
	started bool
	alarm   time.Time // when the goroutine will look again by itself; zero = never
}

// align moves a time to the grid of an eighth of an interval, never later.
func (k *keeper) align(at time.Time, interval time.Duration) time.Time {
	grid := interval / 8
	if grid <= 0 {
		return at
	}
	return k.origin.Add(at.Sub(k.origin) / grid * grid)
}

// schedule puts a duty in, or moves it. A duty that was cancelled stays out.
func (k *keeper) schedule(d *duty, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(d, due)
}

// await is schedule for a waiter that has its answer. If messages may have gone by since it asked it is due at once. That is
// looked at here, with k.mu held, so that either this or hasten has it ask again, and not both.
func (k *keeper) await(w *waiter, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if round := k.box.inbox.round.Load(); round != 0 && round != w.round.Load() {
		due = time.Now()
	}
	k.put(&w.duty, due)
}

// advance is schedule for a duty that may only come sooner.
func (k *keeper) advance(d *duty, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.index == 0 || due.Before(d.due) {
		k.put(d, due)
	}
}

// put is schedule with k.mu held.
func (k *keeper) put(d *duty, due time.Time) {
	if d.over {
		return
	}
	d.due = due
	if d.index > 0 {
		heap.Fix(&k.duties, d.index-1)
	} else {
		heap.Push(&k.duties, d)
	}
	if !k.started {
		k.started = true
		k.box.serve(k.run)
	} else if k.alarm.IsZero() || due.Before(k.alarm) {
		k.ring()
	}
}

// scheduled returns when a duty is due, and false if it is not in the heap: then the answer to a request is awaited.
func (k *keeper) scheduled(d *duty) (time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return d.due, d.index > 0
}

// cancel takes a duty out for good.
func (k *keeper) cancel(d *duty) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d.over = true
	if d.index > 0 {
		heap.Remove(&k.duties, d.index-1)
	}
}

// hasten makes every waiter in the heap due now that has not asked since the inbox opened for this round, and every lease
// that wants notice: messages may have gone by.
func (k *keeper) hasten(round int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, d := range k.duties {
		if d.lease != nil && d.lease.notice || d.waiter != nil && d.waiter.round.Load() != round {
			d.due = now
		}
	}
	heap.Init(&k.duties)
	k.ring()
}

func (k *keeper) ring() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.box.stopping.Done():
			return
		}
		leases, waiters, alarm := k.take()
		k.send(leases, waiters)
		if alarm.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(alarm))
		}
	}
}

// take removes what is due and says when the next is.
func (k *keeper) take() (leases []*Lease, waiters []*waiter, alarm time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for len(k.duties) > 0 && !k.duties[0].due.After(now) {
		d := heap.Pop(&k.duties).(*duty)
		if d.lease != nil {
			leases = append(leases, d.lease)
		} else {
			waiters = append(waiters, d.waiter)
		}
	}
	k.alarm = time.Time{}
	if len(k.duties) > 0 {
		k.alarm = k.duties[0].due
	}
	return leases, waiters, k.alarm
}

func (k *keeper) send(leases []*Lease, waiters []*waiter) {
	slices.SortFunc(leases, func(a, b *Lease) int { return a.Deadline().Compare(b.Deadline()) })
	for now := time.Now(); len(leases) > 0; {
		batch, patience := k.alike(leases, now)
		leases = leases[len(batch):]
		k.box.spawn(func() { k.renew(batch, patience) })
	}
	for batch := range slices.Chunk(waiters, batchMax) {
		k.box.spawn(func() { k.heartbeat(batch) })
	}
}

// alike returns the first of the leases, which stand in the order of their deadlines, that may go in one batch, and how
// long its answer may take: half of what is left. Where others can wait twice as long they go apart, so that a lease
// in need does not cut their renewals off.
func (k *keeper) alike(leases []*Lease, now time.Time) (batch []*Lease, patience time.Duration) {
	patienceOf := func(l *Lease) time.Duration {
		return min(k.box.claim, max(l.Deadline().Sub(now)/2, time.Millisecond))
	}
	patience = patienceOf(leases[0])
	n := 1
	for n < min(len(leases), batchMax) && patienceOf(leases[n]) < 2*patience {
		n++
	}
	return leases[:n:n], patience
}

// renew sends the renewals of a batch, one call for each resource, and hands out the answers.
func (k *keeper) renew(leases []*Lease, patience time.Duration) {
	slices.SortFunc(leases, func(a, b *Lease) int { return strings.Compare(a.resource.Name, b.resource.Name) })
	var requests []ledger.RenewRequest
	for i, lease := range leases {
		if i == 0 || lease.resource.Name != leases[i-1].resource.Name {
			requests = append(requests, ledger.RenewRequest{Resource: lease.resource})
		}
		last := &requests[len(requests)-1]
		last.Leases = append(last.Leases, ledger.Renewal{ID: lease.id, TTL: lease.ttl, Cool: lease.cool})
	}
	ctx, done := context.WithTimeout(k.box.stopping, patience)
	defer done()
	sent := time.Now()
	for i, result := range k.box.ledger.RenewAll(ctx, requests) {
		for j := range requests[i].Leases {
			hold := ledger.Lost
			if result.Err == nil {
				hold = result.Holds[j]
			}
			leases[0].renewed(sent, hold, result.Err)
			leases = leases[1:]
		}
	}
}

// heartbeat asks again for each waiter of a batch.
func (k *keeper) heartbeat(waiters []*waiter) {
	requests := make([]*ledger.AcquireRequest, 0, len(waiters))
	asking := waiters[:0]
	for _, w := range waiters {
		if request, ok := w.prepare(); ok {
			requests, asking = append(requests, request), append(asking, w)
		}
	}
	if len(requests) == 0 {
		return
	}
	ctx, done := context.WithTimeout(k.box.stopping, k.box.claim)
	defer done()
	sent := time.Now()
	for i, result := range k.box.ledger.AcquireAll(ctx, requests) {
		asking[i].answered(sent, result.AcquireAnswer, result.Err)
	}
}

// duties is the heap, the earliest first.
type duties []*duty

func (h duties) Len() int           { return len(h) }
func (h duties) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h duties) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

// Push is called by container/heap.
func (h *duties) Push(x any) {
	d := x.(*duty)
	*h = append(*h, d)
	d.index = len(*h)
}

// Pop is called by container/heap.
func (h *duties) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	d.index = 0
	return d
}
