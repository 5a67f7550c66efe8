package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func ExampleTTL() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.TTL(5*time.Second)))
	fmt.Println(sure(box.Inspect(ctx, "m")).Holders[0].TTL)
	check(lease.Release(ctx))

	_, err := box.Mutex("m").Acquire(ctx, signalbox.TTL(time.Millisecond))
	fmt.Println(errors.Is(err, signalbox.ErrInvalid)) // MinTTL to MaxTTL
	// Output:
	// 5s
	// true
}

func ExampleWeight() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Semaphore("db", 100).Acquire(ctx, signalbox.Weight(7)))
	fmt.Println(lease.Weight(), sure(box.Inspect(ctx, "db")).Held)
	check(lease.Release(ctx))
	// Output: 7 7
}

func ExampleLabel() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.Label("nightly import")))
	fmt.Println(sure(box.Inspect(ctx, "m")).Holders[0].Label)
	check(lease.Release(ctx))
	// Output: nightly import
}

func ExampleOnWait() {
	box := sure(embedded.Open(""))
	defer box.Close()
	first := sure(box.Mutex("m").Acquire(ctx))

	var once sync.Once
	second := sure(box.Mutex("m").Acquire(ctx, signalbox.OnWait(func(w signalbox.Waiting) {
		once.Do(func() {
			fmt.Println(w.Resource, "is taken;", w.Ahead, "others wait in front")
			check(first.Release(ctx))
		})
	})))
	fmt.Println("inside")
	check(second.Release(ctx))
	// Output:
	// m is taken; 0 others wait in front
	// inside
}

func ExampleWaiting() {
	box := sure(embedded.Open(""))
	defer box.Close()
	first := sure(box.Mutex("m").Acquire(ctx, signalbox.TTL(10*time.Second)))

	short, cancel := context.WithCancel(ctx)
	_, err := box.Mutex("m").Acquire(short, signalbox.OnWait(func(w signalbox.Waiting) {
		fmt.Println(w.Ahead, w.Next <= 10*time.Second, w.Estimate) // no estimate before the queue has moved
		cancel()                                                   // gives up: nothing is left behind
	}))
	fmt.Println(errors.Is(err, context.Canceled))
	check(first.Release(ctx))
	// Output:
	// 0 true 0s
	// true
}

func ExampleReentrant() {
	box := sure(embedded.Open(""))
	defer box.Close()
	mutex := box.Mutex("m")

	inner := func(ctx context.Context) error {
		lease, err := mutex.Acquire(ctx, signalbox.Reentrant()) // would wait for itself for ever without
		if err != nil {
			return err
		}
		fmt.Println("still inside")
		return lease.Release(ctx)
	}
	check(mutex.Do(ctx, inner, signalbox.Reentrant()))
	// Output: still inside
}

func ExampleLocalHandoff() {
	box := sure(embedded.Open(""))
	defer box.Close()
	mutex := box.Mutex("counter")

	count := 0 // guarded by the mutex
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			check(mutex.Do(ctx, func(context.Context) error {
				count++
				return nil
			}, signalbox.LocalHandoff(50)))
		})
	}
	all.Wait()
	fmt.Println(count)
	// Output: 100
}

func ExampleNoticeWaiters() {
	box := sure(embedded.Open(""))
	defer box.Close()
	first := sure(box.Mutex("m").Acquire(ctx, signalbox.NoticeWaiters()))
	second := behind(box.Mutex("m").Acquire)

	<-first.Wanted() // time to finish
	check(first.Release(ctx))
	check((<-second).lease.Release(ctx))
	fmt.Println("both had their turn")
	// Output: both had their turn
}

func ExampleLockDelay() {
	box := sure(embedded.Open(""))
	defer box.Close()
	// Should this process fall silent, nobody else is let in until 10 s after the lease has expired.
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.LockDelay(10*time.Second)))
	check(lease.Release(ctx)) // delays nobody
	again := sure(box.Mutex("m").TryAcquire(ctx))
	fmt.Println(again.Err())
	check(again.Release(ctx))
	// Output: <nil>
}

func ExampleHoldAtLeast() {
	box := sure(embedded.Open(""))
	defer box.Close()
	run := func(machine string) {
		lease, err := box.Mutex("cron:03:00").TryAcquire(ctx, signalbox.HoldAtLeast(time.Minute))
		if errors.Is(err, signalbox.ErrBusy) {
			fmt.Println(machine, "leaves it")
			return
		}
		check(err)
		fmt.Println(machine, "runs the job")
		check(lease.Release(ctx))
	}
	run("one")
	run("two") // though one has finished
	// Output:
	// one runs the job
	// two leaves it
}

func ExamplePace() {
	box := sure(embedded.Open(""))
	defer box.Close()
	host := box.Semaphore("host:example.org", 1)
	pace := signalbox.Pace(signalbox.Every(time.Hour), 2) // after a burst of two, one an hour
	for range 3 {
		lease, err := host.TryAcquire(ctx, pace)
		if errors.Is(err, signalbox.ErrBusy) {
			fmt.Println("not so fast")
			return
		}
		fmt.Println("fetch")
		check(lease.Release(ctx))
	}
	// Output:
	// fetch
	// fetch
	// not so fast
}

func ExampleWithReplicas() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.WithReplicas(2, 5*time.Millisecond)))
	defer lease.Release(ctx) //nolint:errcheck // the box is closed next
	if lease.Replicas() < 2 {
		fmt.Println("too few have it: a failover could lose it")
	}
	// Output: too few have it: a failover could lose it
}
