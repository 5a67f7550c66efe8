package signalbox

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// A box keeps nothing of what is over, however often it was used, and in whatever way it ended.
func TestABoxKeepsNothingOfWhatIsOver(t *testing.T) {
	// Not beside other tests: goroutines are counted.
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(t).Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	box := New(client, Claim(time.Second))
	defer box.Close()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	gaveUp := func(err error) {
		t.Helper()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
	use := func() {
		lease, err := box.Mutex("m").Acquire(ctx, Reentrant(), LocalHandoff(3), NoticeWaiters())
		must(err)
		_, err = box.Mutex("m").TryAcquire(ctx)
		if !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v", err)
		}
		short, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
		_, err = box.Mutex("m").Acquire(short)
		gaveUp(err)
		_, err = box.Mutex("m").Acquire(short, LocalHandoff(3))
		gaveUp(err)
		_, err = box.AcquireAll(short, []Request{box.Mutex("m").Request(), box.Mutex("other").Request()})
		gaveUp(err)
		_, err = box.Barrier("b", 2).Wait(short)
		gaveUp(err)
		gaveUp(box.Latch("l", 2).Await(short))
		gaveUp(box.Limiter("r", Every(time.Hour)).Wait(short, 2))
		must(lease.Release(ctx))
		all, err := box.AcquireAll(ctx, []Request{box.Mutex("m").Request(), box.Mutex("other").Request()})
		must(err)
		must(all.Release(ctx))
		must(box.RWMutex("rw").Read().Do(ctx, func(context.Context) error { return nil }))
		for _, err := range box.Watch(ctx, "m") {
			must(err)
			break
		}
	}
	use()
	before := runtime.NumGoroutine()
	for range 200 {
		use()
	}
	box.tasks.Wait() // what goes on in the background
	if lives, relays, alarms := box.Remembered(); lives+relays+alarms > 0 {
		t.Errorf("%d lives, %d relays, %d alarms are left", lives, relays, alarms)
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines, %d before 200 uses", after, before)
	}
}
