package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// The locks that are compared.
const (
	signalboxKind = "signalbox"
	redsyncKind   = "redsync"   // its defaults: a try every 50 to 250 ms
	redislockKind = "redislock" // a try every millisecond: it has no default
)

// lockTTL is signalbox's default; the others get the same.
const lockTTL = signalbox.DefaultTTL

// held is a lock that is held. Token is 0 where there is no such thing.
type held interface {
	Release(ctx context.Context) error
	Token() int64
}

// locker is one client of one named lock. Its acquire returns errAgain if a library's patience is over.
type locker struct {
	acquire func(ctx context.Context) (held, error)
	close   func() error
}

var errAgain = errors.New("not obtained")

// newLocker makes a lock over a client, which stays the caller's.
func newLocker(kind string, client redis.UniversalClient, name string) (*locker, error) {
	switch kind {
	case signalboxKind:
		return newSignalbox(client, name), nil
	case redsyncKind:
		return newRedsync(client, name), nil
	case redislockKind:
		return newRedislock(client, name), nil
	}
	return nil, fmt.Errorf("unknown lock %q", kind)
}

func newSignalbox(client redis.UniversalClient, name string) *locker {
	box := signalbox.New(client)
	mutex := box.Mutex(name)
	return &locker{
		acquire: func(ctx context.Context) (held, error) { return mutex.Acquire(ctx) },
		close:   box.Close,
	}
}

type redsyncHeld struct{ mutex *redsync.Mutex }

func (h redsyncHeld) Token() int64 { return 0 }

func (h redsyncHeld) Release(ctx context.Context) error {
	_, err := h.mutex.UnlockContext(ctx)
	return err
}

func newRedsync(client redis.UniversalClient, name string) *locker {
	mutex := redsync.New(goredis.NewPool(client)).NewMutex(name, redsync.WithExpiry(lockTTL))
	return &locker{
		acquire: func(ctx context.Context) (held, error) {
			err := mutex.LockContext(ctx)
			var taken *redsync.ErrTaken
			if errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) {
				return nil, errAgain
			}
			return redsyncHeld{mutex}, err
		},
		close: func() error { return nil },
	}
}

type redislockHeld struct{ *redislock.Lock }

func (h redislockHeld) Token() int64 { return 0 }

func newRedislock(client redis.UniversalClient, name string) *locker {
	locks := redislock.New(client)
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)}
	return &locker{
		acquire: func(ctx context.Context) (held, error) {
			lock, err := locks.Obtain(ctx, name, lockTTL, options)
			if errors.Is(err, redislock.ErrNotObtained) {
				return nil, errAgain
			}
			return redislockHeld{lock}, err
		},
		close: func() error { return nil },
	}
}
