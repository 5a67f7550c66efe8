package classic

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// LuaSemaphore is Semaphore in scripts, Redis in Action, 11.2. The key is the
// name.
//
// Acquire sends one script: entries older than the timeout go, and if fewer
// than limit are left the client is added. Refresh sends one that moves the
// entry only if it is there. The time is the client's.
//
// It promises that while no clock is ahead by more than the timeout never more
// than limit hold a permit, whatever the schedule; first come, first served
// among those that ask; and that Refresh tells the truth.
//
// It breaks:
//
//   - A client whose clock is ahead by more than the timeout removes all
//     holders. They are told when they refresh.
//   - A client whose clock is behind by nearly the timeout has a permit that
//     times out at once for the others.
//   - A holder takes longer than the timeout: two hold its permit until it
//     refreshes or releases.
//   - Nobody queues: who is refused asks again, and others may be faster.
//   - Clients that state different limits each believe in their own.
type LuaSemaphore struct {
	Client
	// Name is what the permits are for, and the key. Required.
	Name string
	// Limit is how many may hold a permit at once; at least 1.
	Limit int
	// Timeout is how long a permit lasts without a refresh. Required.
	Timeout time.Duration
}

var acquireSemaphoreScript = redis.NewScript(`
-- KEYS[1] the holders; ARGV: the newest time that has timed out, the limit, the
-- caller's time, its id. Returns 1, or nil if all permits are taken.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return nil end
return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
`)

var refreshSemaphoreScript = redis.NewScript(`
-- KEYS[1] the holders; ARGV: the id, the caller's time. Returns 1, or nil if the
-- permit is gone.
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return nil end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1
`)

// Acquire takes a permit or answers ErrBusy, at once. The id is for Refresh
// and Release.
func (s LuaSemaphore) Acquire(ctx context.Context) (id string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	id, now := s.newID(), s.clock().Now()
	held, err := answered(acquireSemaphoreScript.Run(ctx, s.Redis, []string{s.Name},
		bound(now.Add(-s.Timeout)), s.Limit, bound(now), id))
	if err == nil && !held {
		err = ErrBusy
	}
	if err != nil {
		return "", failed("semaphore", s.Name, err)
	}
	return id, nil
}

// Refresh makes the permit last for another timeout. It answers ErrLost if the
// permit is gone.
func (s LuaSemaphore) Refresh(ctx context.Context, id string) error {
	if err := s.check(); err != nil {
		return err
	}
	held, err := answered(refreshSemaphoreScript.Run(ctx, s.Redis, []string{s.Name}, id, bound(s.clock().Now())))
	if err == nil && !held {
		err = ErrLost
	}
	return failed("semaphore", s.Name, err)
}

// Release gives the permit back. It answers ErrLost if it has timed out and
// somebody has noticed.
func (s LuaSemaphore) Release(ctx context.Context, id string) error {
	return Semaphore(s).Release(ctx, id)
}

func (s LuaSemaphore) check() error { return Semaphore(s).check() }
