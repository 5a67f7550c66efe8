package clienttest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/rueidis"
)

// rueidis sends everybody's commands over one connection, as one pipeline, and by default speaks RESP3.
func openRueidis(t *testing.T, option rueidis.ClientOption) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(option)
	must(t, "connect", err)
	t.Cleanup(client.Close)
	return client
}

func TestRueidis(t *testing.T) {
	onBothProtocols(t, func(t *testing.T, addr string, protocol int) {
		client := openRueidis(t, rueidis.ClientOption{
			InitAddress: []string{addr}, DisableCache: true, AlwaysRESP2: protocol == 2, ClientName: "rueidis", SelectDB: 4,
		})
		rueidisData(t, client)
		rueidisStreams(t, client)
		rueidisPipelines(t, client)
		rueidisWaits(t, client)
	})
}

func rueidisData(t *testing.T, client rueidis.Client) {
	t.Helper()
	ctx := t.Context()
	err := client.Do(ctx, client.B().Set().Key("s").Value("hello").Nx().PxMilliseconds(100_000).Build()).Error()
	must(t, "SET", err)
	if err := client.Do(ctx, client.B().Set().Key("s").Value("x").Nx().Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Fatalf("SET NX of what is there: %v", err)
	}
	must(t, "HSET", client.Do(ctx, client.B().Hset().Key("h").FieldValue().FieldValue("a", "1").FieldValue("b", "2").Build()).Error())
	fields, err := client.Do(ctx, client.B().Hgetall().Key("h").Build()).AsStrMap()
	check(t, "HGETALL", map[string]string{"a": "1", "b": "2"}, fields, err)
	must(t, "RPUSH", client.Do(ctx, client.B().Rpush().Key("l").Element("1", "2", "3").Build()).Error())
	popped, err := client.Do(ctx, client.B().Lmpop().Numkeys(2).Key("none", "l").Right().Count(2).Build()).AsLMPop()
	check(t, "LMPOP", rueidis.KeyValues{Key: "l", Values: []string{"3", "2"}}, popped, err)
	must(t, "SADD", client.Do(ctx, client.B().Sadd().Key("set").Member("x", "y").Build()).Error())
	members, err := client.Do(ctx, client.B().Smembers().Key("set").Build()).AsStrSlice()
	slices.Sort(members)
	check(t, "SMEMBERS", []string{"x", "y"}, members, err)
	must(t, "ZADD", client.Do(ctx, client.B().Zadd().Key("z").ScoreMember().ScoreMember(1.5, "m").ScoreMember(-2, "n").Build()).Error())
	scores, err := client.Do(ctx, client.B().Zrange().Key("z").Min("0").Max("-1").Withscores().Build()).AsZScores()
	check(t, "ZRANGE", []rueidis.ZScore{{Member: "n", Score: -2}, {Member: "m", Score: 1.5}}, scores, err)
	set, err := client.Do(ctx, client.B().Expire().Key("s").Seconds(50).Gt().Build()).AsBool()
	check(t, "EXPIRE GT", false, set, err)
	ttl, err := client.Do(ctx, client.B().Ttl().Key("s").Build()).AsInt64()
	check(t, "TTL is still the longer one", true, ttl > 50, err)
}

func rueidisStreams(t *testing.T, client rueidis.Client) {
	t.Helper()
	ctx := t.Context()
	first, err := client.Do(ctx, client.B().Xadd().Key("stream").Id("*").FieldValue().FieldValue("n", "1").Build()).ToString()
	must(t, "XADD", err)
	must(t, "XGROUP", client.Do(ctx, client.B().XgroupCreate().Key("stream").Group("workers").Id("0").Build()).Error())
	read, err := client.Do(ctx, client.B().Xreadgroup().Group("workers", "ada").Count(10).Streams().Key("stream").Id(">").Build()).AsXRead()
	want := map[string][]rueidis.XRangeEntry{"stream": {{ID: first, FieldValues: map[string]string{"n": "1"}}}}
	check(t, "XREADGROUP", want, read, err)
	acked, err := client.Do(ctx, client.B().Xack().Key("stream").Group("workers").Id(first).Build()).AsInt64()
	check(t, "XACK", 1, acked, err)
	waiting := make(chan rueidis.RedisResult, 1)
	go func() {
		waiting <- client.Do(ctx, client.B().Xread().Block(0).Streams().Key("stream").Id(first).Build())
	}()
	second, err := client.Do(ctx, client.B().Xadd().Key("stream").Id("*").FieldValue().FieldValue("n", "2").Build()).ToString()
	must(t, "XADD", err)
	read, err = (<-waiting).AsXRead()
	want = map[string][]rueidis.XRangeEntry{"stream": {{ID: second, FieldValues: map[string]string{"n": "2"}}}}
	check(t, "XREAD", want, read, err)
}

func rueidisPipelines(t *testing.T, client rueidis.Client) {
	t.Helper()
	ctx := t.Context()
	const n = 1000
	commands := make([]rueidis.Completed, n)
	for i := range commands {
		commands[i] = client.B().Incr().Key("n").Build()
	}
	last, err := client.DoMulti(ctx, commands...)[n-1].AsInt64()
	check(t, "a pipeline", n, last, err)
	script := rueidis.NewLuaScript(`return {KEYS[1], ARGV[1], {1, 2}}`)
	for _, result := range script.ExecMulti(ctx, client, rueidis.LuaExec{Keys: []string{"k"}, Args: []string{"a"}}, rueidis.LuaExec{Keys: []string{"l"}, Args: []string{"b"}}) {
		parts, err := result.ToArray()
		check(t, "a script", 3, len(parts), err)
	}
	err = client.Dedicated(func(c rueidis.DedicatedClient) error {
		must(t, "WATCH", c.Do(ctx, c.B().Watch().Key("n").Build()).Error())
		must(t, "somebody else's SET", client.Do(ctx, client.B().Set().Key("n").Value("0").Build()).Error())
		return c.DoMulti(ctx, c.B().Multi().Build(), c.B().Incr().Key("n").Build(), c.B().Exec().Build())[2].Error()
	})
	if !rueidis.IsRedisNil(err) {
		t.Fatalf("EXEC after somebody else's change: %v", err)
	}
	seen, cursor := map[string]bool{}, uint64(0)
	for i := range 300 {
		must(t, "SET", client.Do(ctx, client.B().Set().Key("k:"+strconv.Itoa(i)).Value("x").Build()).Error())
	}
	for {
		page, err := client.Do(ctx, client.B().Scan().Cursor(cursor).Match("k:*").Count(50).Build()).AsScanEntry()
		must(t, "SCAN", err)
		for _, key := range page.Elements {
			seen[key] = true
		}
		if cursor = page.Cursor; cursor == 0 {
			break
		}
	}
	check(t, "keys found", 300, len(seen), nil)
}

func rueidisWaits(t *testing.T, client rueidis.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	popped := make(chan rueidis.RedisResult, 1)
	go func() { popped <- client.Do(ctx, client.B().Bzpopmin().Key("zq").Timeout(0).Build()) }()
	must(t, "ZADD", client.Do(ctx, client.B().Zadd().Key("zq").ScoreMember().ScoreMember(1, "m").Build()).Error())
	taken, err := (<-popped).AsStrSlice()
	if err == nil && len(taken) > 1 {
		taken = taken[:2] // the score is a double in RESP3
	}
	check(t, "BZPOPMIN", []string{"zq", "m"}, taken, err)

	heard, subscribed, ended := make(chan string, 2), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- client.Receive(rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { close(subscribed) }),
			client.B().Psubscribe().Pattern("n?ws").Build(), func(m rueidis.PubSubMessage) { heard <- m.Pattern + " " + m.Message })
	}()
	select {
	case <-subscribed:
	case err := <-ended:
		t.Fatalf("PSUBSCRIBE: %v", err)
	}
	must(t, "PUBLISH", client.Do(ctx, client.B().Publish().Channel("news").Message("hello").Build()).Error())
	check(t, "message", "n?ws hello", <-heard, nil)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the end of the subscription: %v", err)
	}
	must(t, "PING after all", client.Do(t.Context(), client.B().Ping().Build()).Error())
}
