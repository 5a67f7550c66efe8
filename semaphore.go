package signalbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Semaphore lets leases of a total weight up to its limit in, in the order they asked. A Semaphore holds no state: any
// number of goroutines may use one value, and two values of one name are the same semaphore.
type Semaphore struct {
	box      *Box
	name     string
	resource *ledger.Resource
	err      error // what is wrong with the name
	limit    int
}

// Semaphore returns the semaphore of a name: 1 to 512 bytes of UTF-8. The limit counts for what is acquired through
// this value; a limit set by Resize is stronger. A bad name or limit is reported by the first call.
func (b *Box) Semaphore(name string, limit int) *Semaphore {
	resource, err := ledger.NewResource(name)
	return &Semaphore{b, name, resource, err, limit}
}

// Acquire waits for its turn and returns a lease that renews itself until it is released. When ctx ends first, nothing
// is left behind, and the error wraps ctx.Err(). Otherwise errors wrap ErrInvalid, ErrTooHeavy, ErrForced, ErrClosed,
// ErrUnavailable, ErrUnsupportedServer, ErrWrongType or ErrServer.
//
// A ctx that is cancelled ends a wait at once. While a request is on its way it is heard when the answer has come or
// the client's read timeout is over; a deadline of ctx is heard by clients with ContextTimeoutEnabled, as Open's are.
//
// It costs one round trip, and if it has to wait, one heartbeat each third of the claim time.
func (s *Semaphore) Acquire(ctx context.Context, options ...AcquireOption) (*Lease, error) {
	return s.acquire(ctx, newTerms(options), true)
}

// TryAcquire is refused with a *BusyError instead of waiting. It never passes those who wait.
func (s *Semaphore) TryAcquire(ctx context.Context, options ...AcquireOption) (*Lease, error) {
	return s.acquire(ctx, newTerms(options), false)
}

// Do acquires, runs fn, and releases however fn ends. fn's context ends with ctx and with the lease, whichever is
// first. The error is fn's, joined with that of a release that found the lease lost.
func (s *Semaphore) Do(
	ctx context.Context, fn func(ctx context.Context) error, options ...AcquireOption,
) (err error) {
	lease, err := s.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(lease.carry(ctx))
	unlink := context.AfterFunc(lease.Context(), func() { cancel(lease.Err()) })
	defer func() {
		unlink()
		cancel(nil)
		if lost := lease.Release(ctx); lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	return fn(inner)
}

func (s *Semaphore) acquire(ctx context.Context, terms terms, wait bool) (*Lease, error) {
	if s.err != nil {
		return nil, fmt.Errorf("acquire: %w", s.err)
	}
	if err := terms.check(s.name, s.limit); err != nil {
		return nil, err
	}
	if endOf(ctx) != nil {
		return nil, ended(ctx, fmt.Sprintf("acquire %q", s.name))
	}
	if terms.reentrant {
		if lease, err := s.reenter(ctx, &terms); lease != nil || err != nil {
			return lease, err
		}
	}
	if err := s.box.enter(); err != nil {
		return nil, fmt.Errorf("acquire %q: %w", s.name, err)
	}
	defer s.box.tasks.Done()
	begun := s.box.observeBegun(ctx, s.name, &terms)
	lease, err := s.take(ctx, terms, wait)
	s.box.observeAcquisition(ctx, s.name, &terms, begun, lease, err)
	return lease, err
}

// take gets the lease from the server, or from a lease of this process.
func (s *Semaphore) take(ctx context.Context, terms terms, wait bool) (*Lease, error) {
	if wait && terms.handoffs != nil {
		return s.acquireRelayed(ctx, terms)
	}
	return s.ask(ctx, terms, wait)
}

// ask gets the lease from the server.
func (s *Semaphore) ask(ctx context.Context, t terms, wait bool) (*Lease, error) {
	p := s.permit(ctx, &t)
	l := s.box.newLife(ctx, p, acquisition.Terms{
		TTL: t.ttl, Cool: t.agreed.Cool, Weight: t.weight, Wait: wait, Places: t.onWait != nil, Notice: t.agreed.Notice,
	}, p.id)
	if t.onWait != nil {
		l.news = make(chan Waiting, 1)
	}
	o := s.box.await(ctx, l, t.onWait)
	lease, err := o.lease, o.err
	if err == nil && t.replicas != nil {
		err = lease.replicate(ctx, *t.replicas, t.replicaTimeout)
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// permit is what an acquisition with these terms asks for.
func (s *Semaphore) permit(ctx context.Context, t *terms) *permit {
	return &permit{
		resource: s.resource, id: s.box.newID(), label: t.label, limit: s.limit, weight: t.weight, ttl: t.ttl,
		agreed: t.agreed, shared: t.reentrant, parent: ctx,
	}
}

// endOf says how ctx ended, nil if it has not. A connection notices a deadline a moment before the context does.
func endOf(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// ended is the error of what was being done when its context ended so, with the cause if that says more.
func ended(ctx context.Context, doing string) error {
	err, cause := endOf(ctx), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, err, cause)
}
