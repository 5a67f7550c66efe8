package clienttest

import (
	"context"
	"errors"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// redigo writes and reads by hand: Send, Flush and Receive are its pipelines. It speaks RESP2.
func TestRedigo(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		pool := &redis.Pool{DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", addr, redis.DialDatabase(1), redis.DialClientName("redigo"))
		}, MaxIdle: 2}
		t.Cleanup(func() {
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		})
		c, err := pool.GetContext(t.Context())
		must(t, "connect", err)
		defer c.Close()
		redigoData(t, c)
		redigoPipelines(t, c, pool)
		redigoPubSub(t, c, pool)
	})
}

func redigoData(t *testing.T, c redis.Conn) {
	t.Helper()
	text, err := redis.String(c.Do("SET", "s", "hello", "EX", 100))
	check(t, "SET", "OK", text, err)
	if _, err := redis.String(c.Do("GET", "missing")); !errors.Is(err, redis.ErrNil) {
		t.Fatalf("GET of nothing: %v", err)
	}
	n, err := redis.Int(c.Do("HSET", redis.Args{}.Add("h").AddFlat(map[string]int{"a": 1, "b": 2})...))
	check(t, "HSET", 2, n, err)
	fields, err := redis.IntMap(c.Do("HGETALL", "h"))
	check(t, "HGETALL", map[string]int{"a": 1, "b": 2}, fields, err)
	_, err = c.Do("RPUSH", "l", 1, 2, 3)
	must(t, "RPUSH", err)
	numbers, err := redis.Ints(c.Do("LRANGE", "l", 0, -1))
	check(t, "LRANGE", []int{1, 2, 3}, numbers, err)
	_, err = c.Do("ZADD", "z", 1.5, "m")
	must(t, "ZADD", err)
	scores, err := redis.Float64Map(c.Do("ZRANGE", "z", 0, -1, "WITHSCORES"))
	check(t, "ZRANGE", map[string]float64{"m": 1.5}, scores, err)
	_, err = c.Do("XADD", "stream", "1-1", "n", "1")
	must(t, "XADD", err)
	entries, err := redis.Values(c.Do("XRANGE", "stream", "-", "+"))
	check(t, "XRANGE", 1, len(entries), err)
	if _, err := c.Do("LPUSH", "h", 1); err == nil || c.Err() != nil {
		t.Fatalf("LPUSH on a hash: %v; the connection: %v", err, c.Err())
	}
	script := redis.NewScript(1, `return redis.call('INCRBY', KEYS[1], ARGV[1])`)
	for i := range 2 { // EVAL after NOSCRIPT at first
		sum, err := redis.Int(script.Do(c, "sum", 21))
		check(t, "a script", 21*(i+1), sum, err)
	}
	cursor, found := 0, map[string]bool{}
	for {
		page, err := redis.Values(c.Do("SCAN", cursor, "COUNT", 2))
		must(t, "SCAN", err)
		var keys []string
		_, err = redis.Scan(page, &cursor, &keys)
		must(t, "read a page of SCAN", err)
		for _, key := range keys {
			found[key] = true
		}
		if cursor == 0 {
			break
		}
	}
	check(t, "keys", map[string]bool{"s": true, "h": true, "l": true, "z": true, "stream": true, "sum": true}, found, nil)
}

func redigoPipelines(t *testing.T, c redis.Conn, pool *redis.Pool) {
	t.Helper()
	const n = 1000
	for range n {
		must(t, "send", c.Send("INCR", "n"))
	}
	must(t, "flush", c.Flush())
	for i := range n {
		got, err := redis.Int(c.Receive())
		check(t, "one of a pipeline", i+1, got, err)
	}
	must(t, "MULTI", c.Send("MULTI"))
	must(t, "INCR", c.Send("INCR", "n"))
	numbers, err := redis.Ints(c.Do("EXEC"))
	check(t, "EXEC", []int{n + 1}, numbers, err)

	other := pool.Get()
	defer other.Close()
	_, err = c.Do("WATCH", "n")
	must(t, "WATCH", err)
	_, err = other.Do("SET", "n", 0)
	must(t, "somebody else's SET", err)
	must(t, "MULTI", c.Send("MULTI"))
	must(t, "INCR", c.Send("INCR", "n"))
	if reply, err := c.Do("EXEC"); reply != nil || err != nil {
		t.Fatalf("EXEC after somebody else's change: %v, %v", reply, err)
	}
	must(t, "BLPOP", c.Send("BLPOP", "queue", 0))
	must(t, "flush", c.Flush())
	_, err = other.Do("RPUSH", "queue", "job")
	must(t, "RPUSH", err)
	popped, err := redis.Strings(c.Receive())
	check(t, "BLPOP", []string{"queue", "job"}, popped, err)
}

func redigoPubSub(t *testing.T, c redis.Conn, pool *redis.Pool) {
	t.Helper()
	subscriber := redis.PubSubConn{Conn: pool.Get()}
	defer subscriber.Close()
	must(t, "SUBSCRIBE", subscriber.Subscribe("news"))
	check(t, "confirmation", any(redis.Subscription{Kind: "subscribe", Channel: "news", Count: 1}), subscriber.Receive(), nil)
	n, err := redis.Int(c.Do("PUBLISH", "news", "hello"))
	check(t, "PUBLISH", 1, n, err)
	check(t, "message", any(redis.Message{Channel: "news", Data: []byte("hello")}), subscriber.Receive(), nil)
	must(t, "PING", subscriber.Ping("here"))
	check(t, "pong", any(redis.Pong{Data: "here"}), subscriber.Receive(), nil)
	must(t, "UNSUBSCRIBE", subscriber.Unsubscribe())
	check(t, "goodbye", any(redis.Subscription{Kind: "unsubscribe", Channel: "news"}), subscriber.Receive(), nil)
}
