package classic

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// BinaryLock is the binary semaphore of the EuroPython talk: a string that
// exists while somebody holds it, without a timeout, and a message to all who
// wait when it is released. Its key is "binary:" and the name, its channel the
// key with ":released". The talk's own code was not at hand: it is told from
// its description.
//
// Acquire reads the key under WATCH and, if there is none, sets it in
// MULTI/EXEC. Somebody else's hand in between makes EXEC fail, and it begins
// again. If the key exists it subscribes to the channel, once, and tries again
// with every message. Release compares under WATCH, and sends DEL and PUBLISH
// in one MULTI/EXEC.
//
// It promises that at most one client holds it, that a release never ends what
// somebody else holds, and that waiting costs the server nothing.
//
// It breaks:
//
//   - A holder crashes: nobody ever acquires again. There is no timeout.
//   - The holder releases after a waiter has seen the key and before that has
//     subscribed: the message is lost, and the waiter sleeps beside a free lock
//     until its acquire timeout or the next release.
//   - Pub/sub keeps nothing: a message that a broken connection misses is lost.
//   - Every release wakes all who wait, all try, one wins. None is first.
type BinaryLock struct {
	Client
	// Name is what the lock is for. Required.
	Name string
}

// Acquire waits until it holds the lock, and returns the id to release it with.
// It answers ErrBusy after the acquire timeout, which must be positive.
func (l BinaryLock) Acquire(ctx context.Context, acquireTimeout time.Duration) (id string, err error) {
	if err := l.check("lock", l.Name); err != nil {
		return "", err
	}
	if err := checkTimeouts("lock", l.Name, 0, acquireTimeout); err != nil {
		return "", err
	}
	id = l.newID()
	end := l.clock().Now().Add(acquireTimeout)
	acquired, err := l.try(ctx, id)
	if err == nil && !acquired {
		err = l.await(ctx, id, end)
	}
	if err != nil {
		return "", failed("lock", l.Name, err)
	}
	return id, nil
}

// await tries with every message until the client's clock says end.
func (l BinaryLock) await(ctx context.Context, id string, end time.Time) (err error) {
	notices, stop, err := l.subscribe(ctx)
	if err != nil {
		return err
	}
	defer stop()
	// Ended by the alarm at the end, by the caller's context, or by return.
	alarm, disarm := context.WithCancel(ctx)
	rung := make(chan struct{})
	go func() {
		defer close(rung)
		if l.clock().Sleep(alarm, end.Sub(l.clock().Now())) == nil {
			disarm()
		}
	}()
	defer func() { disarm(); <-rung }()
	for {
		select {
		case <-notices:
			if acquired, err := l.try(ctx, id); acquired || err != nil {
				return err
			}
		case <-alarm.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return ErrBusy
		}
	}
}

// subscribe returns when the server has confirmed the subscription.
func (l BinaryLock) subscribe(ctx context.Context) (notices <-chan *redis.Message, stop func(), err error) {
	subscription := l.Redis.Subscribe(ctx, l.channel())
	stop = func() { _ = subscription.Close() } // nothing is owed to it
	if _, err := subscription.Receive(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return subscription.Channel(), stop, nil
}

// try takes the lock if it is free, however often it is disturbed.
func (l BinaryLock) try(ctx context.Context, id string) (acquired bool, err error) {
	err = l.optimistic(ctx, 0, func(tx *redis.Tx) error {
		holder, err := get(ctx, tx, l.key())
		if err != nil || holder != "" {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			return pipe.Set(ctx, l.key(), id, 0).Err()
		})
		acquired = err == nil
		return err
	}, l.key())
	return acquired, err
}

// Release gives the lock back and tells those who wait. It answers ErrLost if
// the id does not hold it.
func (l BinaryLock) Release(ctx context.Context, id string) error {
	if err := l.check("lock", l.Name); err != nil {
		return err
	}
	return failed("lock", l.Name, l.optimistic(ctx, 0, func(tx *redis.Tx) error {
		return deleteIfHeld(ctx, tx, l.key(), id, func(pipe redis.Pipeliner) {
			pipe.Publish(ctx, l.channel(), "released")
		})
	}, l.key()))
}

func (l BinaryLock) key() string     { return "binary:" + l.Name }
func (l BinaryLock) channel() string { return l.key() + ":released" }
