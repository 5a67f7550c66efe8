package signalbox

import (
	"context"
	"fmt"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// MaxReaders is how many readers an RWMutex lets in at once.
const MaxReaders = 1_000_000

// RWMutex lets many readers in, or one writer. It is a semaphore of MaxReaders permits, of which a reader takes one and a
// writer all, and so first come, first served: a writer is not passed by readers who come after it, and readers who stand
// together in the queue go in together. It holds no state, as a Semaphore.
type RWMutex struct {
	read, write RWSide
}

// RWSide is the reading or the writing of an RWMutex.
type RWSide struct {
	semaphore *Semaphore
	weight    AcquireOption
}

// RWMutex returns the read/write lock of a name. A bad name is reported by the first call.
func (b *Box) RWMutex(name string) *RWMutex {
	semaphore := b.Semaphore(name, MaxReaders)
	return &RWMutex{RWSide{semaphore, Weight(1)}, RWSide{semaphore, Weight(MaxReaders)}}
}

// Read is for those who do not change what is guarded.
func (m *RWMutex) Read() *RWSide { return &m.read }

// Write is for those who do. Their tokens are larger than those of all before them, readers and writers.
func (m *RWMutex) Write() *RWSide { return &m.write }

// Acquire waits for its turn. See Semaphore.Acquire. Weight has no meaning here and is ignored.
func (s *RWSide) Acquire(ctx context.Context, options ...AcquireOption) (*Lease, error) {
	return s.semaphore.Acquire(ctx, s.with(options)...)
}

// TryAcquire does not wait. See Semaphore.TryAcquire.
func (s *RWSide) TryAcquire(ctx context.Context, options ...AcquireOption) (*Lease, error) {
	return s.semaphore.TryAcquire(ctx, s.with(options)...)
}

// Do runs fn while holding its side. See Semaphore.Do.
func (s *RWSide) Do(ctx context.Context, fn func(ctx context.Context) error, options ...AcquireOption) error {
	return s.semaphore.Do(ctx, fn, s.with(options)...)
}

func (s *RWSide) with(options []AcquireOption) []AcquireOption {
	return append(options[:len(options):len(options)], s.weight)
}

// Downgrade makes a writer a reader, with nobody in between, and lets in the readers that wait behind it. The token stays.
func (m *RWMutex) Downgrade(ctx context.Context, lease *Lease) error {
	return m.change(ctx, "downgrade", lease, MaxReaders, 1)
}

// Upgrade makes the only reader a writer, with a new token. If there are other readers, or anybody waits, it is refused at
// once with a *BusyError, and the lease goes on as it was: two readers that waited for one another to leave would wait for
// ever. Release it and acquire to write instead, and read again what may have changed in between.
func (m *RWMutex) Upgrade(ctx context.Context, lease *Lease) error {
	return m.change(ctx, "upgrade", lease, 1, MaxReaders)
}

func (m *RWMutex) change(ctx context.Context, verb string, lease *Lease, from, to int) error {
	name := m.read.semaphore.name
	switch {
	case lease == nil:
		return fmt.Errorf("%s %q: %w: the lease is nil", verb, name, ErrInvalid)
	case lease.box != m.read.semaphore.box || lease.resource.Name != name:
		return fmt.Errorf("%s %q: %w: the lease is of %q", verb, name, ErrInvalid, lease.resource.Name)
	case lease.relayed():
		return fmt.Errorf("%s %q: %w: a lease of LocalHandoff keeps its weight", verb, name, ErrInvalid)
	case lease.Weight() != from && lease.Weight() != to:
		return fmt.Errorf("%s %q: %w: the lease has weight %d", verb, name, ErrInvalid, lease.Weight())
	}
	return lease.reweigh(ctx, verb, to, MaxReaders)
}

// reweigh changes the weight. An answer that was lost leaves it unknown which weight the server has; the lease then keeps
// what is safe, and the call may be made again.
func (l *Lease) reweigh(ctx context.Context, verb string, weight, limit int) error {
	name := l.resource.Name
	if err := l.Err(); err != nil {
		return fmt.Errorf("%s %q: %w", verb, name, err)
	}
	answer, err := l.box.ledger.Reweigh(ctx, l.resource, l.id, weight, limit)
	switch {
	case err != nil && over(ctx) != nil:
		return fmt.Errorf("%s %q: %w", verb, name, over(ctx))
	case err != nil:
		return fmt.Errorf("%s: %w", verb, err)
	case answer.Hold == ledger.Forced:
		l.end(fmt.Errorf("%w: %q", ErrForced, name))
	case answer.Hold == ledger.Lost:
		l.end(fmt.Errorf("%w: %q had expired on the server", ErrLeaseLost, name))
	case answer.Busy:
		return &BusyError{Resource: name, Held: answer.InUse, Limit: answer.Limit}
	default:
		l.mu.Lock()
		l.weight, l.token = weight, answer.Token
		l.mu.Unlock()
		return nil
	}
	return fmt.Errorf("%s %q: %w", verb, name, l.Err())
}
