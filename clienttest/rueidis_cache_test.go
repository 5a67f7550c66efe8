package clienttest

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// rueidis caches by default: it asks the server, by CLIENT TRACKING, to be told when what it has read changes.

const cachedKey = "cached:k"

// cached is a command that may be answered from the cache, for a minute.
func cached(client rueidis.Client) rueidis.CacheableTTL {
	return rueidis.CT(client.B().Get().Key(cachedKey).Cache(), time.Minute)
}

func TestRueidisCacheHearsOfChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		for name, options := range map[string][]string{
			"what is asked for": nil,
			"by prefix":         {"PREFIX", "cached:", "BCAST"},
		} {
			t.Run(name, func(t *testing.T) {
				writer := openRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
				must(t, "SET", writer.Do(t.Context(), writer.B().Set().Key(cachedKey).Value("one").Build()).Error())
				told := make(chan []string, 10)
				reader := openRueidis(t, rueidis.ClientOption{
					InitAddress: []string{addr}, ClientTrackingOptions: options,
					OnInvalidations: func(messages []rueidis.RedisMessage) { told <- keysOf(messages) },
				})
				rueidisCache(t, reader, writer, told)
			})
		}
	})
}

// keysOf are the keys that have changed; none when everything has.
func keysOf(messages []rueidis.RedisMessage) []string {
	var keys []string
	for _, message := range messages {
		if key, err := message.ToString(); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

func rueidisCache(t *testing.T, reader, writer rueidis.Client, told chan []string) {
	t.Helper()
	ctx := t.Context()
	get := func(what, want string, hit bool) {
		t.Helper()
		result := reader.DoMultiCache(ctx, cached(reader))[0]
		text, err := result.ToString()
		if rueidis.IsRedisNil(err) {
			text, err = "(nothing)", nil
		}
		check(t, what, want, text, err)
		check(t, what+": answered from the cache", hit, result.IsCacheHit(), nil)
	}
	change := func(command rueidis.Completed) {
		t.Helper()
		must(t, "change", writer.Do(ctx, command).Error())
		check(t, "what the reader is told", []string{cachedKey}, <-told, nil)
	}
	get("first", "one", false)
	get("again", "one", true)
	change(writer.B().Set().Key(cachedKey).Value("two").Build())
	get("after a change", "two", false)
	get("again", "two", true)
	change(writer.B().Del().Key(cachedKey).Build())
	get("after it was deleted", "(nothing)", false)
	get("nothing again", "(nothing)", true)
	change(writer.B().Eval().Script(`return redis.call('SET', KEYS[1], 'by a script')`).Numkeys(1).Key(cachedKey).Build())
	get("after a script", "by a script", false)
	must(t, "FLUSHALL", writer.Do(ctx, writer.B().Flushall().Build()).Error())
	check(t, "what the reader is told", 0, len(<-told), nil)
	get("after FLUSHALL", "(nothing)", false)
}

// What expires has changed, too.
func TestRueidisCacheHearsOfExpiry(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		writer := openRueidis(t, rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		must(t, "SET", writer.Do(t.Context(), writer.B().Set().Key(cachedKey).Value("one").PxMilliseconds(500).Build()).Error())
		told := make(chan []string, 10)
		reader := openRueidis(t, rueidis.ClientOption{
			InitAddress: []string{addr}, ClientTrackingOptions: []string{"PREFIX", "cached:", "BCAST"},
			OnInvalidations: func(messages []rueidis.RedisMessage) { told <- keysOf(messages) },
		})
		must(t, "GET", reader.DoMultiCache(t.Context(), cached(reader))[0].Error())
		check(t, "what the reader is told", []string{cachedKey}, <-told, nil)
		err := reader.DoMultiCache(t.Context(), cached(reader))[0].Error()
		check(t, "nothing is left", true, rueidis.IsRedisNil(err), nil)
	})
}
