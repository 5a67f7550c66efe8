package engine_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
)

// The clients that people use have to work unmodified, over TCP. What each
// command answers is for the transcripts; here it is how clients use them:
// greetings, pipelines, pushes, blocking, and falling back from NOSCRIPT.

// listen serves a new engine on a loopback port and returns its address.
func listen(t *testing.T, options engine.Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options.Port = l.Addr().(*net.TCPAddr).Port
	e, err := engine.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// check fails the test unless err is nil and got is want.
func check[T any](t *testing.T, what string, want, got T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

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
	t.Parallel()
	for name, options := range map[string]*redis.Options{
		"RESP3":    {},
		"RESP2":    {Protocol: 2},
		"password": {Password: "secret", ClientName: "named", DB: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options.Addr = listen(t, engine.Options{Password: options.Password})
			client := openGoRedis(t, options)
			walkData(t, client)
			walkPipelines(t, client)
			walkOptimisticLock(t, client)
			walkBlocking(t, client)
			walkPubSub(t, client)
			walkScripts(t, client)
			walkScan(t, client)
			walkServer(t, client)
		})
	}
}

func walkData(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	err := c.Set(ctx, "text", "hello", time.Hour).Err()
	check(t, "GET", "hello", c.Get(ctx, "text").Val(), err)
	ttl, err := c.TTL(ctx, "text").Result()
	check(t, "TTL", time.Hour, ttl, err)
	if err := c.Get(ctx, "missing").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("GET of nothing: %v", err)
	}
	if err := c.LPush(ctx, "text", "x").Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Fatalf("LPUSH on a string: %v", err)
	}
	err = c.HSet(ctx, "hash", "a", 1, "b", "two").Err()
	check(t, "HGETALL", map[string]string{"a": "1", "b": "two"}, c.HGetAll(ctx, "hash").Val(), err)
	count, err := c.SAdd(ctx, "set", "x", "y", "x").Result()
	check(t, "SADD", 2, count, err)
	members, err := c.SMembersMap(ctx, "set").Result()
	check(t, "SMEMBERS", map[string]struct{}{"x": {}, "y": {}}, members, err)
	err = c.ZAdd(ctx, "zset", redis.Z{Score: 1.5, Member: "m"}, redis.Z{Score: -2, Member: "n"}).Err()
	check(t, "ZRANGE", []redis.Z{{Score: -2, Member: "n"}, {Score: 1.5, Member: "m"}}, c.ZRangeWithScores(ctx, "zset", 0, -1).Val(), err)
	popped, err := c.ZPopMax(ctx, "zset").Result()
	check(t, "ZPOPMAX", []redis.Z{{Score: 1.5, Member: "m"}}, popped, err)
	f, err := c.IncrByFloat(ctx, "float", 0.1).Result()
	check(t, "INCRBYFLOAT", 0.1, f, err)
	pushed, err := c.RPush(ctx, "list", 1, 2, 3).Result()
	check(t, "RPUSH", 3, pushed, err)
	key, taken, err := c.LMPop(ctx, "left", 2, "none", "list").Result()
	check(t, "LMPOP", []string{"list", "1", "2"}, append([]string{key}, taken...), err)
}

func walkPipelines(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	const n = 1000
	results, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range n {
			p.Incr(ctx, "counter")
		}
		return nil
	})
	check(t, "the last of a pipeline", n, results[n-1].(*redis.IntCmd).Val(), err)
	results, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "tx", "1", 0)
		p.Incr(ctx, "tx")
		return nil
	})
	check(t, "a transaction", 2, results[1].(*redis.IntCmd).Val(), err)
}

// walkOptimisticLock: WATCH, a change by somebody else, and the second try.
func walkOptimisticLock(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	tries := 0
	increment := func(tx *redis.Tx) error {
		n, err := tx.Get(ctx, "watched").Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if tries++; tries == 1 {
			if err := c.Set(ctx, "watched", 10, 0).Err(); err != nil {
				return err
			}
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "watched", n+1, 0)
			return nil
		})
		return err
	}
	if err := c.Watch(ctx, increment, "watched"); !errors.Is(err, redis.TxFailedErr) {
		t.Fatalf("EXEC after somebody else's change: %v", err)
	}
	err := c.Watch(ctx, increment, "watched")
	check(t, "the second try", "11", c.Get(ctx, "watched").Val(), err)
}

func walkBlocking(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	popped := make(chan *redis.StringSliceCmd)
	go func() { popped <- c.BLPop(ctx, 0, "queue:a", "queue:b") }()
	if err := c.RPush(ctx, "queue:b", "job").Err(); err != nil {
		t.Fatal(err)
	}
	got := <-popped
	check(t, "BLPOP", []string{"queue:b", "job"}, got.Val(), got.Err())
	if err := c.Do(ctx, "BLMOVE", "none", "other", "LEFT", "RIGHT", "0.001").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("BLMOVE of nothing: %v", err)
	}
}

func walkPubSub(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	sub := c.PSubscribe(ctx, "news.*")
	defer func() {
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := sub.Receive(ctx); err != nil { // the confirmation
		t.Fatal(err)
	}
	received, err := c.Publish(ctx, "news.today", "hello").Result()
	check(t, "PUBLISH", 1, received, err)
	message, err := sub.ReceiveMessage(ctx)
	check(t, "the message", &redis.Message{Channel: "news.today", Pattern: "news.*", Payload: "hello"}, message, err)
	if err := sub.Ping(ctx, "still here"); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
}

// walkScripts: Script.Run sends EVALSHA first and EVAL when it gets NOSCRIPT.
func walkScripts(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	script := redis.NewScript(`redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], tonumber(ARGV[1]) + 1}`)
	for range 2 {
		got, err := script.Run(ctx, c, []string{"scripted"}, 41).Slice()
		check(t, "a script", []any{"scripted", int64(42)}, got, err)
	}
	if err := c.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.ScriptFlush(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	got, err := script.Run(ctx, c, []string{"scripted"}, 1).Slice()
	check(t, "after SCRIPT FLUSH", []any{"scripted", int64(2)}, got, err)
	if err := c.Eval(ctx, "return redis.call('LPUSH', KEYS[1], 'x')", []string{"scripted"}).Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Fatalf("an error in a script: %v", err)
	}
}

func walkScan(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	const n = 500
	want := map[string]bool{}
	for i := range n {
		key := "scanned:" + time.Duration(i).String()
		want[key] = true
		if err := c.Set(ctx, key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	keys := c.Scan(ctx, 0, "scanned:*", 20).Iterator()
	for keys.Next(ctx) {
		got[keys.Val()] = true
	}
	check(t, "SCAN", want, got, keys.Err())
}

func walkServer(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	info, err := c.InfoMap(ctx, "server").Result()
	check(t, "INFO", engine.RedisVersion, info["Server"]["redis_version"], err)
	self, err := c.ClientInfo(ctx).Result()
	if err != nil || self.LibName == "" || self.Name != c.Options().ClientName {
		t.Fatalf("CLIENT INFO: %+v, %v", self, err)
	}
	commands, err := c.Command(ctx).Result()
	if err != nil || commands["zadd"] == nil || commands["zadd"].FirstKeyPos != 1 {
		t.Fatalf("COMMAND: %v", err)
	}
	policy, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
	check(t, "CONFIG GET", map[string]string{"maxmemory-policy": "noeviction"}, policy, err)
}
