package classic

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Delayed tasks, Redis in Action, 6.4.2: a sorted set of JSON texts
// ["id", "queue", "name", [argument, …]] by the time at which they are due, by
// the clock of whoever delayed them. A Mover moves them to their queues.

// delayedKey is the set of all queues' delayed tasks.
const delayedKey = "delayed:"

// moverPause is how long a mover sleeps when nothing is due; moverPatience how
// long it tries for the lock of a task, which is the default of the book.
const (
	moverPause    = 10 * time.Millisecond
	moverPatience = 10 * time.Second
)

// PushLater adds a task that is due after delay, by the client's clock, and
// returns its id. Without a delay it goes to its queue at once, in the form of
// the delayed ones.
func (q Queue) PushLater(ctx context.Context, delay time.Duration, task string, args ...any) (id string, err error) {
	id = q.newID()
	packed, err := q.pack(task, args, func(args []any) any { return []any{id, q.Name, task, args} })
	if err != nil {
		return "", err
	}
	if delay > 0 {
		due := q.clock().Now().Add(delay)
		err = q.Redis.ZAdd(ctx, delayedKey, redis.Z{Score: score(due), Member: packed}).Err()
	} else {
		err = q.Redis.RPush(ctx, queueKey(q.Name), packed).Err()
	}
	if err != nil {
		return "", failed("queue", q.Name, err)
	}
	return id, nil
}

// Mover moves delayed tasks to their queues when they are due. It asks for the
// first of the set every 10 ms (ZRANGE), takes a Lock named by the task's id,
// removes the task (ZREM), and pushes it if that was it (RPUSH).
//
// It promises that of several movers one moves a task, and that no task is moved
// before it is due by the clocks involved.
//
// It breaks:
//
//   - A mover crashes between ZREM and RPUSH: the task is gone.
//   - A mover crashes under the lock, which has no timeout in the book: the task
//     stays where it is. Being the first of the set it stops all others, too.
//   - The first of the set is no task: the same.
//   - A mover whose clock is ahead moves early; one who delayed with a clock
//     ahead is served late.
type Mover struct {
	Client
	// LockTimeout is the timeout of the locks; 0 is none, as in the book.
	LockTimeout time.Duration
}

// Run moves tasks until ctx ends or something fails, and returns why.
func (m Mover) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		due, err := m.MoveOne(ctx)
		if err != nil {
			return err
		}
		if !due {
			if err := m.clock().Sleep(ctx, moverPause); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// MoveOne looks at the first task and moves it if it is due; it reports whether
// one was. A task that is due and cannot be had within 10 s, because somebody
// has its lock, counts as one and is left.
func (m Mover) MoveOne(ctx context.Context) (due bool, err error) {
	if err := m.check("mover", delayedKey); err != nil {
		return false, err
	}
	first, err := m.Redis.ZRangeWithScores(ctx, delayedKey, 0, 0).Result()
	if err != nil || len(first) == 0 || first[0].Score > score(m.clock().Now()) {
		return false, failed("mover", delayedKey, err)
	}
	packed := fmt.Sprint(first[0].Member)
	task, err := unpack(packed)
	if err == nil && task.id == "" {
		err = errNoTask
	}
	if err != nil {
		return false, &TaskError{Task: packed, Err: err}
	}
	lock := Lock{Client: m.Client, Name: task.id, Timeout: m.LockTimeout}
	return true, lock.during(ctx, moverPatience, func() error { return m.move(ctx, task.queue, packed) })
}

// move is what happens under the lock.
func (m Mover) move(ctx context.Context, queue, packed string) error {
	removed, err := m.Redis.ZRem(ctx, delayedKey, packed).Result()
	if err == nil && removed > 0 {
		err = m.Redis.RPush(ctx, queueKey(queue), packed).Err()
	}
	return failed("queue", queue, err)
}
