package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// The locks that are compared. Those of other libraries are in peers.go, the book's in book.go.
const (
	signalboxKind       = "signalbox"
	signalboxSemaphore  = "signalbox semaphore"
	signalboxHandoff    = "signalbox, LocalHandoff"
	bareKind            = "two bare EVALSHA" // what two round trips cost at best
	redsyncKind         = "redsync"          // its defaults: a try every 50 to 250 ms
	redislockKind       = "redislock"        // a try every millisecond: it has no default
	redislockLinearKind = "redislock, linear 10 ms"
	redislockExpoKind   = "redislock, exponential"
	rueidislockKind     = "rueidislock" // its defaults: three keys, of which it takes two
	bookKind            = "book"
	bookLuaKind         = "book, Lua"
	fairKind            = "book, fair semaphore"
	fairLockedKind      = "book, fair semaphore under a lock"
)

// lockTTL is signalbox's default; the others get the same.
const lockTTL = signalbox.DefaultTTL

// handoffs is how many turns a lease may serve in one process: as many as the crowd has goroutines.
const handoffs = 100

// held is a lock that is held. Token is 0 where there is no such thing.
type held interface {
	Release(ctx context.Context) error
	Token() int64
}

// acquireFunc returns errAgain if a library's patience is over.
type acquireFunc func(ctx context.Context) (held, error)

// locker is one client of one named lock.
type locker struct {
	acquire acquireFunc
	// fork makes an acquire for one more goroutine; nil if the one above is safe for all.
	fork  func() acquireFunc
	close func() error
}

// forGoroutine is the acquire that one of several goroutines uses.
func (l *locker) forGoroutine() acquireFunc {
	if l.fork == nil {
		return l.acquire
	}
	return l.fork()
}

var errAgain = errors.New("not obtained")

func nothingToClose() error { return nil }

// newLocker makes a lock over a client, which stays the caller's.
func newLocker(ctx context.Context, kind string, client *redis.Client, name string) (*locker, error) {
	switch kind {
	case bareKind:
		return newBare(ctx, client)
	case signalboxKind:
		return newSignalbox(client, name, 1), nil
	case signalboxSemaphore:
		return newSignalbox(client, name, semaphoreLimit), nil
	case signalboxHandoff:
		return newSignalbox(client, name, 1, signalbox.LocalHandoff(handoffs)), nil
	case redsyncKind:
		return newRedsync(client, name), nil
	case redislockKind, redislockLinearKind, redislockExpoKind:
		return newRedislock(client, name, kind), nil
	case rueidislockKind:
		return newRueidislock(client.Options().Addr, name)
	case bookKind:
		return &locker{acquire: bookLock{client, "lock:" + name}.acquire, close: nothingToClose}, nil
	case bookLuaKind:
		return &locker{acquire: bookLuaLock{client, "lock:" + name}.acquire, close: nothingToClose}, nil
	case fairKind:
		return &locker{acquire: fairSemaphore{client, name}.acquire, close: nothingToClose}, nil
	case fairLockedKind:
		return &locker{acquire: fairSemaphore{client, name}.acquireUnderLock, close: nothingToClose}, nil
	}
	return nil, fmt.Errorf("unknown lock %q", kind)
}

func newSignalbox(client *redis.Client, name string, limit int, options ...signalbox.AcquireOption) *locker {
	box := signalbox.New(client)
	semaphore := box.Semaphore(name, limit)
	return &locker{
		acquire: func(ctx context.Context) (held, error) { return semaphore.Acquire(ctx, options...) },
		close:   box.Close,
	}
}

// bare is the floor: a script that does nothing for an acquire, and another for a release.
type bare struct {
	client *redis.Client
	digest string
	keys   []string
}

func newBare(ctx context.Context, client *redis.Client) (*locker, error) {
	digest, err := client.ScriptLoad(ctx, "return 1").Result()
	if err != nil {
		return nil, err
	}
	b := bare{client, digest, []string{"bench"}}
	return &locker{
		acquire: func(ctx context.Context) (held, error) { return b, b.Release(ctx) },
		close:   nothingToClose,
	}, nil
}

func (b bare) Release(ctx context.Context) error {
	return b.client.EvalSha(ctx, b.digest, b.keys).Err()
}

func (b bare) Token() int64 { return 0 }
