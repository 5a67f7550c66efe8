package classic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// priceMax is the largest price: the score of a sorted set holds whole numbers
// exactly up to here.
const priceMax = 1 << 53

// How long the book tries to list and to buy.
const (
	listPatience = 5 * time.Second
	buyPatience  = 10 * time.Second
	// marketLock is the lock of PurchaseLocked, tried for as long as Lock's
	// default in the book.
	marketLock         = "market:"
	marketLockPatience = 10 * time.Second
)

// ErrRefused is returned for a trade that cannot be: the seller does not have
// the item, it is not on the market at that price, or the buyer lacks the funds.
var ErrRefused = errors.New("refused")

// Market is the marketplace of Redis in Action, 4.4. A user's funds are the
// field "funds" of the hash "users:" and the user, the inventory is the set
// "inventory:" and the user, and what is for sale is the sorted set "market:"
// of item.seller by price.
//
// List watches the seller's inventory, Purchase the market and the buyer; both
// read, write in MULTI/EXEC, and begin again if somebody else wrote what they
// watch, for 5 and 10 seconds. PurchaseLocked (6.2) reads and writes under the
// Lock "market:" instead of watching. PurchaseScript (11.3) is one script.
//
// Each promises alone that an item is sold once, at the price that the buyer
// saw, and that nobody's funds become negative.
//
// It breaks:
//
//   - Every listing and every sale disturbs every purchase, because the market
//     is one key. Under load purchases retry until they give up, and the one
//     that is slow loses always.
//   - PurchaseLocked excludes only those that take the lock. A Purchase in
//     between sells the same item, and both buyers pay.
//   - The lock has no timeout in the book: a buyer that crashes under it closes
//     the market. With a LockTimeout, one that pauses for longer sells twice.
//   - PurchaseLocked and PurchaseScript do not ask what price the buyer saw.
//   - A command within MULTI fails, say because the seller's funds are no
//     number: the rest is done all the same, the buyer has paid, and nobody has
//     the money. The script pays the seller first, and ends there.
//   - The reply to EXEC is lost: the buyer cannot know whether it bought.
type Market struct {
	Client
	// LockTimeout is the timeout of PurchaseLocked's lock; 0 is none, as in the
	// book.
	LockTimeout time.Duration
}

// List puts an item of the seller's inventory on the market. The price is from
// 1 to 2^53. It answers ErrRefused if the seller does not have the item, and
// ErrBusy after 5 seconds of retries.
func (m Market) List(ctx context.Context, item, seller string, price int64) error {
	if err := checkTrade(m.Client, item, seller); err != nil {
		return err
	}
	if err := checkPrice(item, price); err != nil {
		return err
	}
	inventory := inventoryKey(seller)
	err := m.optimistic(ctx, listPatience, func(tx *redis.Tx) error {
		has, err := tx.SIsMember(ctx, inventory, item).Result()
		if err != nil {
			return err
		}
		if !has {
			return ErrRefused
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.ZAdd(ctx, marketLock, redis.Z{Score: float64(price), Member: offer(item, seller)})
			pipe.SRem(ctx, inventory, item)
			return nil
		})
		return err
	}, inventory)
	return failed("market item", item, err)
}

// Purchase buys at the price that the buyer has seen. It answers ErrRefused if
// the item is not to be had at that price or the funds are too small, and
// ErrBusy after 10 seconds of retries.
func (m Market) Purchase(ctx context.Context, buyer, item, seller string, price int64) error {
	if err := checkTrade(m.Client, item, seller, buyer); err != nil {
		return err
	}
	if err := checkPrice(item, price); err != nil {
		return err
	}
	err := m.optimistic(ctx, buyPatience, func(tx *redis.Tx) error {
		asked, err := tx.ZScore(ctx, marketLock, offer(item, seller)).Result()
		if err != nil {
			return refusedIfNil(err)
		}
		funds, err := tx.HGet(ctx, userKey(buyer), "funds").Int64()
		if err != nil {
			return refusedIfNil(err)
		}
		if asked != float64(price) || price > funds {
			return ErrRefused
		}
		return transfer(ctx, tx, buyer, item, seller, price)
	}, marketLock, userKey(buyer))
	return failed("market item", item, err)
}

// PurchaseLocked buys at whatever the price is. It answers ErrRefused if the
// item is not for sale or the funds are too small, and ErrBusy if the lock is
// not free within 10 seconds.
func (m Market) PurchaseLocked(ctx context.Context, buyer, item, seller string) error {
	if err := checkTrade(m.Client, item, seller, buyer); err != nil {
		return err
	}
	lock := Lock{Client: m.Client, Name: marketLock, Timeout: m.LockTimeout}
	err := lock.during(ctx, marketLockPatience, func() error {
		var asked *redis.FloatCmd
		var funds *redis.StringCmd
		_, err := m.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			asked = pipe.ZScore(ctx, marketLock, offer(item, seller))
			funds = pipe.HGet(ctx, userKey(buyer), "funds")
			return nil
		})
		if err != nil {
			return refusedIfNil(err)
		}
		has, err := funds.Int64()
		if err != nil {
			return err
		}
		if price := int64(asked.Val()); price <= has {
			return transfer(ctx, m.Redis, buyer, item, seller, price)
		}
		return ErrRefused
	})
	return failed("market item", item, err)
}

var purchaseScript = redis.NewScript(`
-- KEYS: the market, the buyer, the seller, the buyer's inventory; ARGV: the
-- offer, the item. Returns 1, or nil if there is no offer or too little money.
local price = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or nil)
local funds = tonumber(redis.call('HGET', KEYS[2], 'funds') or nil)
if not price or not funds or funds < price then return nil end
local amount = string.format('%d', price)
redis.call('HINCRBY', KEYS[3], 'funds', amount)
redis.call('HINCRBY', KEYS[2], 'funds', '-' .. amount)
redis.call('SADD', KEYS[4], ARGV[2])
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
`)

// PurchaseScript buys at whatever the price is. It answers ErrRefused if the
// item is not for sale or the funds are too small.
func (m Market) PurchaseScript(ctx context.Context, buyer, item, seller string) error {
	if err := checkTrade(m.Client, item, seller, buyer); err != nil {
		return err
	}
	keys := []string{marketLock, userKey(buyer), userKey(seller), inventoryKey(buyer)}
	bought, err := answered(purchaseScript.Run(ctx, m.Redis, keys, offer(item, seller), item))
	if err == nil && !bought {
		err = ErrRefused
	}
	return failed("market item", item, err)
}

// transfer moves the money and the item in one MULTI/EXEC.
func transfer(ctx context.Context, server redis.Cmdable, buyer, item, seller string, price int64) error {
	_, err := server.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HIncrBy(ctx, userKey(seller), "funds", price)
		pipe.HIncrBy(ctx, userKey(buyer), "funds", -price)
		pipe.SAdd(ctx, inventoryKey(buyer), item)
		pipe.ZRem(ctx, marketLock, offer(item, seller))
		return nil
	})
	return err
}

func userKey(user string) string       { return "users:" + user }
func inventoryKey(user string) string  { return "inventory:" + user }
func offer(item, seller string) string { return item + "." + seller }

// refusedIfNil turns a missing offer or account into ErrRefused.
func refusedIfNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return ErrRefused
	}
	return err
}

// checkTrade refuses names that cannot be traded under. An item with a dot
// could be taken for another seller's.
func checkTrade(c Client, item string, users ...string) error {
	if err := c.check("market item", item); err != nil {
		return err
	}
	if strings.Contains(item, ".") {
		return invalid("market item %q: an item has no dot in its name: it stands between item and seller", item)
	}
	for _, user := range users {
		if user == "" {
			return invalid("market item %q: a user's name is empty", item)
		}
	}
	return nil
}

func checkPrice(item string, price int64) error {
	if price < 1 || price > priceMax {
		return invalid("market item %q: the price is %d: give 1 to %s", item, price, strconv.Itoa(priceMax))
	}
	return nil
}

// during runs something under the lock and releases it, whatever happens. It
// answers what that answers, and an error of the release that is not the loss
// of the lock, which the book does not look at.
func (l Lock) during(ctx context.Context, patience time.Duration, work func() error) error {
	id, err := l.Acquire(ctx, patience)
	if err != nil {
		return err
	}
	err = work()
	if lost := l.Release(context.WithoutCancel(ctx), id); lost != nil && !errors.Is(lost, ErrLost) {
		err = errors.Join(err, fmt.Errorf("after the work: %w", lost))
	}
	return err
}
