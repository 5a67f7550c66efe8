package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// The examples of this package run without a server, on the engine that embedded.Open brings along. What they show is the
// same on every server.

var ctx = context.Background()

// sure and check keep an example about what it is about: what they refuse does not happen in it.
func sure[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

type acquired struct {
	lease *signalbox.Lease
	err   error
}

// behind starts an acquisition and returns when it stands in the queue; the channel gives what becomes of it.
func behind(
	acquire func(context.Context, ...signalbox.AcquireOption) (*signalbox.Lease, error), options ...signalbox.AcquireOption,
) <-chan acquired {
	queued, done := make(chan struct{}, 1), make(chan acquired, 1)
	go func() {
		lease, err := acquire(ctx, append(options, signalbox.OnWait(func(signalbox.Waiting) {
			select {
			case queued <- struct{}{}:
			default:
			}
		}))...)
		done <- acquired{lease, err}
	}()
	<-queued
	return done
}

// address serves the engine of a box to others, as a Redis would be, and returns where.
func address(box *embedded.Box) string {
	listener := sure(net.Listen("tcp", "127.0.0.1:0"))
	go func() { check(box.Engine().Serve(listener)) }() // ends when the box is closed
	return listener.Addr().String()
}

func Example() {
	box, err := embedded.Open("") // or signalbox.Open(ctx, "redis://localhost:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()

	// The context of the function ends before anybody else can hold the mutex.
	err = box.Mutex("invoice:42").Do(ctx, func(context.Context) error {
		fmt.Println("charging, nobody else is")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: charging, nobody else is
}

func ExampleOpen() {
	server := sure(embedded.Open(""))
	defer server.Close()

	box := sure(signalbox.Open(ctx, "redis://"+address(server)+"/0?read_timeout=1s"))
	defer box.Close()
	fmt.Println(box.Mutex("m").Do(ctx, func(context.Context) error { return nil }))

	_, err := signalbox.Open(ctx, "http://localhost")
	fmt.Println(errors.Is(err, signalbox.ErrInvalid))
	// Output:
	// <nil>
	// true
}

func ExampleNew() {
	server := sure(embedded.Open(""))
	defer server.Close()

	client := redis.NewClient(&redis.Options{Addr: address(server), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close() // stays yours: closing the box leaves it open
	box := signalbox.New(client)
	defer box.Close()
	fmt.Println(box.Mutex("m").Do(ctx, func(context.Context) error { return nil }))
	// Output: <nil>
}

func ExampleBox() {
	box := sure(embedded.Open(""))
	defer box.Close()

	hold := func(context.Context) error { return nil }
	check(box.Mutex("one at a time").Do(ctx, hold))
	check(box.Semaphore("five at a time", 5).Do(ctx, hold))
	check(box.RWMutex("many readers or one writer").Read().Do(ctx, hold))
	check(box.Limiter("ten a second", signalbox.PerSecond(10)).Wait(ctx, 1))
	term := sure(box.Election("one leads").Campaign(ctx))
	check(term.Resign(ctx))
	fmt.Println(sure(box.Latch("opens when three have come", 3).Missing(ctx)))
	fmt.Println(sure(box.Barrier("together", 1).Wait(ctx)) > 0)
	fmt.Println(box.Fence("guarded").Check(ctx, term.Token()))
	// Output:
	// 3
	// true
	// <nil>
}

func ExampleBox_Close() {
	box := sure(embedded.Open(""))
	lease := sure(box.Mutex("m").Acquire(ctx))
	check(box.Close()) // gives back what is held

	fmt.Println(errors.Is(lease.Err(), signalbox.ErrClosed))
	_, err := box.Mutex("m").Acquire(ctx)
	fmt.Println(errors.Is(err, signalbox.ErrClosed))
	// Output:
	// true
	// true
}

func ExampleOwner() {
	box := sure(embedded.Open("", signalbox.Owner("billing on host seven")))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.Label("invoice 42")))
	holder := sure(box.Inspect(ctx, "m")).Holders[0]
	fmt.Println(holder.Owner, "/", holder.Label)
	check(lease.Release(ctx))
	// Output: billing on host seven / invoice 42
}

func ExampleObserve() {
	box := sure(embedded.Open("", signalbox.Observe(func(o signalbox.Observation) {
		fmt.Println(o.What, o.Resource, o.Label)
	})))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.Label("first")))
	_, err := box.Mutex("m").TryAcquire(ctx, signalbox.Label("second"))
	check(lease.Release(ctx))
	fmt.Println(errors.Is(err, signalbox.ErrBusy))
	// Output:
	// begun m first
	// granted m first
	// begun m second
	// refused m second
	// released m first
	// true
}

func ExampleObservation() {
	count := make(map[signalbox.Happening]int)
	box := sure(embedded.Open("", signalbox.Observe(func(o signalbox.Observation) { count[o.What]++ })))
	defer box.Close()
	for range 3 {
		check(box.Semaphore("s", 5).Do(ctx, func(context.Context) error { return nil }))
	}
	fmt.Println(count[signalbox.Granted], count[signalbox.Released], count[signalbox.Lost])
	// Output: 3 3 0
}

func ExampleHappening() {
	box := sure(embedded.Open("", signalbox.Observe(func(o signalbox.Observation) {
		switch o.What {
		case signalbox.Granted, signalbox.Released: // counters
		case signalbox.Failed, signalbox.Refused, signalbox.Lost:
			fmt.Println(o.What, "in", o.Resource)
		case signalbox.Renewed: // o.Lag says how late
		}
	})))
	defer box.Close()
	lease := sure(box.Mutex("m").Acquire(ctx, signalbox.TTL(3*time.Second)))
	fmt.Println(sure(box.Force(ctx, "m", lease.ID()))) // heard with the next renewal
	<-lease.Done()
	check(box.Close())
	// Output:
	// true
	// lost in m
}

func ExampleClaim() {
	// A waiter whose process died holds up the queue for a second at most, instead of three; each asks three times a second.
	box := sure(embedded.Open("", signalbox.Claim(time.Second)))
	defer box.Close()
	first := sure(box.Mutex("m").Acquire(ctx))
	second := behind(box.Mutex("m").Acquire)
	entry := sure(box.Inspect(ctx, "m")).Queue[0]
	fmt.Println(time.Until(entry.Claim) <= time.Second)
	check(first.Release(ctx))
	check((<-second).lease.Release(ctx))
	// Output: true
}
