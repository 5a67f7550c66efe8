package signalbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
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
	if endOf(ctx) != nil {
		return nil, ended(ctx, group.doing())
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

// group is the errand of one acquisition of several resources.
type group struct {
	box    *Box
	asked  ledger.GroupRequest
	parent context.Context
	answer ledger.GroupAnswer // the last; under the box's mu
	leases *Leases
}

func (b *Box) newGroup(requests []Request, t *terms) (*group, error) {
	g := &group{box: b, asked: ledger.GroupRequest{TTL: t.ttl, Claim: b.claim, Owner: b.owner, Label: t.label}}
	if len(requests) == 0 || len(requests) > ledger.MaxGroup {
		return nil, fmt.Errorf("acquire all: %w: %d resources, must be 1 to %d", ErrInvalid, len(requests), ledger.MaxGroup)
	}
	if b.err != nil {
		return nil, fmt.Errorf("acquire all: %w", b.err)
	}
	t.place = inGroup
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
		g.asked.Places = append(g.asked.Places, ledger.Place{
			Resource: s.resource, ID: b.newID(), Weight: request.weight, Limit: s.limit,
		})
	}
	return g, nil
}

func (g *group) doing() string {
	text := "acquire"
	for _, place := range g.asked.Places {
		text += fmt.Sprintf(" %q", place.Resource.Name)
	}
	return text
}

func (g *group) name() string { return g.asked.Places[0].Resource.Name }

func (g *group) run(ctx context.Context, wait bool) (*Leases, error) {
	g.parent = ctx
	var ids []string
	for _, place := range g.asked.Places {
		ids = append(ids, place.ID)
	}
	l := g.box.newLife(ctx, g, acquisition.Terms{TTL: g.asked.TTL, Wait: wait, Passing: true}, ids...)
	if err := g.box.await(ctx, l, nil).err; err != nil {
		return nil, err
	}
	return g.leases, nil
}

// failure says of which place the last answer was. Called with the box's mu held.
func (g *group) failure(why *acquisition.Action) error {
	switch why.Why {
	case acquisition.Failure:
		return why.Err
	case acquisition.WasClosed:
		return fmt.Errorf("%s: %w", g.doing(), ErrClosed)
	case acquisition.CameLate:
		return fmt.Errorf("%s: %w: the answer took longer than the leases last; give them a longer ttl than %v",
			g.doing(), ErrUnavailable, g.asked.TTL)
	default:
		place := g.asked.Places[g.answer.Which]
		p := permit{resource: place.Resource, weight: place.Weight}
		return p.failure(why)
	}
}

func (g *group) request(ctx context.Context, b *Box, s sending) reply {
	if s.call == acquisition.CallCancel {
		return g.cancel(ctx, b, s.during)
	}
	if err := b.checkServer(ctx); err != nil {
		return reply{err: fmt.Errorf("%s: %w", g.doing(), err), undone: true}
	}
	request := g.asked
	request.Wait, request.Precedence = s.during, precedences[s.rank]
	answer, err := b.asking.AcquireGroup(ctx, &request)
	b.mu.Lock()
	g.answer = answer
	b.mu.Unlock()
	return acquired(answer.AcquireAnswer, err).after(request.Waited)
}

// cancel takes all places back.
func (g *group) cancel(ctx context.Context, b *Box, bar time.Duration) reply {
	requests := make([]ledger.CancelRequest, len(g.asked.Places))
	for i, place := range g.asked.Places {
		requests[i] = ledger.CancelRequest{Resource: place.Resource, ID: place.ID, Bar: bar}
	}
	for _, result := range b.background.CancelAll(ctx, requests) {
		if result.Err != nil {
			return failed(result.Err)
		}
	}
	return held(ledger.Held, nil)
}

// granted begins a life for each lease. Called with the box's mu held.
func (g *group) granted(b *Box, l *life) outcome {
	terms, arrives := *l.machine.Terms(), l.machine.Arrives(b.clock.Now())
	terms.Passing = false
	var all []*Lease
	for i, place := range g.asked.Places {
		p := &permit{
			resource: place.Resource, id: place.ID, label: g.asked.Label, limit: place.Limit, weight: place.Weight,
			ttl: g.asked.TTL, parent: g.parent,
		}
		terms.Weight = place.Weight
		child := &life{errand: p, ids: []string{place.ID}}
		child.machine = acquisition.Resume(terms, g.answer.Tokens[i], l.machine.Deadline(), arrives)
		child.machine.Share(&b.scratch)
		child.lease = newLease(b, child, p, g.answer.Tokens[i])
		if b.register(child) {
			b.schedule(child)
		}
		l.children = append(l.children, child)
		all = append(all, child.lease)
	}
	g.leases = newLeases(g.parent, all)
	return outcome{}
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
	if wider.box == s.box && wider.name == s.name {
		return nil, fmt.Errorf("acquire %q: %w: within itself: it would wait for the permit that it holds", s.name, ErrInvalid)
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
