package queue

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// The producer makes one call at a time, and numbers them, so that the server can tell a call that comes again (its reply
// was lost) from a new one, and refuse one that comes late. Whoever enqueues while a call is under way joins the next one:
// who finds none under way makes it for all. So the busier the producer, the larger its batches, and nobody waits for a
// batch to fill.
//
// A call that failed without anybody knowing whether it ran is repeated, under its number, before anything else is sent, for
// as long as somebody waits for it.

// batch is the items of one caller.
type batch struct {
	items    []store.Item
	outcomes []store.Outcome
	err      error
	done     chan struct{}
	gone     bool  // the caller has given up; under mu
	failed   error // the last failure of its call, if it has not been answered; under mu
}

type producer struct {
	running bool          // there is a goroutine that makes calls
	bell    chan struct{} // holds one: it is to look at what is queued
	queued  []*batch
	number  int64
}

// ManyOutcome is what became of one of several requests.
type ManyOutcome struct {
	ID        string
	Duplicate bool
	Err       error
}

// EnqueueMany adds jobs, in one call for each 500. The outcomes stand in the order of the requests; a request that is
// invalid, or whose parent has failed, has an error of its own and keeps no other from being enqueued. The error is for all
// of those without an outcome.
func (q *Queue) EnqueueMany(ctx context.Context, requests ...Request) ([]ManyOutcome, error) {
	return q.enqueueWrapped(ctx, requests, func(ctx context.Context, requests []Request) ([]ManyOutcome, error) {
		return q.enqueueMany(ctx, q.observers.meta(ctx), requests)
	})
}

func (q *Queue) enqueueMany(ctx context.Context, meta string, requests []Request) ([]ManyOutcome, error) {
	outcomes := make([]ManyOutcome, len(requests))
	items, places := make([]store.Item, 0, len(requests)), make([]int, 0, len(requests))
	own := ownIDs(requests)
	for i := range requests {
		r := &requests[i]
		if outcomes[i].Err = r.err; r.err == nil {
			outcomes[i].Err = r.parentsFirst(own, i)
		}
		if outcomes[i].Err != nil {
			continue
		}
		items, places = append(items, r.item), append(places, i)
		item := &items[len(items)-1]
		if item.ID == "" {
			item.ID = q.newID()
		}
		item.Rest = withMeta(meta, item.Rest)
	}
	for start := 0; start < len(items); {
		end, bytes := start, 0
		for end < len(items) && end-start < store.MostItems && (end == start || bytes+len(items[end].Rest) <= MaxPayload) {
			bytes += len(items[end].Rest)
			end++
		}
		told, err := q.enqueue(ctx, items[start:end])
		if err != nil {
			return outcomes[:places[start]], err
		}
		for i, o := range told {
			outcomes[places[start+i]] = outcomeOf(&items[start+i], o)
		}
		start = end
	}
	return outcomes, nil
}

func outcomeOf(item *store.Item, o store.Outcome) ManyOutcome {
	outcome := ManyOutcome{ID: item.ID, Duplicate: o.Known || o.Other != ""}
	if o.Other != "" {
		outcome.ID = o.Other
	}
	if o.Parent != "" {
		outcome.Err = fmt.Errorf("enqueue %q: %w: %s", item.Lane.Kind, ErrParent, o.Parent)
	}
	return outcome
}

// ownIDs says where jobs with ids of their own stand first.
func ownIDs(requests []Request) map[string]int {
	own := map[string]int{}
	for i := len(requests) - 1; i >= 0; i-- {
		if id := requests[i].item.ID; id != "" {
			own[id] = i
		}
	}
	return own
}

// parentsFirst refuses a job that is to wait for one behind it. The server takes jobs in one after the other, and would find
// that the parent is not there, which counts as done. So no job waits for itself through others, either.
func (r *Request) parentsFirst(own map[string]int, at int) error {
	for _, parent := range r.item.After.Parents {
		if own[parent] > at {
			return fmt.Errorf("enqueue %q: %w: it is to wait for job %q, which comes behind it: enqueue parents first", r.item.Lane.Kind,
				ErrInvalid, parent)
		}
	}
	return nil
}

func (q *Queue) newID() string { return q.process[:10] + strconv.FormatInt(q.ids.Add(1), 36) }

// enqueue waits for the call that its items are in.
func (q *Queue) enqueue(ctx context.Context, items []store.Item) ([]store.Outcome, error) {
	if err := q.enter(); err != nil {
		return nil, err
	}
	defer q.tasks.Done()
	b := &batch{items: items, done: make(chan struct{})}
	q.mu.Lock()
	q.producer.queued = append(q.producer.queued, b)
	q.startProducing()
	q.mu.Unlock()
	select {
	case <-b.done:
		return b.outcomes, b.err
	case <-ctx.Done():
	case <-q.closing:
	}
	q.mu.Lock()
	b.gone = true
	failed := b.failed
	q.mu.Unlock()
	select {
	case <-b.done: // both at once: what is known is worth more
		return b.outcomes, b.err
	default:
	}
	cause := ErrClosed
	if ctx.Err() != nil {
		cause = fmt.Errorf("nobody knows whether it was: %w", context.Cause(ctx))
	}
	if failed != nil {
		return nil, fmt.Errorf("enqueue on %q: %w, after %w", q.name, cause, failed)
	}
	return nil, fmt.Errorf("enqueue on %q: %w", q.name, cause)
}

// startProducing has calls made for what is queued, under mu.
func (q *Queue) startProducing() {
	p := &q.producer
	if !p.running {
		p.running, p.bell = true, make(chan struct{}, 1)
		q.tasks.Go(q.produce)
		return
	}
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// produceLinger is for how long the goroutine waits for more. A new one would have to grow its stack for its first call.
const produceLinger = time.Second

// produce makes calls until nobody has come for a while.
func (q *Queue) produce() {
	linger := time.NewTimer(produceLinger)
	defer linger.Stop()
	for over := false; ; {
		taken, items, number := q.nextCall(over)
		switch {
		case taken == nil && over:
			return
		case taken == nil:
			linger.Reset(produceLinger)
			select {
			case <-q.producer.bell:
			case <-linger.C:
				over = true
			case <-q.closing:
				over = true
			}
			continue
		}
		outcomes, err := q.callUntilKnown(taken, number, items)
		for _, b := range taken {
			if b.err = err; err == nil {
				b.outcomes, outcomes = outcomes[:len(b.items)], outcomes[len(b.items):]
			}
			close(b.done)
		}
		runtime.Gosched() // whoever has an answer may want more, and then the next call has it
	}
}

// nextCall takes from what is queued as much as goes into one call. If it is over and there is nothing, the goroutine ends.
func (q *Queue) nextCall(over bool) (taken []*batch, items []store.Item, number int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, bytes := &q.producer, 0
	for len(p.queued) > 0 {
		b := p.queued[0]
		size := 0
		for i := range b.items {
			size += len(b.items[i].Rest)
		}
		if len(taken) > 0 && (len(items)+len(b.items) > store.MostItems || bytes+size > MaxPayload) {
			break
		}
		p.queued = p.queued[1:]
		if b.gone {
			continue
		}
		if taken, bytes = append(taken, b), bytes+size; items == nil {
			items = slices.Clip(b.items)
		} else {
			items = append(items, b.items...)
		}
	}
	if taken == nil {
		p.running = !over
		return nil, nil, 0
	}
	p.number++
	return taken, items, p.number
}

// repeatFor is for how long a call is repeated. The server remembers the last one for 15 minutes.
const repeatFor = 10 * time.Minute

// callUntilKnown makes a call until the server has answered it, or refuses it for good, or nobody waits for it any more.
func (q *Queue) callUntilKnown(taken []*batch, number int64, items []store.Item) ([]store.Outcome, error) {
	begun := time.Now()
	for failures := 1; ; failures++ {
		outcomes, err := q.store.Enqueue(q.stopping, number, items)
		switch {
		case err == nil || !ledger.Retryable(err) && q.stopping.Err() == nil:
			return outcomes, err
		case !q.wanted(taken, err) || time.Since(begun) > repeatFor:
			return nil, err
		}
		if q.stopping.Err() == nil {
			q.tellFailing(err)
		}
		if !q.pause(q.stopping, failures) {
			return nil, fmt.Errorf("%w: nobody knows whether it was: %w", ErrClosed, err)
		}
	}
}

// wanted notes a failure, and says whether anybody still waits.
func (q *Queue) wanted(taken []*batch, failed error) (wanted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range taken {
		b.failed, wanted = failed, wanted || !b.gone
	}
	return wanted
}

// pause waits before something is tried again. It reports false if ctx has ended, or the queue is being closed.
func (q *Queue) pause(ctx context.Context, failures int) bool {
	timer := time.NewTimer(q.backoff(failures))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-q.stopping.Done():
	}
	return false
}
