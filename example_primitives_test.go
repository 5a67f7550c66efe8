package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func ExampleRWMutex() {
	box := sure(embedded.Open(""))
	defer box.Close()
	catalog := box.RWMutex("catalog")

	one, two := sure(catalog.Read().Acquire(ctx)), sure(catalog.Read().Acquire(ctx))
	_, err := catalog.Write().TryAcquire(ctx)
	fmt.Println("two readers, a writer is refused:", errors.Is(err, signalbox.ErrBusy))
	fmt.Println("two readers, none can become a writer:", errors.Is(catalog.Upgrade(ctx, one), signalbox.ErrBusy))
	check(two.Release(ctx))

	before := one.Token()
	check(catalog.Upgrade(ctx, one))
	fmt.Println("the only reader can:", one.Token() > before)
	check(catalog.Downgrade(ctx, one))
	check(one.Release(ctx))
	// Output:
	// two readers, a writer is refused: true
	// two readers, none can become a writer: true
	// the only reader can: true
}

func ExampleRWSide() {
	box := sure(embedded.Open(""))
	defer box.Close()
	write := box.RWMutex("catalog").Write()

	check(write.Do(ctx, func(context.Context) error {
		_, err := box.RWMutex("catalog").Read().TryAcquire(ctx)
		fmt.Println(errors.Is(err, signalbox.ErrBusy))
		return nil
	}))
	lease := sure(write.Acquire(ctx))
	check(lease.Release(ctx))
	// Output: true
}

func ExampleElection() {
	box := sure(embedded.Open(""))
	defer box.Close()
	election := box.Election("scheduler")

	fmt.Println(sure(election.Leader(ctx)).Exists())
	term := sure(election.Campaign(ctx, signalbox.Label("10.0.0.7:8080")))
	fmt.Println(sure(election.Leader(ctx)).Label)

	for leader, err := range election.Observe(ctx) { // the one at first, then every change
		check(err)
		fmt.Println(leader.Exists(), leader.Label)
		if !leader.Exists() {
			break
		}
		check(term.Resign(ctx))
	}
	// Output:
	// false
	// 10.0.0.7:8080
	// true 10.0.0.7:8080
	// false
}

func ExampleTerm() {
	box := sure(embedded.Open(""))
	defer box.Close()
	term := sure(box.Election("scheduler").Campaign(ctx))
	fmt.Println(term.Err(), term.Token() > 0) // a Term is a Lease
	check(term.Resign(ctx))
	fmt.Println(errors.Is(context.Cause(term.Context()), signalbox.ErrReleased))
	// Output:
	// <nil> true
	// true
}

func ExampleLeader() {
	box := sure(embedded.Open("", signalbox.Owner("host seven")))
	defer box.Close()
	term := sure(box.Election("scheduler").Campaign(ctx))
	leader := sure(box.Election("scheduler").Leader(ctx))
	fmt.Println(leader.Exists(), leader.Owner, leader.Term == term.Token(), leader.ID == term.ID())
	check(term.Resign(ctx))
	// Output: true host seven true true
}

func ExampleLimiter() {
	box := sure(embedded.Open(""))
	defer box.Close()
	logins := box.Limiter("logins:ann", signalbox.Every(time.Minute), signalbox.Burst(3))
	for range 4 {
		fmt.Println(errors.Is(logins.Allow(ctx, 1), signalbox.ErrBusy))
	}

	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	fmt.Println(errors.Is(logins.Wait(soon, 1), context.DeadlineExceeded)) // at once: its turn would come too late
	// Output:
	// false
	// false
	// false
	// true
	// true
}

func ExampleBurst() {
	box := sure(embedded.Open(""))
	defer box.Close()
	mails := box.Limiter("mails", signalbox.PerSecond(10), signalbox.Burst(100))
	fmt.Println(mails.Allow(ctx, 100))
	fmt.Println(errors.Is(mails.Allow(ctx, 101), signalbox.ErrTooHeavy)) // it could never pass
	// Output:
	// <nil>
	// true
}

func ExampleRate() {
	fmt.Println(signalbox.PerSecond(10) == signalbox.Every(100*time.Millisecond))
	// Output: true
}

func ExampleEvery() {
	fmt.Println(signalbox.Every(time.Minute) == signalbox.PerSecond(1.0/60))
	// Output: true
}

func ExamplePerSecond() {
	fmt.Println(signalbox.PerSecond(1000) == signalbox.Every(time.Millisecond))
	// Output: true
}

func ExampleRateError() {
	box := sure(embedded.Open(""))
	defer box.Close()
	limiter := box.Limiter("api", signalbox.Every(time.Minute))
	check(limiter.Allow(ctx, 1))

	var refused *signalbox.RateError
	if errors.As(limiter.Allow(ctx, 1), &refused) {
		fmt.Println(refused.Resource, refused.RetryAfter.Round(time.Minute))
	}
	// Output: api 1m0s
}

func ExampleLatch() {
	box := sure(embedded.Open(""))
	defer box.Close()
	imported := box.Latch("import:2026-11-21", 2)

	fmt.Println(sure(imported.CountDown(ctx, "share 1")))
	fmt.Println(sure(imported.CountDown(ctx, "share 1"))) // again, by a worker that was restarted
	fmt.Println(sure(imported.Missing(ctx)))
	fmt.Println(sure(imported.CountDown(ctx, "share 2")))
	fmt.Println(imported.Await(ctx))
	// Output:
	// 1
	// 1
	// 1
	// 0
	// <nil>
}

func ExampleLatchKeep() {
	box := sure(embedded.Open(""))
	defer box.Close()
	latch := box.Latch("import", 1, signalbox.LatchKeep(time.Hour)) // the name is free again an hour after the last count
	fmt.Println(sure(latch.CountDown(ctx, "only")))
	// Output: 0
}

func ExampleBarrier() {
	box := sure(embedded.Open(""))
	defer box.Close()
	step := box.Barrier("simulation:9", 2)

	rounds := make(chan int64)
	for range 2 {
		go func() { rounds <- sure(step.Wait(ctx)) }()
	}
	one, two := <-rounds, <-rounds
	fmt.Println(one == two)
	// Output: true
}

func ExampleFence() {
	box := sure(embedded.Open(""))
	defer box.Close()
	account := box.Fence("account:17")

	// The first holder is paused for so long that its lease ends. Here an operator does that.
	first := sure(box.Mutex("account:17").Acquire(ctx))
	sure(box.ForceAll(ctx, "account:17"))
	second := sure(box.Mutex("account:17").Acquire(ctx))
	check(account.Check(ctx, second.Token())) // refuses older ones from now on

	_, err := account.Do(ctx, first.Token(), "SET", "12.00")
	fmt.Println(errors.Is(err, signalbox.ErrStale))
	fmt.Println(sure(account.Do(ctx, second.Token(), "SET", "10.00")))
	fmt.Println(sure(account.Do(ctx, second.Token(), "GET")))
	check(second.Release(ctx))
	// Output:
	// true
	// OK
	// 10.00
}

func ExampleFenceKeep() {
	box := sure(embedded.Open(""))
	defer box.Close()
	fence := box.Fence("k", signalbox.FenceKeep(time.Hour)) // no holder here can be paused for longer
	fmt.Println(fence.Check(ctx, 7))
	// Output: <nil>
}

func ExampleStaleError() {
	box := sure(embedded.Open(""))
	defer box.Close()
	fence := box.Fence("k")
	check(fence.Check(ctx, 8))

	_, err := fence.Do(ctx, 7, "DEL")
	var stale *signalbox.StaleError
	if errors.As(err, &stale) {
		fmt.Println(stale.Key, stale.Token, "is older than", stale.Newest)
	}
	// Output: k 7 is older than 8
}
