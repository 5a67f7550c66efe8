package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/leak"
)

// What is over leaves nothing behind: no key when its time is over, no goroutine, no subscription, nothing that the Box
// remembers, and no memory, in which a forgotten timer would be found too. LEAKS=1000000 makes a million cycles.

// leakCycles is how many cycles a leak test makes.
func leakCycles(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("LEAKS")
	if text == "" {
		return scaled(usual)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LEAKS is %q, must be a number of cycles", text)
	}
	return n
}

// A cycle is what a worker does again and again.
type cycle func(ctx context.Context, box *signalbox.Box, i int) error

// cycles are all of them, each with a weight by which it is chosen: the common ones are cheap.
var cycles = []struct {
	weight int
	run    cycle
}{
	{60, cycleLease},
	{10, cycleWait},
	{5, cycleCancel},
	{5, cycleTry},
	{10, cycleHandoff},
	{4, cycleReaders},
	{2, cycleGroup},
	{2, cycleLimiter},
	{1, cycleLatch},
	{1, cycleBarrier},
}

// ended are the errors that are meant to happen in a cycle.
func ended(err error) error {
	if errors.Is(err, signalbox.ErrBusy) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func cycleLease(ctx context.Context, box *signalbox.Box, i int) error {
	lease, err := box.Mutex("own:" + strconv.Itoa(i)).Acquire(ctx)
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

func cycleWait(ctx context.Context, box *signalbox.Box, _ int) error {
	return box.Semaphore("shared", 2).Do(ctx, func(context.Context) error {
		runtime.Gosched()
		return nil
	}, signalbox.TTL(10*time.Second))
}

// cycleCancel gives up while it waits, or just when it is granted.
func cycleCancel(ctx context.Context, box *signalbox.Box, i int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(i%4)*time.Millisecond)
	defer cancel()
	lease, err := box.Semaphore("shared", 2).Acquire(ctx, signalbox.OnWait(func(signalbox.Waiting) {
		if i%3 == 0 {
			cancel()
		}
	}))
	if err != nil {
		return ended(err)
	}
	return lease.Release(context.WithoutCancel(ctx))
}

func cycleTry(ctx context.Context, box *signalbox.Box, _ int) error {
	lease, err := box.Semaphore("shared", 2).TryAcquire(ctx)
	if err != nil {
		return ended(err)
	}
	return lease.Release(ctx)
}

func cycleHandoff(ctx context.Context, box *signalbox.Box, i int) error {
	inner, cancel := context.WithTimeout(ctx, time.Duration(i%50+1)*time.Millisecond)
	defer cancel()
	lease, err := box.Mutex("handed").Acquire(inner, signalbox.LocalHandoff(5))
	if err != nil {
		return ended(err)
	}
	return lease.Release(ctx)
}

func cycleReaders(ctx context.Context, box *signalbox.Box, i int) error {
	mutex := box.RWMutex("catalog")
	if i%5 != 0 {
		return mutex.Read().Do(ctx, func(context.Context) error { return nil })
	}
	lease, err := mutex.Write().Acquire(ctx)
	if err != nil {
		return err
	}
	if err := mutex.Downgrade(ctx, lease); err != nil {
		return err
	}
	return lease.Release(ctx)
}

func cycleGroup(ctx context.Context, box *signalbox.Box, i int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(i%100+1)*time.Millisecond)
	defer cancel()
	leases, err := box.AcquireAll(ctx, []signalbox.Request{
		box.Mutex("{g}" + strconv.Itoa(i%3)).Request(), box.Semaphore("{g}s", 3).Request(2),
	})
	if err != nil {
		return ended(err)
	}
	return leases.Release(context.WithoutCancel(ctx))
}

func cycleLimiter(ctx context.Context, box *signalbox.Box, i int) error {
	limiter := box.Limiter("rate", signalbox.Every(time.Millisecond), signalbox.Burst(3))
	if i%2 == 0 {
		return ended(limiter.Allow(ctx, 1))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(i%7)*time.Millisecond)
	defer cancel()
	return ended(limiter.Wait(ctx, 1))
}

func cycleLatch(ctx context.Context, box *signalbox.Box, i int) error {
	latch := box.Latch(fmt.Sprint("latch:", i, rand.Uint64()), 2, signalbox.LatchKeep(time.Minute))
	if _, err := latch.CountDown(ctx, "a"); err != nil {
		return err
	}
	impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := latch.Await(impatient); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a latch that misses one: %w", err)
	}
	if _, err := latch.CountDown(ctx, "b"); err != nil {
		return err
	}
	return latch.Await(ctx)
}

func cycleBarrier(ctx context.Context, box *signalbox.Box, i int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(i%5+1)*time.Millisecond)
	defer cancel()
	_, err := box.Barrier("steps", 2).Wait(ctx)
	return ended(err)
}

// work has several workers make n cycles, each of its own choice by the seed.
func work(t *testing.T, box *signalbox.Box, n int, seed uint64) {
	t.Helper()
	const workers = 8
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w))) //nolint:gosec // a choice that can be repeated
			for i := w; i < n; i += workers {
				if err := choose(random.IntN(100))(t.Context(), box, i); err != nil {
					t.Errorf("cycle %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func choose(n int) cycle {
	for _, c := range cycles {
		if n -= c.weight; n < 0 {
			return c.run
		}
	}
	return cycleLease
}

// remembersLong is longer than the server remembers anything of a resource that is idle: its last token, for an hour.
const remembersLong = 2 * time.Hour

// keys are those the server has at this moment.
func keys(t *testing.T, box *embedded.Box) string {
	t.Helper()
	reply, err := box.Engine().Do(t.Context(), "KEYS", "*")
	must(t, err)
	var all []string
	for i := range reply.Len() {
		all = append(all, reply.At(i).String())
	}
	return strings.Join(all, " ")
}

// In virtual time, so that keys can be seen to go when their time is over.
func TestNothingIsLeftBehind(t *testing.T) {
	n := leakCycles(t, 100_000)
	const parts = 10 // of which the first fills pools and caches
	synctest.Test(t, func(t *testing.T) {
		box, err := embedded.Open("")
		must(t, err)
		var goroutines int
		var used int64
		for part := range parts {
			work(t, box.Box, n/parts, uint64(part))
			forgotten(t, box.Box)
			time.Sleep(remembersLong)
			if left := keys(t, box); left != "" {
				t.Fatalf("keys are left: %s", left)
			}
			subscriptions(t, box.Engine(), 1)
			synctest.Wait()
			if part == 0 {
				goroutines, used = runtime.NumGoroutine(), heap()
			}
		}
		if now := runtime.NumGoroutine(); now > goroutines+2 {
			t.Errorf("%d goroutines after the first cycles, %d after all", goroutines, now)
		}
		// A lease and its timer, or an entry of a map, is 100 bytes and more.
		more, bound := heap()-used, max(int64(n)*10, 4<<20)
		t.Logf("%d cycles: the heap grew by %d bytes", n, more)
		if more > bound {
			t.Errorf("the heap grew by %d bytes in %d cycles, want %d at most", more, n, bound)
		}
		must(t, box.Close())
	})
}

// In real time, where cancels meet grants at every moment, and against a real server, so that all memory is the library's:
// a timer that was forgotten keeps its lease in it.
func TestNothingIsLeftInMemory(t *testing.T) {
	server := difftest.Redis(t)
	defer leak.Check(t)()
	// A connection is 64 KiB of buffers: a busy machine opens another now and then.
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, PoolSize: 2})
	box := signalbox.New(client)
	n := scaled(5000)
	work(t, box, n, rand.Uint64())
	used := heap()
	for range 3 {
		work(t, box, n, rand.Uint64())
		forgotten(t, box)
	}
	more := heap() - used
	t.Logf("%d cycles: the heap grew by %d bytes", 3*n, more)
	if bound := int64(1 << 20); more > bound {
		t.Errorf("the heap grew by %d bytes in %d cycles, want %d at most", more, 3*n, bound)
	}
	must(t, box.Close())
	must(t, client.Close())
	everyKeyExpires(t, server.Addr)
}

func everyKeyExpires(t *testing.T, addr string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	all, err := client.Keys(t.Context(), "*").Result()
	must(t, err)
	if len(all) == 0 {
		t.Error("there are no keys: this test looks at the wrong server")
	}
	for _, key := range all {
		if left := client.PTTL(t.Context(), key).Val(); left == -1 {
			t.Errorf("%s has no expiry", key)
		}
	}
}
