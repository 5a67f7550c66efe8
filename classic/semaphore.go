package classic

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Semaphore is the basic counting semaphore of Redis in Action, 6.3.1: a
// sorted set of holders, each with the time of its client's clock at which it
// acquired. The key is the name.
//
// Acquire removes in one transaction the entries older than the timeout, adds
// its own, and asks for its rank. Below the limit it has a permit; else it
// removes its entry again.
//
// It promises that with clocks that agree at most limit clients hold a permit
// that has not timed out, and that a crashed holder's permit ends some time.
//
// It breaks:
//
//   - Among clients whose clocks differ the slowest always gets in: its entry
//     sorts before those of the holders. One holder too many, by any difference.
//   - A client whose clock is ahead by more than the timeout removes all
//     holders. They are not told.
//   - A client that was refused stands in the set until its ZREM comes. Who asks
//     meanwhile is refused although a permit is free; if it crashed, for the
//     whole timeout.
//   - A holder takes longer than the timeout: it is told only when it releases,
//     and there is no refresh.
//   - Clients that state different limits each believe in their own.
type Semaphore struct {
	Client
	// Name is what the permits are for, and the key. Required.
	Name string
	// Limit is how many may hold a permit at once; at least 1.
	Limit int
	// Timeout is how long a permit lasts. Required.
	Timeout time.Duration
}

// Acquire takes a permit or answers ErrBusy, at once. The id is for Release.
func (s Semaphore) Acquire(ctx context.Context) (id string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	id, now := s.newID(), s.clock().Now()
	var rank *redis.IntCmd
	_, err = s.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZRemRangeByScore(ctx, s.Name, "-inf", bound(now.Add(-s.Timeout)))
		pipe.ZAdd(ctx, s.Name, redis.Z{Score: score(now), Member: id})
		rank = pipe.ZRank(ctx, s.Name, id)
		return nil
	})
	if err != nil {
		return "", failed("semaphore", s.Name, err)
	}
	if rank.Val() < int64(s.Limit) {
		return id, nil
	}
	if err := s.Redis.ZRem(context.WithoutCancel(ctx), s.Name, id).Err(); err != nil {
		return "", failed("semaphore", s.Name, err)
	}
	return "", failed("semaphore", s.Name, ErrBusy)
}

// Release gives the permit back. It answers ErrLost if it has timed out and
// somebody has noticed.
func (s Semaphore) Release(ctx context.Context, id string) error {
	if err := s.Client.check("semaphore", s.Name); err != nil {
		return err
	}
	return failed("semaphore", s.Name, removed(s.Redis.ZRem(ctx, s.Name, id)))
}

// removed turns the number of removed entries into an answer.
func removed(cmd *redis.IntCmd) error {
	if cmd.Err() == nil && cmd.Val() == 0 {
		return ErrLost
	}
	return cmd.Err()
}

// check refuses what is no semaphore.
func (s Semaphore) check() error {
	if err := s.Client.check("semaphore", s.Name); err != nil {
		return err
	}
	switch {
	case s.Limit < 1:
		return invalid("semaphore %q: the limit is %d: give at least 1", s.Name, s.Limit)
	case s.Timeout <= 0:
		return invalid("semaphore %q: the timeout is %v: give a positive one", s.Name, s.Timeout)
	}
	return nil
}
