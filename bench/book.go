package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// The locks and semaphores of Redis in Action, as algorithms: a name of one's own in the lock, a try every millisecond,
// and the same commands in the same round trips. The book's pipelines are transactions, and so are these. Where the book
// lets a client give up after a while, these go on until their context ends.

const bookPause = time.Millisecond

// pause waits for the next try.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// noToken is for locks that have no fencing token.
type noToken struct{}

func (noToken) Token() int64 { return 0 }

// bookLock is SETNX and then EXPIRE; whoever finds it taken sees to it that it expires, in case the holder died between
// the two. The release watches the key, so that it does not take the lock from somebody else.
type bookLock struct {
	client *redis.Client
	key    string
}

type bookHeld struct {
	noToken
	lock bookLock
	id   string
}

func (l bookLock) acquire(ctx context.Context) (held, error) {
	id := rand.Text()
	for {
		taken, err := l.client.Do(ctx, "setnx", l.key, id).Int()
		if err != nil {
			return nil, err
		}
		if taken == 1 {
			return bookHeld{lock: l, id: id}, l.client.Expire(ctx, l.key, lockTTL).Err()
		}
		left, err := l.client.TTL(ctx, l.key).Result()
		if err == nil && left == -1 {
			err = l.client.Expire(ctx, l.key, lockTTL).Err()
		}
		if err == nil {
			err = pause(ctx, bookPause)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (h bookHeld) Release(ctx context.Context) error {
	for {
		err := h.lock.client.Watch(ctx, func(tx *redis.Tx) error {
			holder, err := tx.Get(ctx, h.lock.key).Result()
			if err != nil || holder != h.id {
				return errors.Join(errors.New("the book's lock is lost"), err)
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Del(ctx, h.lock.key).Err() })
			return err
		}, h.lock.key)
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}

// bookLuaLock is the same in a script each way.
type bookLuaLock struct {
	client *redis.Client
	key    string
}

type bookLuaHeld struct {
	noToken
	lock bookLuaLock
	id   string
}

var (
	bookLuaAcquire = redis.NewScript(`
		if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
		redis.call('SETEX', KEYS[1], ARGV[1], ARGV[2])
		return 1`)
	bookLuaRelease = redis.NewScript(`
		if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
		return redis.call('DEL', KEYS[1])`)
)

func (l bookLuaLock) acquire(ctx context.Context) (held, error) {
	id, seconds := rand.Text(), int(lockTTL.Seconds())
	for {
		taken, err := bookLuaAcquire.Run(ctx, l.client, []string{l.key}, seconds, id).Int()
		if err == nil && taken == 1 {
			return bookLuaHeld{lock: l, id: id}, nil
		}
		if err == nil {
			err = pause(ctx, bookPause)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (h bookLuaHeld) Release(ctx context.Context) error {
	released, err := bookLuaRelease.Run(ctx, h.lock.client, []string{h.lock.key}, h.id).Int()
	if err == nil && released == 0 {
		return errors.New("the book's Lua lock is lost")
	}
	return err
}

// fairSemaphore has the holders with their times in one sorted set, and with the number each drew from a counter in
// another. Who ranks inside the limit by number has a permit.
type fairSemaphore struct {
	client *redis.Client
	name   string
}

type fairHeld struct {
	noToken
	semaphore fairSemaphore
	id        string
}

func (s fairSemaphore) acquire(ctx context.Context) (held, error) {
	for {
		id, err := s.try(ctx)
		if err == nil && id != "" {
			return fairHeld{semaphore: s, id: id}, nil
		}
		if err == nil {
			err = pause(ctx, bookPause)
		}
		if err != nil {
			return nil, err
		}
	}
}

// fairLockPatience is how long the book's cure waits for the lock around each try.
const fairLockPatience = 10 * time.Millisecond

// acquireUnderLock is the book's cure for the race of the above: each try holds a lock.
func (s fairSemaphore) acquireUnderLock(ctx context.Context) (held, error) {
	for {
		id, err := s.tryUnderLock(ctx)
		if err == nil && id != "" {
			return fairHeld{semaphore: s, id: id}, nil
		}
		if err == nil {
			err = pause(ctx, bookPause)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s fairSemaphore) tryUnderLock(ctx context.Context) (string, error) {
	lock, id, patience := bookLock{s.client, "lock:" + s.name}, rand.Text(), time.Now().Add(fairLockPatience)
	// Only the waiting is cut short: a command that is cut off would leave a lock that nobody holds.
	for {
		taken, err := s.client.Do(ctx, "setnx", lock.key, id).Int()
		if err != nil {
			return "", err
		}
		if taken == 1 {
			break
		}
		if time.Now().After(patience) {
			return "", nil
		}
		if err := pause(ctx, bookPause); err != nil {
			return "", err
		}
	}
	permit, err := s.try(ctx)
	// The release must happen even if the window is over.
	return permit, errors.Join(err, bookHeld{lock: lock, id: id}.Release(context.WithoutCancel(ctx)))
}

func (s fairSemaphore) try(ctx context.Context) (string, error) {
	id, owners, now := rand.Text(), s.name+":owner", float64(time.Now().UnixMicro())/1e6
	pipe := s.client.TxPipeline()
	pipe.ZRemRangeByScore(ctx, s.name, "-inf", strconv.FormatFloat(now-lockTTL.Seconds(), 'f', 6, 64))
	pipe.ZInterStore(ctx, owners, &redis.ZStore{Keys: []string{owners, s.name}, Weights: []float64{1, 0}})
	number := pipe.Incr(ctx, s.name+":counter")
	if _, err := pipe.Exec(ctx); err != nil {
		return "", err
	}
	pipe = s.client.TxPipeline()
	pipe.ZAdd(ctx, s.name, redis.Z{Score: now, Member: id})
	pipe.ZAdd(ctx, owners, redis.Z{Score: float64(number.Val()), Member: id})
	rank := pipe.ZRank(ctx, owners, id)
	if _, err := pipe.Exec(ctx); err != nil {
		return "", err
	}
	if rank.Val() < semaphoreLimit {
		return id, nil
	}
	return "", s.remove(ctx, id)
}

func (s fairSemaphore) remove(ctx context.Context, id string) error {
	pipe := s.client.TxPipeline()
	pipe.ZRem(ctx, s.name, id)
	pipe.ZRem(ctx, s.name+":owner", id)
	_, err := pipe.Exec(ctx)
	return err
}

func (h fairHeld) Release(ctx context.Context) error { return h.semaphore.remove(ctx, h.id) }
