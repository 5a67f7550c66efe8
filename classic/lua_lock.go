package classic

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// LuaLock is Lock in two scripts, Redis in Action, 11.2. Its key is the same,
// so a Lock and a LuaLock of one name exclude each other.
//
// Acquire sends one script, EXISTS and SETEX, every millisecond until the key
// is free; release sends one, GET and DEL if the id matches.
//
// It promises what Lock does, and that a key of its own always has a timeout:
// no schedule of two clients within one acquire breaks it.
//
// It breaks:
//
//   - A holder takes longer than the timeout. The next one acquires, and the
//     first is told only when it releases.
//   - A lock that a Lock left without a timeout is not repaired: everybody waits
//     for ever.
//   - The server fails over to a replica that has not received the key: the
//     next one acquires.
//   - Nobody queues, as with Lock.
//   - The reply to the acquire is lost: nobody holds the lock until it expires.
type LuaLock struct {
	Client
	// Name is what the lock is for. Required.
	Name string
	// Timeout is the lock's timeout, rounded up to whole seconds. Required.
	Timeout time.Duration
}

var acquireLockScript = redis.NewScript(`
-- KEYS[1] the lock, ARGV[1] timeout in seconds, ARGV[2] the new holder.
-- Returns OK, or nil if somebody holds it.
if redis.call('EXISTS', KEYS[1]) == 1 then return nil end
return redis.call('SETEX', KEYS[1], ARGV[1], ARGV[2])
`)

var releaseLockScript = redis.NewScript(`
-- KEYS[1] the lock, ARGV[1] the holder. Returns 1, or nil if it is not held.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return nil end
return redis.call('DEL', KEYS[1])
`)

// Acquire tries until it holds the lock, and returns the id to release it with.
// It answers ErrBusy after the acquire timeout, which must be positive.
func (l LuaLock) Acquire(ctx context.Context, acquireTimeout time.Duration) (id string, err error) {
	if err := l.check(acquireTimeout); err != nil {
		return "", err
	}
	id = l.newID()
	err = l.poll(ctx, acquireTimeout, pollPause, func() (bool, error) {
		return answered(acquireLockScript.Run(ctx, l.Redis, []string{l.key()}, wholeSeconds(l.Timeout), id))
	})
	if err != nil {
		return "", failed("lock", l.Name, err)
	}
	return id, nil
}

// Release gives the lock back. It answers ErrLost if the id does not hold it.
func (l LuaLock) Release(ctx context.Context, id string) error {
	if err := l.Client.check("lock", l.Name); err != nil {
		return err
	}
	held, err := answered(releaseLockScript.Run(ctx, l.Redis, []string{l.key()}, id))
	if err == nil && !held {
		err = ErrLost
	}
	return failed("lock", l.Name, err)
}

// answered reports whether a script returned something else than nil.
func answered(cmd *redis.Cmd) (bool, error) {
	switch err := cmd.Err(); {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

func (l LuaLock) key() string { return "lock:" + l.Name }

func (l LuaLock) check(acquireTimeout time.Duration) error {
	if err := l.Client.check("lock", l.Name); err != nil {
		return err
	}
	if l.Timeout == 0 {
		return invalid("lock %q: no timeout is given", l.Name)
	}
	return checkTimeouts("lock", l.Name, l.Timeout, acquireTimeout)
}
