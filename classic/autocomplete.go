package classic

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// completions is how many members the book answers at most.
const completions = 10

// Guild is the address book of Redis in Action, 6.1.2: the sorted set
// "members:" and the guild has all members with score 0, so that they are in
// the order of their bytes. Complete puts two markers into it, one before all
// that begins with the prefix and one behind, asks for their ranks, and takes
// them out again in the transaction that reads what is between.
//
// It promises the first ten members that begin with a prefix of letters a to z,
// by their bytes: there is no weight by which others could come first.
//
// It breaks:
//
//   - Every question is two writes to the one key that all others watch, so
//     those who ask disturb each other, as those who join and leave disturb
//     them, and ask again until nobody does. A replica cannot answer.
//   - A client crashes between its markers and the transaction: they stay for
//     ever. They are left out of answers, and count among the ten.
//   - A prefix that comes before all members: the end of the range is -1, which
//     is the last member. All are answered.
//   - A prefix with another character than a to z, a capital say: the markers
//     are the wrong way round, and members are answered that do not match.
type Guild struct {
	Client
	Name string
}

// Join adds a member. A name with a brace could be taken for a marker.
func (g Guild) Join(ctx context.Context, member string) error {
	if err := g.check("guild", g.Name); err != nil {
		return err
	}
	if member == "" || strings.Contains(member, "{") {
		return invalid("guild %q: the member %.40q is empty or has a brace", g.Name, member)
	}
	return failed("guild", g.Name, g.Redis.ZAdd(ctx, g.key(), redis.Z{Member: member}).Err())
}

// Leave removes a member, if it is there.
func (g Guild) Leave(ctx context.Context, member string) error {
	if err := g.check("guild", g.Name); err != nil {
		return err
	}
	return failed("guild", g.Name, g.Redis.ZRem(ctx, g.key(), member).Err())
}

// Complete answers the first ten members that begin with the prefix. It tries
// until nobody changes the guild meanwhile. It answers ErrLost if its markers
// are not there any more.
func (g Guild) Complete(ctx context.Context, prefix string) ([]string, error) {
	if err := g.check("guild", g.Name); err != nil {
		return nil, err
	}
	start, end := prefixRange(prefix)
	id := g.newID()
	start, end = start+id, end+id
	if err := g.Redis.ZAdd(ctx, g.key(), redis.Z{Member: start}, redis.Z{Member: end}).Err(); err != nil {
		return nil, failed("guild", g.Name, err)
	}
	var between *redis.StringSliceCmd
	err := g.optimistic(ctx, 0, func(tx *redis.Tx) error {
		first, err := tx.ZRank(ctx, g.key(), start).Result()
		if err != nil {
			return lostIfNil(err)
		}
		last, err := tx.ZRank(ctx, g.key(), end).Result()
		if err != nil {
			return lostIfNil(err)
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.ZRem(ctx, g.key(), start, end)
			between = pipe.ZRange(ctx, g.key(), first, min(first+completions-1, last-2))
			return nil
		})
		return err
	}, g.key())
	if err != nil {
		return nil, failed("guild", g.Name, err)
	}
	return slices.DeleteFunc(between.Val(), func(member string) bool { return strings.Contains(member, "{") }), nil
}

func (g Guild) key() string { return "members:" + g.Name }

// prefixCharacters are those that names are made of, with the one before and
// the one behind them.
const prefixCharacters = "`abcdefghijklmnopqrstuvwxyz{"

// prefixRange gives what is before all names that begin with the prefix, and
// what is behind them.
func prefixRange(prefix string) (start, end string) {
	before, last := "", byte(0)
	if prefix != "" {
		before, last = prefix[:len(prefix)-1], prefix[len(prefix)-1]
	}
	place, _ := slices.BinarySearch([]byte(prefixCharacters), last)
	return before + string(prefixCharacters[max(place, 1)-1]) + "{", prefix + "{"
}

func lostIfNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return ErrLost
	}
	return err
}
