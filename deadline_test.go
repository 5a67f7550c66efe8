package signalbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
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

// A try is granted, its reply gets lost, and the server cannot be reached for longer than the claim time. What it has granted
// is taken back as soon as it can be reached again, and not only by the end of a ttl.
func TestALostTryIsTakenBackWhenTheServerIsThereAgain(t *testing.T) {
	t.Parallel()
	server := difftest.Redis(t)
	const claim = time.Second // the server is asked at least once meanwhile, and not again before nothing reaches it
	direct := openBox(t, server.Addr)
	leases := func() int {
		state, err := direct.Inspect(t.Context(), "m")
		must(t, err)
		return state.Leases
	}
	proxy := faultproxy.Start(t, server.Addr)
	box := openBox(t, proxy.Addr(), signalbox.Claim(claim))
	must(t, box.Mutex("before").Do(t.Context(), func(context.Context) error { return nil }))
	proxy.Set(faultproxy.Fault{Replies: faultproxy.Direction{Drop: true}})
	tried := make(chan error, 1)
	go func() {
		_, err := box.Mutex("m").TryAcquire(t.Context(), signalbox.TTL(time.Hour))
		tried <- err
	}()
	eventually(t, "the grant", func() bool { return leases() == 1 })
	proxy.Set(faultproxy.Fault{Requests: faultproxy.Direction{Drop: true}, Replies: faultproxy.Direction{Drop: true}})
	if err := <-tried; !errors.Is(err, signalbox.ErrUnavailable) { // for longer than the claim time
		t.Fatalf("got %v", err)
	}
	<-time.After(2 * claim) // what no longer time may change
	if n := leases(); n != 1 {
		t.Fatalf("%d leases: the server was reached", n)
	}
	proxy.Restore()
	idle(t, direct, "m")
}
