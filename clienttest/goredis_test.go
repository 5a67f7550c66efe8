package clienttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// go-redis speaks RESP3 unless told otherwise. Strings, hashes, lists, transactions and scripts on it are in package
// engine's own tests; here is what else applications use.
func openGoRedis(t *testing.T, options *redis.Options) *redis.Client {
	t.Helper()
	client := redis.NewClient(options)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestGoRedis(t *testing.T) {
	onBothProtocols(t, func(t *testing.T, addr string, protocol int) {
		c := openGoRedis(t, &redis.Options{Addr: addr, Protocol: protocol, ClientName: "go-redis", DB: 5, PoolSize: 8})
		goRedisStrings(t, c)
		goRedisCollections(t, c)
		goRedisSortedSets(t, c)
		goRedisExpiry(t, c)
		goRedisTransactions(t, c)
		goRedisScan(t, c)
		goRedisPubSub(t, c)
		goRedisStreams(t, c)
		goRedisStreamWaits(t, c)
	})
}

func goRedisStrings(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	set, err := c.SetNX(ctx, "s", "hello", time.Minute).Result()
	check(t, "SET NX", true, set, err)
	old, err := c.SetArgs(ctx, "s", "world", redis.SetArgs{Get: true, KeepTTL: true}).Result()
	check(t, "SET GET", "hello", old, err)
	must(t, "MSET", c.MSet(ctx, "a", 1, "b", 2).Err())
	values, err := c.MGet(ctx, "a", "missing", "b").Result()
	check(t, "MGET", []any{"1", nil, "2"}, values, err)
	fields, err := c.BitField(ctx, "bits", "SET", "u8", "#1", 255, "INCRBY", "u8", "#1", 1).Result()
	check(t, "BITFIELD", []int64{0, 0}, fields, err)
	common, err := c.LCS(ctx, &redis.LCSQuery{Key1: "a", Key2: "s", Idx: true}).Result()
	check(t, "LCS", int64(0), common.Len, err)
	taken, err := c.GetDel(ctx, "a").Result()
	check(t, "GETDEL", "1", taken, err)
}

func goRedisCollections(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	type person struct {
		Name string `redis:"name"`
		Born int    `redis:"born"`
	}
	must(t, "HSET", c.HSet(ctx, "h", person{"Ada", 1815}).Err())
	var ada person
	must(t, "scan of HGETALL", c.HGetAll(ctx, "h").Scan(&ada))
	check(t, "HGETALL", person{"Ada", 1815}, ada, nil)
	pairs, err := c.HRandFieldWithValues(ctx, "h", 2).Result()
	check(t, "HRANDFIELD", 2, len(pairs), err)
	must(t, "RPUSH", c.RPush(ctx, "l", 1, 2, 3, 2).Err())
	places, err := c.LPosCount(ctx, "l", "2", 0, redis.LPosArgs{}).Result()
	check(t, "LPOS", []int64{1, 3}, places, err)
	sorted, err := c.Sort(ctx, "l", &redis.Sort{Order: "DESC", Count: 2}).Result()
	check(t, "SORT", []string{"3", "2"}, sorted, err)
	must(t, "SADD", errors.Join(c.SAdd(ctx, "set1", 1, 2, 3).Err(), c.SAdd(ctx, "set2", 2, 3, 4).Err()))
	stored, err := c.SDiffStore(ctx, "diff", "set1", "set2").Result()
	check(t, "SDIFFSTORE", 1, stored, err)
	in, err := c.SMIsMember(ctx, "set1", 1, 9).Result()
	check(t, "SMISMEMBER", []bool{true, false}, in, err)
	dumped, err := c.Dump(ctx, "set1").Result()
	must(t, "DUMP", err)
	must(t, "RESTORE", c.Restore(ctx, "copy", 0, dumped).Err())
	same, err := c.SInterCard(ctx, 0, "set1", "copy").Result()
	check(t, "SINTERCARD", 3, same, err)
}

func goRedisSortedSets(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	added, err := c.ZAddArgs(ctx, "z", redis.ZAddArgs{GT: true, Members: []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}}}).Result()
	check(t, "ZADD", 2, added, err)
	scores, err := c.ZMScore(ctx, "z", "b", "a").Result()
	check(t, "ZMSCORE", []float64{2.5, 1}, scores, err)
	byScore, err := c.ZRangeArgs(ctx, redis.ZRangeArgs{Key: "z", Start: "(1", Stop: "+inf", ByScore: true, Count: 5}).Result()
	check(t, "ZRANGE BYSCORE", []string{"b"}, byScore, err)
	rank, err := c.ZRevRank(ctx, "z", "b").Result()
	check(t, "ZREVRANK", 0, rank, err)
	union, err := c.ZUnionWithScores(ctx, redis.ZStore{Keys: []string{"z", "z"}, Weights: []float64{1, 2}, Aggregate: "MAX"}).Result()
	check(t, "ZUNION", []redis.Z{{Score: 2, Member: "a"}, {Score: 5, Member: "b"}}, union, err)
	key, popped, err := c.ZMPop(ctx, "max", 1, "none", "z").Result()
	check(t, "ZMPOP", fmt.Sprint("z", []redis.Z{{Score: 2.5, Member: "b"}}), fmt.Sprint(key, popped), err)
}

func goRedisExpiry(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	must(t, "SET", c.Set(ctx, "short", "x", 10*time.Millisecond).Err())
	for c.Exists(ctx, "short").Val() == 1 { // ends when it has expired
	}
	if err := c.Get(ctx, "short").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("GET of what has expired: %v", err)
	}
	when := time.Now().Add(time.Hour).Truncate(time.Second)
	must(t, "SET", c.Set(ctx, "long", "x", 0).Err())
	set, err := c.ExpireAt(ctx, "long", when).Result()
	check(t, "EXPIREAT", true, set, err)
	got, err := c.ExpireTime(ctx, "long").Result()
	check(t, "EXPIRETIME", time.Duration(when.Unix())*time.Second, got, err)
	set, err = c.ExpireLT(ctx, "long", 2*time.Hour).Result()
	check(t, "EXPIRE LT", false, set, err)
	set, err = c.Persist(ctx, "long").Result()
	check(t, "PERSIST", true, set, err)
}

func goRedisTransactions(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	const workers, each = 8, 20
	ended := make(chan error, workers)
	for range workers {
		go func() {
			for range each {
				if err := incrementWatched(ctx, c, "shared"); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range workers {
		must(t, "an increment", <-ended)
	}
	n, err := c.Get(ctx, "shared").Int()
	check(t, "the sum of all", workers*each, n, err)
	results, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "tx", 1, 0)
		p.LPush(ctx, "tx", "x")
		p.Incr(ctx, "tx")
		return nil
	})
	if !redis.HasErrorPrefix(err, "WRONGTYPE") || results[2].(*redis.IntCmd).Val() != 2 {
		t.Fatalf("a transaction of which one fails: %v, %v", results, err)
	}
}

// incrementWatched adds one by WATCH, GET and a transaction, as often as somebody else is faster.
func incrementWatched(ctx context.Context, c *redis.Client, key string) error {
	for {
		err := c.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, key).Int()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, key, n+1, 0).Err() })
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}

func goRedisScan(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 400 {
			p.HSet(ctx, "scanned", fmt.Sprint("f", i), i)
			p.SAdd(ctx, fmt.Sprint("set:", i), i)
		}
		return nil
	})
	must(t, "pipeline", err)
	fields, keys := map[string]bool{}, map[string]bool{}
	walk := c.HScan(ctx, "scanned", 0, "f*", 30).Iterator()
	for walk.Next(ctx) {
		fields[walk.Val()] = true
		walk.Next(ctx) // its value
	}
	check(t, "HSCAN", 400, len(fields), walk.Err())
	walk = c.ScanType(ctx, 0, "set:*", 30, "set").Iterator()
	for walk.Next(ctx) {
		keys[walk.Val()] = true
	}
	check(t, "SCAN TYPE", 400, len(keys), walk.Err())
}

func goRedisPubSub(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	sub := c.Subscribe(ctx, "news")
	defer func() { must(t, "close", sub.Close()) }()
	_, err := sub.Receive(ctx)
	must(t, "SUBSCRIBE", err)
	must(t, "PSUBSCRIBE", sub.PSubscribe(ctx, "n?ws"))
	_, err = sub.Receive(ctx)
	must(t, "its confirmation", err)
	messages := sub.Channel()
	heard, err := c.Publish(ctx, "news", "hello").Result()
	check(t, "PUBLISH", 2, heard, err)
	first, second := <-messages, <-messages
	check(t, "messages", " hello, n?ws hello", fmt.Sprintf("%s %s, %s %s", first.Pattern, first.Payload, second.Pattern, second.Payload), nil)
	subscribers, err := c.PubSubNumSub(ctx, "news", "none").Result()
	check(t, "PUBSUB NUMSUB", map[string]int64{"news": 1, "none": 0}, subscribers, err)
	sharded := c.SSubscribe(ctx, "shard")
	defer func() { must(t, "close", sharded.Close()) }()
	_, err = sharded.Receive(ctx)
	must(t, "SSUBSCRIBE", err)
	must(t, "SPUBLISH", c.SPublish(ctx, "shard", "hi").Err())
	message, err := sharded.ReceiveMessage(ctx)
	check(t, "sharded message", &redis.Message{Channel: "shard", Payload: "hi"}, message, err)
}
