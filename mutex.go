package signalbox

import "context"

// Mutex lets one holder in at a time. It is a semaphore of one permit. A Mutex holds no state: any number of goroutines
// may use one value, and two values of one name are the same mutex.
type Mutex struct {
	semaphore Semaphore
}

// Mutex returns the mutex of a name: 1 to 512 bytes of UTF-8. A bad name is reported by the first call.
func (b *Box) Mutex(name string) *Mutex {
	return &Mutex{*b.Semaphore(name, 1)}
}

// Acquire waits for its turn. See Semaphore.Acquire.
func (m *Mutex) Acquire(ctx context.Context, options ...AcquireOption) (*Lease, error) {
	return m.semaphore.Acquire(ctx, options...)
}

// TryAcquire does not wait. See Semaphore.TryAcquire.
func (m *Mutex) TryAcquire(ctx context.Context, options ...AcquireOption) (*Lease, error) {
	return m.semaphore.TryAcquire(ctx, options...)
}

// Do runs fn while holding the mutex. See Semaphore.Do.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error, options ...AcquireOption) error {
	return m.semaphore.Do(ctx, fn, options...)
}
