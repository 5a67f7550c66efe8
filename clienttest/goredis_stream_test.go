package clienttest

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func goRedisStreams(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	add := func(n string) string {
		id, err := c.XAdd(ctx, &redis.XAddArgs{Stream: "stream", MaxLen: 1000, Approx: true, Values: []string{"n", n}}).Result()
		must(t, "XADD", err)
		return id
	}
	message := func(id, n string) redis.XMessage { return redis.XMessage{ID: id, Values: map[string]any{"n": n}} }
	one, two, three := add("1"), add("2"), add("3")
	entries, err := c.XRevRangeN(ctx, "stream", "+", "-", 2).Result()
	check(t, "XREVRANGE", []redis.XMessage{message(three, "3"), message(two, "2")}, entries, err)
	must(t, "XGROUP CREATE", c.XGroupCreate(ctx, "stream", "workers", "0").Err())
	if err := c.XGroupCreate(ctx, "stream", "workers", "0").Err(); !redis.HasErrorPrefix(err, "BUSYGROUP") {
		t.Fatalf("XGROUP CREATE again: %v", err)
	}
	read, err := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "ada", Streams: []string{"stream", ">"}, Count: 2}).Result()
	check(t, "XREADGROUP", []redis.XStream{{Stream: "stream", Messages: []redis.XMessage{message(one, "1"), message(two, "2")}}}, read, err)
	pending, err := c.XPending(ctx, "stream", "workers").Result()
	check(t, "XPENDING", &redis.XPending{Count: 2, Lower: one, Higher: two, Consumers: map[string]int64{"ada": 2}}, pending, err)
	claimed, err := c.XClaim(ctx, &redis.XClaimArgs{Stream: "stream", Group: "workers", Consumer: "bob", Messages: []string{one}}).Result()
	check(t, "XCLAIM", []redis.XMessage{message(one, "1")}, claimed, err)
	claimed, next, err := c.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: "stream", Group: "workers", Consumer: "bob", Start: "0", Count: 10}).Result()
	check(t, "XAUTOCLAIM", []redis.XMessage{message(one, "1"), message(two, "2")}, claimed, err)
	check(t, "its cursor", "0-0", next, nil)
	details, err := c.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: "stream", Group: "workers", Start: "-", End: "+", Count: 10, Consumer: "bob"}).Result()
	check(t, "XPENDING in detail", 2, len(details), err)
	check(t, "deliveries", 3, details[0].RetryCount, nil)
	acked, err := c.XAck(ctx, "stream", "workers", one, two, "9-9").Result()
	check(t, "XACK", 2, acked, err)
	groups, err := c.XInfoGroups(ctx, "stream").Result()
	check(t, "XINFO GROUPS", []redis.XInfoGroup{{Name: "workers", Consumers: 2, LastDeliveredID: two, EntriesRead: 2, Lag: 1}}, groups, err)
	full, err := c.XInfoStreamFull(ctx, "stream", 10).Result()
	must(t, "XINFO STREAM FULL", err)
	check(t, "its entries", []redis.XMessage{message(one, "1"), message(two, "2"), message(three, "3")}, full.Entries, nil)
	check(t, "its consumers", 2, len(full.Groups[0].Consumers), nil)
	trimmed, err := c.XTrimMinID(ctx, "stream", three).Result()
	check(t, "XTRIM", 2, trimmed, err)
}

// goRedisStreamWaits: what a group's consumers block on, and what a blocked list command gets.
func goRedisStreamWaits(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	must(t, "XGROUP CREATE", c.XGroupCreateMkStream(ctx, "events", "workers", "$").Err())
	type got struct {
		streams []redis.XStream
		err     error
	}
	reads := make(chan got, 2)
	for _, name := range []string{"ada", "bob"} {
		go func() {
			streams, err := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: name, Streams: []string{"events", ">"}, Count: 1, Block: 0}).Result()
			reads <- got{streams, err}
		}()
	}
	seen := map[string]bool{}
	for range 2 {
		must(t, "XADD", c.XAdd(ctx, &redis.XAddArgs{Stream: "events", Values: []string{"n", "1"}}).Err())
	}
	for range 2 {
		read := <-reads
		must(t, "XREADGROUP", read.err)
		seen[read.streams[0].Messages[0].ID] = true
	}
	check(t, "entries that the two have read", 2, len(seen), nil)
	if err := c.XRead(ctx, &redis.XReadArgs{Streams: []string{"events", "$"}, Block: time.Millisecond}).Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("XREAD of nothing: %v", err)
	}
	popped := make(chan *redis.ZWithKeyCmd, 1)
	go func() { popped <- c.BZPopMax(ctx, 0, "zq") }()
	must(t, "ZADD", c.ZAdd(ctx, "zq", redis.Z{Score: 1.5, Member: "m"}).Err())
	z := <-popped
	check(t, "BZPOPMAX", &redis.ZWithKey{Key: "zq", Z: redis.Z{Score: 1.5, Member: "m"}}, z.Val(), z.Err())
	moved := make(chan *redis.StringCmd, 1)
	go func() { moved <- c.BLMove(ctx, "from", "to", "LEFT", "RIGHT", 0) }()
	must(t, "RPUSH", c.RPush(ctx, "from", "x").Err())
	move := <-moved
	check(t, "BLMOVE", "x", move.Val(), move.Err())
}
