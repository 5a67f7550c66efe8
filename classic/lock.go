package classic

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lock is the lock of Redis in Action, 6.2: a string that whoever creates it
// holds. Its key is "lock:" and the name, its value the holder's id.
//
// Acquire sends SETNX, and EXPIRE when that has created the key. Otherwise it
// sends TTL, and EXPIRE if the key has no timeout, which repairs a lock whose
// holder crashed between the two; then it sleeps for a millisecond and tries
// again. Release compares the id under WATCH and deletes the key in MULTI/EXEC.
//
// It promises that while nobody outlives a timeout at most one client holds it,
// that a release never deletes the lock of somebody else, and that a crashed
// holder's lock ends some time.
//
// It breaks:
//
//   - A client pauses between SETNX and EXPIRE, a waiter repairs the timeout,
//     the timeout passes, a third client acquires: the first goes on, sets the
//     timeout of that lock, and believes that it holds it. Two holders.
//   - A holder takes longer than the timeout. The next one acquires, and the
//     first is told only when it releases.
//   - A holder crashes between SETNX and EXPIRE and nobody waits: the key stays
//     without a timeout until somebody tries.
//   - The repair asks TTL of one lock and sends EXPIRE to the next: TTL of a key
//     that has just gone is negative as well. A waiter with a shorter timeout
//     then cuts a lock short that was never broken.
//   - Nobody queues. Who polls at the right moment wins, and one client may win
//     for ever.
//   - The reply to SETNX is lost: the caller has an error, and the lock nobody.
type Lock struct {
	Client
	// Name is what the lock is for. Required.
	Name string
	// Timeout is the lock's timeout, rounded up to whole seconds. 0 is the
	// first lock of the book, which has none: it neither sets nor repairs a
	// timeout, and a crashed holder's lock stays for ever.
	Timeout time.Duration
}

// Acquire tries until it holds the lock, and returns the id to release it with.
// It answers ErrBusy after the acquire timeout, which must be positive.
func (l Lock) Acquire(ctx context.Context, acquireTimeout time.Duration) (id string, err error) {
	if err := l.check(acquireTimeout); err != nil {
		return "", err
	}
	id = l.newID()
	err = l.poll(ctx, acquireTimeout, pollPause, func() (bool, error) { return l.try(ctx, id) })
	if err != nil {
		return "", failed("lock", l.Name, err)
	}
	return id, nil
}

// try is one turn of the loop: SETNX and EXPIRE, or TTL and perhaps EXPIRE.
func (l Lock) try(ctx context.Context, id string) (acquired bool, err error) {
	acquired, err = l.setNX(ctx, l.key(), id)
	if err != nil || l.Timeout == 0 {
		return acquired, err
	}
	if !acquired {
		left, err := l.Redis.TTL(ctx, l.key()).Result()
		if err != nil || left >= 0 {
			return false, err
		}
	}
	return acquired, l.Redis.Expire(ctx, l.key(), time.Duration(wholeSeconds(l.Timeout))*time.Second).Err()
}

// Release gives the lock back. It answers ErrLost if the id does not hold it.
func (l Lock) Release(ctx context.Context, id string) error {
	if err := l.Client.check("lock", l.Name); err != nil {
		return err
	}
	return failed("lock", l.Name, l.optimistic(ctx, 0, func(tx *redis.Tx) error {
		return deleteIfHeld(ctx, tx, l.key(), id)
	}, l.key()))
}

// deleteIfHeld ends a watched transaction: the key is deleted if it has the
// value id, with what else belongs into the same MULTI. Otherwise ErrLost.
func deleteIfHeld(ctx context.Context, tx *redis.Tx, key, id string, more ...func(redis.Pipeliner)) error {
	holder, err := get(ctx, tx, key)
	if err != nil {
		return err
	}
	if holder != id || id == "" {
		return ErrLost // go-redis sends UNWATCH
	}
	_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, key)
		for _, queue := range more {
			queue(pipe)
		}
		return nil
	})
	return err
}

func (l Lock) key() string { return "lock:" + l.Name }

func (l Lock) check(acquireTimeout time.Duration) error {
	if err := l.Client.check("lock", l.Name); err != nil {
		return err
	}
	return checkTimeouts("lock", l.Name, l.Timeout, acquireTimeout)
}

// checkTimeouts refuses what is not a time to wait, or not one to hold.
func checkTimeouts(kind, name string, timeout, acquireTimeout time.Duration) error {
	switch {
	case timeout < 0:
		return invalid("%s %q: the timeout is %v: give a positive one", kind, name, timeout)
	case acquireTimeout <= 0:
		return invalid("%s %q: the acquire timeout is %v: give a positive one", kind, name, acquireTimeout)
	}
	return nil
}
