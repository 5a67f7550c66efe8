package signalbox

import (
	"context"
	"fmt"
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
	side      AcquireOption
}

// RWMutex returns the read/write lock of a name. A bad name is reported by the first call.
func (b *Box) RWMutex(name string) *RWMutex {
	semaphore := b.Semaphore(name, MaxReaders)
	return &RWMutex{RWSide{semaphore, side(1)}, RWSide{semaphore, side(MaxReaders)}}
}

// Read is for those who do not change what is guarded.
func (m *RWMutex) Read() *RWSide { return &m.read }

// Write is for those who do. Their tokens are larger than those of all before them, readers and writers.
func (m *RWMutex) Write() *RWSide { return &m.write }

// Acquire waits for its turn. See Semaphore.Acquire. Weight is the side's own: as an option it is refused with ErrInvalid.
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
	return append(options[:len(options):len(options)], s.side)
}

// Downgrade makes a writer a reader, with nobody in between, and lets in the readers that wait behind it. The token stays.
// The lease is a reader's from the call on, whatever becomes of it: if ctx ends first or the server does not answer (then
// the error wraps ErrUnavailable), it goes on being asked for in the background.
func (m *RWMutex) Downgrade(ctx context.Context, lease *Lease) error {
	return m.change(ctx, "downgrade", lease, MaxReaders, 1)
}

// Upgrade makes the only reader a writer, with a new token. If there are other readers, or anybody waits, it is refused at
// once with a *BusyError, and the lease goes on as it was: two readers that waited for one another to leave would wait for
// ever. Release it and acquire to write instead, and read again what may have changed in between. If ctx ends first or the
// server does not answer (then the error wraps ErrUnavailable), the lease stays a reader's: what the server may have done is
// taken back in the background.
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
	case lease.agreed.Block > 0:
		return fmt.Errorf("%s %q: %w: a lease of LocalHandoff keeps its weight", verb, name, ErrInvalid)
	case lease.Weight() != from && lease.Weight() != to:
		return fmt.Errorf("%s %q: %w: the lease has weight %d", verb, name, ErrInvalid, lease.Weight())
	}
	return lease.reweigh(ctx, verb, to)
}
