package classic

import (
	"context"
	"errors"
	"time"
)

// lockPatience is how long a LockedSemaphore tries for its lock.
const lockPatience = 10 * time.Millisecond

// LockedSemaphore is FairSemaphore under a Lock of the same name, Redis in
// Action, 6.3.5: the lock is tried for 10 ms, and who does not get it is
// refused. Release and Refresh are those of the fair semaphore, without a lock.
//
// It promises what the fair semaphore does, and that the counter is used before
// the next one takes it: with honest clocks and no pause longer than LockTimeout
// never more than limit hold a permit.
//
// It breaks:
//
//   - The lock has no timeout in the book. A client that crashes under it
//     closes the semaphore for ever.
//   - With a LockTimeout, a client that pauses under the lock for longer is back
//     in the race of the counter.
//   - Many at once: who does not get the lock within 10 ms is refused although
//     permits are free.
//   - A client whose clock is ahead by more than the timeout removes all
//     holders, as before.
type LockedSemaphore struct {
	FairSemaphore
	// LockTimeout is the timeout of the lock; 0 is none, as in the book.
	LockTimeout time.Duration
}

// Acquire takes a permit or answers ErrBusy, within about 10 ms. An error of
// the lock's release is returned with the id: the permit is held all the same.
func (s LockedSemaphore) Acquire(ctx context.Context) (id string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	lock := Lock{Client: s.Client, Name: s.Name, Timeout: s.LockTimeout}
	held, err := lock.Acquire(ctx, lockPatience)
	if err != nil {
		return "", err
	}
	id, err = s.FairSemaphore.Acquire(ctx)
	// In the book it does not matter whether the lock was lost meanwhile.
	if lost := lock.Release(context.WithoutCancel(ctx), held); lost != nil && !errors.Is(lost, ErrLost) {
		err = errors.Join(err, lost)
	}
	return id, err
}
