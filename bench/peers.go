package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The locks of other libraries, as their documentation shows them.

type redsyncHeld struct{ mutex *redsync.Mutex }

func (h redsyncHeld) Token() int64 { return 0 }

func (h redsyncHeld) Release(ctx context.Context) error {
	_, err := h.mutex.UnlockContext(ctx)
	return err
}

// newRedsync has a mutex for each goroutine: a mutex of redsync remembers who holds it.
func newRedsync(client *redis.Client, name string) *locker {
	sync := redsync.New(goredis.NewPool(client))
	fork := func() acquireFunc {
		mutex := sync.NewMutex(name, redsync.WithExpiry(lockTTL))
		return func(ctx context.Context) (held, error) {
			err := mutex.LockContext(ctx)
			var taken *redsync.ErrTaken
			if errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) {
				return nil, errAgain
			}
			return redsyncHeld{mutex}, err
		}
	}
	return &locker{acquire: fork(), fork: fork, close: nothingToClose}
}

type redislockHeld struct{ *redislock.Lock }

func (h redislockHeld) Token() int64 { return 0 }

// retryStrategy is made anew for each acquire, because the exponential one counts its tries.
func retryStrategy(kind string) redislock.RetryStrategy {
	switch kind {
	case redislockLinearKind:
		return redislock.LinearBackoff(10 * time.Millisecond)
	case redislockExpoKind:
		return redislock.ExponentialBackoff(time.Millisecond, 100*time.Millisecond)
	}
	return redislock.LinearBackoff(time.Millisecond)
}

func newRedislock(client *redis.Client, name, kind string) *locker {
	locks := redislock.New(client)
	return &locker{
		acquire: func(ctx context.Context) (held, error) {
			lock, err := locks.Obtain(ctx, name, lockTTL, &redislock.Options{RetryStrategy: retryStrategy(kind)})
			if errors.Is(err, redislock.ErrNotObtained) {
				return nil, errAgain
			}
			return redislockHeld{lock}, err
		},
		close: nothingToClose,
	}
}

type rueidislockHeld struct{ release context.CancelFunc }

func (h rueidislockHeld) Token() int64 { return 0 }

func (h rueidislockHeld) Release(context.Context) error {
	h.release()
	return nil
}

// newRueidislock brings its own client, so it needs an address. Its validity stays at its default: it renews by itself.
func newRueidislock(addr, name string) (*locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
	})
	if err != nil {
		return nil, err
	}
	return &locker{
		acquire: func(ctx context.Context) (held, error) {
			_, release, err := l.WithContext(ctx, name)
			return rueidislockHeld{release}, err
		},
		close: func() error {
			l.Close()
			return nil
		},
	}, nil
}
