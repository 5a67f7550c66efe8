package engine_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
)

// inBubble runs a test against an engine and a go-redis client inside a bubble
// of virtual time, where minutes take no time at all. The client connects by
// Dial, which needs no network: a bubble has none.
func inBubble(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{
			Addr:        "127.0.0.1:6379", // never dialled; a name would be looked up, outside the bubble
			Dialer:      func(context.Context, string, string) (net.Conn, error) { return e.Dial() },
			ReadTimeout: 5 * time.Minute,
		})
		test(t, client)
		if err := errors.Join(client.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestBubbleBlockingTakesItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client *redis.Client) {
		start := time.Now()
		err := client.BLPop(t.Context(), 90*time.Second, "queue").Err()
		if took := time.Since(start); !errors.Is(err, redis.Nil) || took != 90*time.Second {
			t.Errorf("BLPOP gave up after %v with %v", took, err)
		}
	})
}

func TestBubbleBlockedClientIsServed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client *redis.Client) {
		start := time.Now()
		go func() {
			time.Sleep(42 * time.Second)
			client.RPush(t.Context(), "queue", "job")
		}()
		got, err := client.BLPop(t.Context(), 90*time.Second, "queue").Result()
		if took := time.Since(start); err != nil || got[1] != "job" || took != 42*time.Second {
			t.Errorf("BLPOP got %q, %v after %v", got, err, took)
		}
	})
}

func TestBubbleKeysExpire(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		if err := client.Set(ctx, "key", "value", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Millisecond)
		if left := client.PTTL(ctx, "key").Val(); left != time.Millisecond {
			t.Errorf("a moment before, the key has %v to live", left)
		}
		time.Sleep(time.Millisecond)
		if n := client.Exists(ctx, "key").Val(); n != 0 {
			t.Error("the key outlives its time")
		}
		// What nobody looks at goes as well.
		if err := client.Set(ctx, "unseen", "value", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Second)
		if n := client.DBSize(ctx).Val(); n != 0 {
			t.Errorf("%d expired keys are still there", n)
		}
	})
}
