package classic

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// FairSemaphore is the fair semaphore of Redis in Action, 6.3.2 to 6.3.4. The
// order of the holders comes from a counter on the server instead of their
// clocks. Keys: the name for the sorted set by time, with ":owner" for the one
// by counter, with ":counter" for the counter.
//
// Acquire first removes, in one transaction, the entries older than the
// timeout, takes those out of the owners by ZINTERSTORE, and increments the
// counter. A second transaction adds the client to both sets and asks for its
// rank among the owners. Below the limit it has a permit; else a third
// transaction removes it from both.
//
// It promises that a client with a slow clock does not get in before others,
// and that Refresh tells whether the permit is still there.
//
// It breaks:
//
//   - The counter is taken in one transaction and used in the next. A increments
//     first, B increments, is added, asks and has the last permit; now A is
//     added with the smaller number, ranks before B, and has it as well. No
//     clock need be wrong: two clients at once suffice.
//   - A client whose clock is ahead by more than the timeout removes all
//     holders. They are told when they refresh.
//   - A holder takes longer than the timeout: two hold its permit until it
//     refreshes or releases.
//   - Refresh adds before it knows whether it has lost. A crash right then
//     leaves an entry in the set by time until it times out.
//   - A client whose clock is behind shortens its permit with every refresh.
//   - The counter becomes a floating-point score. From 2^53 on numbers tie, and
//     ids decide: a newcomer may sort before a holder.
//   - Clients that state different limits each believe in their own.
type FairSemaphore struct {
	Client
	// Name is what the permits are for, and the key. Required.
	Name string
	// Limit is how many may hold a permit at once; at least 1.
	Limit int
	// Timeout is how long a permit lasts without a refresh. Required.
	Timeout time.Duration
}

// Acquire takes a permit or answers ErrBusy, at once. The id is for Refresh
// and Release.
func (s FairSemaphore) Acquire(ctx context.Context) (id string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	id, err = s.take(ctx)
	return id, failed("semaphore", s.Name, err)
}

func (s FairSemaphore) take(ctx context.Context) (id string, err error) {
	id, now := s.newID(), s.clock().Now()
	counter, err := s.count(ctx, now)
	if err != nil {
		return "", err
	}
	var rank *redis.IntCmd
	_, err = s.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, s.Name, redis.Z{Score: score(now), Member: id})
		pipe.ZAdd(ctx, s.owner(), redis.Z{Score: float64(counter), Member: id})
		rank = pipe.ZRank(ctx, s.owner(), id)
		return nil
	})
	if err != nil {
		return "", err
	}
	if rank.Val() < int64(s.Limit) {
		return id, nil
	}
	if _, err := s.remove(context.WithoutCancel(ctx), id); err != nil {
		return "", err
	}
	return "", ErrBusy
}

// count is the first transaction: what has timed out goes, and the counter says
// who comes when.
func (s FairSemaphore) count(ctx context.Context, now time.Time) (int64, error) {
	var counter *redis.IntCmd
	_, err := s.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZRemRangeByScore(ctx, s.Name, "-inf", bound(now.Add(-s.Timeout)))
		pipe.ZInterStore(ctx, s.owner(), &redis.ZStore{Keys: []string{s.owner(), s.Name}, Weights: []float64{1, 0}})
		counter = pipe.Incr(ctx, s.counter())
		return nil
	})
	if err != nil {
		return 0, err
	}
	return counter.Val(), nil
}

// Refresh makes the permit last for another timeout. It answers ErrLost if the
// permit is gone, and leaves nothing of it behind then.
func (s FairSemaphore) Refresh(ctx context.Context, id string) error {
	if err := s.check(); err != nil {
		return err
	}
	if id == "" {
		return invalid("semaphore %q: the id is empty", s.Name)
	}
	added, err := s.Redis.ZAdd(ctx, s.Name, redis.Z{Score: score(s.clock().Now()), Member: id}).Result()
	if err == nil && added > 0 {
		if _, err = s.remove(context.WithoutCancel(ctx), id); err == nil {
			err = ErrLost
		}
	}
	return failed("semaphore", s.Name, err)
}

// Release gives the permit back. It answers ErrLost if it has timed out and
// somebody has noticed.
func (s FairSemaphore) Release(ctx context.Context, id string) error {
	if err := s.Client.check("semaphore", s.Name); err != nil {
		return err
	}
	held, err := s.remove(ctx, id)
	if err == nil && !held {
		err = ErrLost
	}
	return failed("semaphore", s.Name, err)
}

// remove takes the id out of both sets, and reports whether it was in the one
// by time.
func (s FairSemaphore) remove(ctx context.Context, id string) (bool, error) {
	var byTime *redis.IntCmd
	_, err := s.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		byTime = pipe.ZRem(ctx, s.Name, id)
		pipe.ZRem(ctx, s.owner(), id)
		return nil
	})
	if err != nil {
		return false, err
	}
	return byTime.Val() > 0, nil
}

func (s FairSemaphore) owner() string   { return s.Name + ":owner" }
func (s FairSemaphore) counter() string { return s.Name + ":counter" }

func (s FairSemaphore) check() error { return Semaphore(s).check() }
