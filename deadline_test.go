package signalbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// Whatever a caller's deadline ends says so, also when it is a connection that notices it first.
func TestADeadlineIsToldAsOne(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	box := openBox(t, server.Addr)
	fresh := signalbox.New(redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true}))
	defer fresh.Close()
	lock := box.RWMutex("lock")
	lease, err := lock.Read().Acquire(t.Context(), signalbox.TTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	for name, call := range map[string]func(context.Context) error{
		"Limiter.Allow": func(ctx context.Context) error {
			return box.Limiter("l", signalbox.Every(time.Second)).Allow(ctx, 1)
		},
		"first call": func(ctx context.Context) error {
			return fresh.Limiter("l", signalbox.Every(time.Second)).Allow(ctx, 1)
		},
		"Limiter.Wait": func(ctx context.Context) error {
			return box.Limiter("l", signalbox.Every(time.Second)).Wait(ctx, 1)
		},
		"Latch.CountDown": func(ctx context.Context) error {
			_, err := box.Latch("l", 2).CountDown(ctx, "one")
			return err
		},
		"Latch.Await": func(ctx context.Context) error { return box.Latch("l", 2).Await(ctx) },
		"Fence.Check": func(ctx context.Context) error { return box.Fence("f").Check(ctx, 1) },
		"Upgrade":     func(ctx context.Context) error { return lock.Upgrade(ctx, lease) },
		"AcquireAll": func(ctx context.Context) error {
			_, err := box.AcquireAll(ctx, []signalbox.Request{box.Mutex("m").Request()})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}
