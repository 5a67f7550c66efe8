package signalbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Request is what AcquireAll asks of one resource: a Semaphore or Mutex with a weight.
type Request struct {
	semaphore *Semaphore
	weight    int
}

// Request asks for a number of the semaphore's permits as part of AcquireAll.
func (s *Semaphore) Request(weight int) Request { return Request{s, weight} }

// Request asks for the mutex as part of AcquireAll.
func (m *Mutex) Request() Request { return Request{&m.semaphore, 1} }

// Leases are leases that were acquired together. Their context ends when the first of them does.
type Leases struct {
	leases []*Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	unlink []func() bool
}

// AcquireAll acquires several resources, all or nothing, and waits its turn in the queue of each without holding any
// meanwhile. Two that ask for the same resources cannot wait for each other, in whatever order they name them: places in
// all queues are taken in one step. In a Cluster the names must share a hash tag, as "invoice:{42}" and "customer:{42}"
// do. At most 64 resources, each once. Of the options, TTL and Label are heeded; others are refused with ErrInvalid.
//
// It waits at the head of a queue until the other resources are free too, and those behind it wait with it: that is the
// price of holding nothing. Where one resource is always the busier one, Semaphore.Within costs others less.
func (b *Box) AcquireAll(ctx context.Context, requests []Request, options ...AcquireOption) (*Leases, error) {
	return b.acquireAll(ctx, requests, newTerms(options), true)
}

// TryAcquireAll is refused with a *BusyError instead of waiting.
func (b *Box) TryAcquireAll(ctx context.Context, requests []Request, options ...AcquireOption) (*Leases, error) {
	return b.acquireAll(ctx, requests, newTerms(options), false)
}

func (b *Box) acquireAll(ctx context.Context, requests []Request, t terms, wait bool) (*Leases, error) {
	group, err := b.newGroup(requests, &t)
	if err != nil {
		return nil, err
	}
	if over(ctx) != nil {
		return nil, fmt.Errorf("%s: %w", group.doing(), over(ctx))
	}
	if err := b.enter(); err != nil {
		return nil, fmt.Errorf("%s: %w", group.doing(), err)
	}
	defer b.tasks.Done()
	var begun time.Time
	for _, request := range requests {
		begun = b.observeBegun(ctx, request.semaphore.name, t.weighing(request.weight))
	}
	leases, err := group.run(ctx, wait)
	for i, request := range requests {
		var lease *Lease
		if leases != nil {
			lease = leases.leases[i]
		}
		b.observeAcquisition(ctx, request.semaphore.name, t.weighing(request.weight), begun, lease, err)
	}
	return leases, err
}

// group is one acquisition of several resources.
type group struct {
	box      *Box
	request  ledger.GroupRequest
	doubtful bool // a request may still reach the server
}

func (b *Box) newGroup(requests []Request, t *terms) (*group, error) {
	g := &group{box: b, request: ledger.GroupRequest{TTL: t.ttl, Claim: b.claim, Owner: b.owner, Label: t.label}}
	switch {
	case len(requests) == 0 || len(requests) > ledger.MaxGroup:
		return nil, fmt.Errorf("acquire all: %w: %d resources, must be 1 to %d", ErrInvalid, len(requests), ledger.MaxGroup)
	case t.agreed != ledger.Terms{} || t.reentrant || t.replicas != nil || t.onWait != nil || t.weight != 1:
		return nil, fmt.Errorf("acquire all: %w: of the options only TTL and Label have a meaning here", ErrInvalid)
	}
	seen := make(map[string]bool)
	for _, request := range requests {
		s := request.semaphore
		if s == nil {
			return nil, fmt.Errorf("acquire all: %w: an empty Request; make them by Semaphore.Request", ErrInvalid)
		}
		if s.err != nil {
			return nil, fmt.Errorf("acquire all: %w", s.err)
		}
		if err := t.weighing(request.weight).check(s.name, s.limit); err != nil {
			return nil, err
		}
		if s.box != b || seen[s.name] {
			return nil, fmt.Errorf("acquire all: %w: %q is named twice, or belongs to another Box", ErrInvalid, s.name)
		}
		seen[s.name] = true
		g.request.Places = append(g.request.Places, ledger.Place{
			Resource: s.resource, ID: b.newID(), Weight: request.weight, Limit: s.limit,
		})
	}
	return g, nil
}

func (g *group) doing() string {
	text := "acquire"
	for _, place := range g.request.Places {
		text += fmt.Sprintf(" %q", place.Resource.Name)
	}
	return text
}

func (g *group) run(ctx context.Context, wait bool) (*Leases, error) {
	var ids []string
	for _, place := range g.request.Places {
		ids = append(ids, place.ID)
	}
	a, err := g.box.attend(g.doing(), ids...)
	if err != nil {
		return nil, err
	}
	defer a.leave()
	if a.patient = wait; wait {
		g.request.Wait = g.box.claim
	}
	var leases *Leases
	known := false // the server may know of it
	err = a.run(ctx, func() (time.Duration, bool, error) {
		if err := g.box.checkServer(ctx); err != nil {
			return 0, false, err
		}
		sent := time.Now()
		answer, err := g.box.ledger.AcquireGroup(ctx, &g.request)
		if err != nil {
			undone := ledger.Undone(err)
			g.doubtful, known = g.doubtful || !undone, known || !undone
			return 0, false, err
		}
		known = known || answer.Outcome == ledger.Waiting || answer.Outcome == ledger.Granted
		if answer.Outcome == ledger.Granted {
			leases, err = g.leases(ctx, answer.Tokens, sent)
			return 0, true, err
		}
		return answer.Next, false, g.refusal(&answer)
	})
	if err != nil && known {
		g.box.tasks.Add(1) // an acquisition is a task
		g.box.patiently(func() { g.cancel(ctx) })
	}
	return leases, err
}

// refusal is the error of an answer, nil if it says to wait.
func (g *group) refusal(answer *ledger.GroupAnswer) error {
	if answer.Outcome == ledger.Waiting {
		return nil
	}
	place := g.request.Places[answer.Which]
	name := place.Resource.Name
	switch answer.Outcome {
	case ledger.Refused:
		return &BusyError{name, answer.Next, answer.Held, answer.Limit}
	case ledger.Heavy:
		return tooHeavy(name, place.Weight, answer.Limit)
	}
	return fmt.Errorf("acquire %q: %w", name, ErrForced)
}

func (g *group) leases(ctx context.Context, tokens []int64, sent time.Time) (*Leases, error) {
	ttl := g.request.TTL
	expires := sent.Add(ttl)
	if !time.Now().Before(expires.Add(-margin(ttl))) {
		return nil, fmt.Errorf("%s: %w: the answer took longer than the leases last; give them a longer ttl than %v",
			g.doing(), ErrUnavailable, ttl)
	}
	var all []*Lease
	for i, place := range g.request.Places {
		made := grant{
			box: g.box, resource: place.Resource, id: place.ID, label: g.request.Label, ttl: ttl, since: time.Now(),
			doubtful: g.doubtful,
		}
		lease, ok := newLease(ctx, made, place.Weight, tokens[i], expires, ttl)
		if !ok {
			for _, lease := range all {
				lease.end(ErrClosed)
			}
			return nil, fmt.Errorf("%s: %w", g.doing(), ErrClosed)
		}
		all = append(all, lease)
	}
	return newLeases(ctx, all), nil
}

// cancel takes all places back; each is tried until it is heard, or the server has forgotten it by itself.
func (g *group) cancel(ctx context.Context) {
	var all sync.WaitGroup
	for _, place := range g.request.Places {
		all.Go(func() { g.box.takeBack(ctx, place.Resource, place.ID, g.request.TTL) })
	}
	all.Wait()
}

func newLeases(parent context.Context, leases []*Lease) *Leases {
	all := &Leases{leases: leases}
	all.ctx, all.cancel = context.WithCancelCause(context.WithoutCancel(parent))
	for _, lease := range leases {
		all.unlink = append(all.unlink, context.AfterFunc(lease.ctx, func() { all.cancel(lease.Err()) }))
	}
	return all
}

// All returns the leases, in the order of the requests.
func (l *Leases) All() []*Lease { return append([]*Lease(nil), l.leases...) }

// Context ends with the first of the leases that does; context.Cause says why. It carries the values of the context that
// acquired.
func (l *Leases) Context() context.Context { return l.ctx }

// Done is closed when the first of the leases ends.
func (l *Leases) Done() <-chan struct{} { return l.ctx.Done() }

// Err is nil while all leases are held; then it is why the first ended.
func (l *Leases) Err() error { return context.Cause(l.ctx) }

// Release gives everything back, the last first. The error joins those of the leases.
func (l *Leases) Release(ctx context.Context) error {
	for _, unlink := range l.unlink {
		unlink()
	}
	l.cancel(ErrReleased)
	var errs []error
	for i := len(l.leases) - 1; i >= 0; i-- {
		errs = append(errs, l.leases[i].Release(ctx))
	}
	return errors.Join(errs...)
}

// Within acquires a permit of s, and then one of a wider semaphore, such as the five calls a tenant may have at once
// within a hundred of all: those over their own limit wait in their own queue, and stand in nobody's way. The permit of s
// is held while it waits for the wider one; since everybody takes them in this order, nobody waits in a circle. Options
// are for both.
func (s *Semaphore) Within(ctx context.Context, wider *Semaphore, options ...AcquireOption) (*Leases, error) {
	if wider == nil {
		return nil, fmt.Errorf("acquire %q: %w: the wider semaphore is nil", s.name, ErrInvalid)
	}
	own, err := s.Acquire(ctx, options...)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(own.ctx, func() { cancel(own.Err()) })()
	shared, err := wider.Acquire(waiting, options...)
	if err != nil {
		return nil, errors.Join(err, own.Release(ctx))
	}
	return newLeases(ctx, []*Lease{own, shared}), nil
}
