package classic

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// viewedMost is how many viewed items are kept for each token.
const viewedMost = 25

// Logins is the record of who is logged in and what they looked at, Redis in
// Action, 4.5: the measure of what a round trip costs. Keys: the hash "login:"
// of tokens, the sorted set "recent:" of tokens by time, for each token the
// sorted set "viewed:" and the token of items by time, and the sorted set
// "viewed:" of items by minus the number of their views.
//
// UpdateToken sends its two or five commands one after the other, and
// UpdateTokenPipelined all at once, not in MULTI.
//
// It promises that the last 25 items of a token are kept and every view is
// counted; the pipelined one takes one round trip instead of up to five.
//
// It breaks:
//
//   - A client crashes in between: a token without a time is never cleaned up,
//     an item is viewed and not counted. A pipeline makes that rarer and does
//     not exclude it; and others see what is half done.
//   - A client whose clock is behind records a view as older than what was
//     viewed before, and the trimming removes it at once.
type Logins struct {
	Client
	// Prefix goes before every key, so that two records can share a server; "" in the book.
	Prefix string
}

// UpdateToken records that a user was seen, and the item that was viewed; ""
// for none.
func (l Logins) UpdateToken(ctx context.Context, token, user, item string) error {
	if err := l.check(token, user); err != nil {
		return err
	}
	var steps []func(redis.Cmdable) error
	l.update(ctx, token, user, item, func(step func(redis.Cmdable) error) { steps = append(steps, step) })
	for _, step := range steps {
		if err := step(l.Redis); err != nil {
			return failed("token", token, err)
		}
	}
	return nil
}

// UpdateTokenPipelined is UpdateToken in one round trip.
func (l Logins) UpdateTokenPipelined(ctx context.Context, token, user, item string) error {
	if err := l.check(token, user); err != nil {
		return err
	}
	_, err := l.Redis.Pipelined(ctx, func(pipe redis.Pipeliner) (err error) {
		l.update(ctx, token, user, item, func(step func(redis.Cmdable) error) {
			if err == nil {
				err = step(pipe)
			}
		})
		return err
	})
	return failed("token", token, err)
}

// update is the commands, in their order.
func (l Logins) update(ctx context.Context, token, user, item string, send func(func(redis.Cmdable) error)) {
	now, viewed := score(l.clock().Now()), l.Prefix+"viewed:"+token
	send(func(c redis.Cmdable) error { return c.HSet(ctx, l.Prefix+"login:", token, user).Err() })
	send(func(c redis.Cmdable) error {
		return c.ZAdd(ctx, l.Prefix+"recent:", redis.Z{Score: now, Member: token}).Err()
	})
	if item == "" {
		return
	}
	send(func(c redis.Cmdable) error { return c.ZAdd(ctx, viewed, redis.Z{Score: now, Member: item}).Err() })
	send(func(c redis.Cmdable) error { return c.ZRemRangeByRank(ctx, viewed, 0, -viewedMost-1).Err() })
	send(func(c redis.Cmdable) error { return c.ZIncrBy(ctx, l.Prefix+"viewed:", -1, item).Err() })
}

func (l Logins) check(token, user string) error {
	if err := l.Client.check("token", token); err != nil {
		return err
	}
	if user == "" {
		return invalid("token %q: the user is empty", token)
	}
	return nil
}
