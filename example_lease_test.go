package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func ExampleMutex() {
	box := sure(embedded.Open(""))
	defer box.Close()
	mutex := box.Mutex("invoice:42")

	lease := sure(mutex.Acquire(ctx))
	_, err := mutex.TryAcquire(ctx)
	fmt.Println(errors.Is(err, signalbox.ErrBusy))
	check(lease.Release(ctx))

	err = mutex.Do(ctx, func(context.Context) error { return errors.New("out of paper") })
	fmt.Println(err)

	all := sure(box.AcquireAll(ctx, []signalbox.Request{mutex.Request()}))
	check(all.Release(ctx))
	// Output:
	// true
	// out of paper
}

func ExampleSemaphore() {
	box := sure(embedded.Open(""))
	defer box.Close()
	db := box.Semaphore("db", 10)

	heavy := sure(db.Acquire(ctx, signalbox.Weight(7)))
	light := sure(db.TryAcquire(ctx, signalbox.Weight(3)))
	_, err := db.TryAcquire(ctx)
	fmt.Println(heavy.Weight(), light.Weight(), errors.Is(err, signalbox.ErrBusy))

	check(heavy.Release(ctx))
	fmt.Println(db.Do(ctx, func(context.Context) error { return nil }))
	_, err = db.Acquire(ctx, signalbox.Weight(11))
	fmt.Println(errors.Is(err, signalbox.ErrTooHeavy))
	check(light.Release(ctx))

	leases := sure(box.AcquireAll(ctx, []signalbox.Request{db.Request(7), box.Mutex("report").Request()}))
	check(leases.Release(ctx))
	// Output:
	// 7 3 true
	// <nil>
	// true
}

// A semaphore is fair: a light request does not pass a heavy one that came before it.
func ExampleSemaphore_Acquire_fair() {
	box := sure(embedded.Open(""))
	defer box.Close()
	s := box.Semaphore("s", 3)
	first := sure(s.Acquire(ctx, signalbox.Weight(2)))
	heavy := behind(s.Acquire, signalbox.Weight(3))

	_, err := s.TryAcquire(ctx) // a permit is free, but somebody waits
	fmt.Println(errors.Is(err, signalbox.ErrBusy))
	check(first.Release(ctx))
	fmt.Println((<-heavy).lease.Weight())
	// Output:
	// true
	// 3
}

func ExampleSemaphore_Within() {
	box := sure(embedded.Open(""))
	defer box.Close()
	all := box.Semaphore("all", 100)
	tenant := box.Semaphore("tenant:7", 5)

	leases := sure(tenant.Within(ctx, all)) // AcquireAll with tenant.Request(1) and all.Request(1) would hold up others
	for _, lease := range leases.All() {
		fmt.Println(lease.Resource())
	}
	check(leases.Release(ctx))
	// Output:
	// tenant:7
	// all
}

func ExampleLease() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.TTL(time.Minute)))

	state := sure(box.Inspect(ctx, lease.Resource()))
	fmt.Println(lease.ID() == state.Holders[0].ID, lease.Token() == state.Token, lease.Weight())
	fmt.Println(time.Until(lease.Deadline()) < time.Minute) // it is moved on by every renewal
	fmt.Println(lease.Err(), lease.Replicas())

	select {
	case <-lease.Done():
	case <-lease.Wanted():
	default:
		fmt.Println("held, and nobody waits")
	}
	check(lease.Release(ctx))
	fmt.Println(context.Cause(lease.Context()))
	// Output:
	// true true 1
	// true
	// <nil> 0
	// held, and nobody waits
	// hold "m": lease released
}

func ExampleLease_Context() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.TTL(3*time.Second)))

	sure(box.Force(ctx, "m", lease.ID())) // an operator ends it; it is heard with the next renewal
	<-lease.Context().Done()
	fmt.Println(errors.Is(context.Cause(lease.Context()), signalbox.ErrForced))
	fmt.Println(errors.Is(lease.Release(ctx), signalbox.ErrForced))
	// Output:
	// true
	// true
}

func ExampleLease_Token() {
	box := sure(embedded.Open(""))
	defer box.Close()
	first := sure(box.Mutex("m").Acquire(ctx))
	check(first.Release(ctx))
	second := sure(box.Mutex("m").Acquire(ctx))
	fmt.Println(second.Token() > first.Token())
	// Output: true
}

func ExampleLeases() {
	box := sure(embedded.Open(""))
	defer box.Close()
	leases := sure(box.AcquireAll(ctx, []signalbox.Request{
		box.Mutex("account:17").Request(),
		box.Semaphore("transfers", 10).Request(2),
	}, signalbox.TTL(3*time.Second)))
	for _, lease := range leases.All() {
		fmt.Println(lease.Resource(), lease.Weight())
	}
	fmt.Println(leases.Err())

	sure(box.ForceAll(ctx, "transfers")) // one context for all: it ends with the first of them
	<-leases.Done()
	fmt.Println(errors.Is(context.Cause(leases.Context()), signalbox.ErrForced))
	fmt.Println(errors.Is(leases.Release(ctx), signalbox.ErrForced))
	// Output:
	// account:17 1
	// transfers 2
	// <nil>
	// true
	// true
}

func ExampleRequest() {
	box := sure(embedded.Open(""))
	defer box.Close()
	requests := []signalbox.Request{box.Mutex("x").Request(), box.Semaphore("y", 5).Request(3)}
	leases := sure(box.AcquireAll(ctx, requests))
	fmt.Println(len(leases.All()))
	check(leases.Release(ctx))
	// Output: 2
}

func ExampleBox_AcquireAll() {
	box := sure(embedded.Open(""))
	defer box.Close()
	x, y := box.Mutex("x"), box.Mutex("y")

	// In whatever order they are named, two cannot wait for each other.
	done := make(chan error)
	for _, order := range [][]signalbox.Request{{x.Request(), y.Request()}, {y.Request(), x.Request()}} {
		go func() {
			for range 10 {
				leases, err := box.AcquireAll(ctx, order)
				if err == nil {
					err = leases.Release(ctx)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	fmt.Println(<-done, <-done)
	// Output: <nil> <nil>
}

func ExampleBox_TryAcquireAll() {
	box := sure(embedded.Open(""))
	defer box.Close()
	y := sure(box.Mutex("y").Acquire(ctx))
	_, err := box.TryAcquireAll(ctx, []signalbox.Request{box.Mutex("x").Request(), box.Mutex("y").Request()})
	fmt.Println(errors.Is(err, signalbox.ErrBusy))

	x := sure(box.Mutex("x").TryAcquire(ctx)) // nothing of it is held
	check(errors.Join(x.Release(ctx), y.Release(ctx)))
	// Output: true
}

func ExampleBusyError() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Semaphore("s", 1).Acquire(ctx, signalbox.TTL(10*time.Second)))

	_, err := box.Semaphore("s", 1).TryAcquire(ctx)
	var busy *signalbox.BusyError
	if errors.As(err, &busy) {
		fmt.Println(busy.Resource, busy.Held, "of", busy.Limit, busy.RetryAfter <= 10*time.Second)
	}
	check(lease.Release(ctx))
	// Output: s 1 of 1 true
}
