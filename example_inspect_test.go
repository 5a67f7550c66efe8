package signalbox_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func ExampleState() {
	box := sure(embedded.Open(""))
	defer box.Close()
	first := sure(box.Semaphore("db", 1).Acquire(ctx))
	second := behind(box.Semaphore("db", 1).Acquire)

	state := sure(box.Inspect(ctx, "db"))
	fmt.Println(state.Held, "of", state.Limit, "held,", state.Waiters, "waiting")
	check(first.Release(ctx))
	check((<-second).lease.Release(ctx))
	// Output: 1 of 1 held, 1 waiting
}

func ExampleHolder() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.Label("import"), signalbox.TTL(time.Minute)))
	for _, holder := range sure(box.Inspect(ctx, "m")).Holders {
		fmt.Println(holder.Label, holder.Weight, holder.TTL, holder.Token == lease.Token(), holder.Resting)
	}
	check(lease.Release(ctx))
	// Output: import 1 1m0s true false
}

func ExampleQueuedEntry() {
	box := sure(embedded.Open(""))
	defer box.Close()
	first := sure(box.Mutex("m").Acquire(ctx))
	second := behind(box.Mutex("m").Acquire, signalbox.Label("import"))
	for _, waiter := range sure(box.Inspect(ctx, "m")).Queue {
		fmt.Println(waiter.Label, waiter.Weight, waiter.Limit)
	}
	check(first.Release(ctx))
	check((<-second).lease.Release(ctx))
	// Output: import 1 1
}

func ExampleBox_List() {
	box := sure(embedded.Open(""))
	defer box.Close()
	leases := sure(box.AcquireAll(ctx, []signalbox.Request{box.Mutex("x").Request(), box.Semaphore("y", 9).Request(2)}))
	for _, state := range sure(box.List(ctx)) {
		fmt.Println(state.Resource, state.Held, "of", state.Limit)
	}
	check(leases.Release(ctx))
	// Output:
	// x 1 of 1
	// y 2 of 9
}

func ExampleBox_Inspect() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx))
	fmt.Println(sure(box.Inspect(ctx, "m")).Held)
	check(lease.Release(ctx))
	fmt.Println(sure(box.Inspect(ctx, "m")).Held)
	// Output:
	// 1
	// 0
}

func ExampleBox_Resize() {
	box := sure(embedded.Open(""))
	defer box.Close()
	one := sure(box.Semaphore("db", 1).Acquire(ctx))
	two := behind(box.Semaphore("db", 1).Acquire)

	fmt.Println(sure(box.Resize(ctx, "db", 2))) // the limit an operator had set before: none
	lease := (<-two).lease                      // granted at once, though the callers say 1
	fmt.Println(sure(box.Inspect(ctx, "db")).Held)
	fmt.Println(sure(box.Resize(ctx, "db", 0))) // what callers say counts again
	check(errors.Join(one.Release(ctx), lease.Release(ctx)))
	// Output:
	// 0
	// 2
	// 2
}

func ExampleBox_Force() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx))
	waiter := behind(box.Mutex("m").Acquire)

	queue := sure(box.Inspect(ctx, "m")).Queue
	fmt.Println(sure(box.Force(ctx, "m", queue[0].ID))) // sends the waiter away
	fmt.Println(errors.Is((<-waiter).err, signalbox.ErrForced))
	check(lease.Release(ctx))
	// Output:
	// true
	// true
}

func ExampleBox_ForceAll() {
	box := sure(embedded.Open(""))
	defer box.Close()
	short := signalbox.TTL(3 * time.Second) // with the next renewal they know
	one, two := sure(box.Semaphore("s", 2).Acquire(ctx, short)), sure(box.Semaphore("s", 2).Acquire(ctx, short))
	fmt.Println(sure(box.ForceAll(ctx, "s")))
	<-one.Done()
	<-two.Done()
	fmt.Println(errors.Is(one.Err(), signalbox.ErrForced), errors.Is(two.Err(), signalbox.ErrForced))
	// Output:
	// 2
	// true true
}

func ExampleBox_Watch() {
	box := sure(embedded.Open(""))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx))
	for event, err := range box.Watch(ctx, "m") {
		check(err)
		switch {
		case event.What == signalbox.Snapshot && event.State.Held == 1: // at first, and whenever events may have been missed
			check(lease.Release(ctx))
		case event.What == signalbox.LeaseReleased, event.What == signalbox.Snapshot:
			fmt.Println("free")
			return
		}
	}
	// Output: free
}

func ExampleEvent() {
	box := sure(embedded.Open("", signalbox.Owner("host seven")))
	defer box.Close()
	for event, err := range box.Watch(ctx, "m") {
		check(err)
		switch event.What {
		case signalbox.Snapshot:
			lease := sure(box.Mutex("m").Acquire(ctx, signalbox.Label("import")))
			check(lease.Release(ctx))
		case signalbox.LeaseGranted:
			fmt.Println(event.Resource, event.Owner, event.Label, event.Weight, event.Token > 0)
			return
		default:
		}
	}
	// Output: m host seven import 1 true
}

func ExampleEventKind() {
	fmt.Println(signalbox.WaiterQueued, signalbox.LeaseGranted, signalbox.LeaseReleased, signalbox.LeaseExpired)
	// Output: wait grant release expire
}

func ExampleBox_Deadlocks() {
	box := sure(embedded.Open(""))
	defer box.Close()
	ann, bob := signalbox.Label("ann"), signalbox.Label("bob")
	x, y := sure(box.Mutex("x").Acquire(ctx, ann)), sure(box.Mutex("y").Acquire(ctx, bob))
	annWaits, bobWaits := behind(box.Mutex("y").Acquire, ann), behind(box.Mutex("x").Acquire, bob)

	for _, circle := range sure(box.Deadlocks(ctx)) {
		for _, blocked := range circle.Waits {
			fmt.Println(blocked.Label, "waits for", blocked.Resource)
		}
		victim := circle.Waits[0]
		sure(box.Force(ctx, victim.Resource, victim.ID)) // sends one of them away
	}
	fmt.Println(errors.Is((<-annWaits).err, signalbox.ErrForced))
	check(x.Release(ctx)) // ann gives up
	check(errors.Join((<-bobWaits).lease.Release(ctx), y.Release(ctx)))
	// Output:
	// ann waits for y
	// bob waits for x
	// true
}

func ExampleDeadlock() {
	box := sure(embedded.Open(""))
	defer box.Close()
	fmt.Println(len(sure(box.Deadlocks(ctx))))
	// Output: 0
}

func ExampleBlocked() {
	blocked := signalbox.Blocked{Owner: "host seven", Label: "ann", Resource: "y"}
	fmt.Printf("%s (%s) waits for %s\n", blocked.Owner, blocked.Label, blocked.Resource)
	// Output: host seven (ann) waits for y
}
