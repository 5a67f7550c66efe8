package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

// three opens boxes over three servers that know nothing of each other.
func three() (boxes [3]*embedded.Box, quorum *signalbox.Quorum, end func()) {
	for i := range boxes {
		boxes[i] = sure(embedded.Open(""))
	}
	return boxes, signalbox.NewQuorum(boxes[0].Box, boxes[1].Box, boxes[2].Box), func() {
		for _, box := range boxes {
			check(box.Close())
		}
	}
}

func ExampleQuorum() {
	_, quorum, end := three()
	defer end()
	lease := sure(quorum.Mutex("m").Acquire(ctx))
	fmt.Println(lease.Resource(), "is held on", lease.Servers(), "servers")
	check(lease.Release(ctx))
	// Output: m is held on 3 servers
}

func ExampleNewQuorum() {
	box := sure(embedded.Open(""))
	defer box.Close()
	_, err := signalbox.NewQuorum(box.Box, box.Box, box.Box).Mutex("m").Acquire(ctx)
	fmt.Println(errors.Is(err, signalbox.ErrInvalid)) // one server is no majority of three
	// Output: true
}

func ExampleQuorumMutex() {
	_, quorum, end := three()
	defer end()
	mutex := quorum.Mutex("m")
	check(mutex.Do(ctx, func(context.Context) error {
		_, err := mutex.TryAcquire(ctx)
		fmt.Println(errors.Is(err, signalbox.ErrBusy))
		return nil
	}))
	first := sure(mutex.Acquire(ctx))
	check(first.Release(ctx))
	second := sure(mutex.Acquire(ctx))
	fmt.Println(second.Token() > first.Token())
	check(second.Release(ctx))
	// Output:
	// true
	// true
}

func ExampleQuorumLease() {
	_, quorum, end := three()
	defer end()
	lease := sure(quorum.Mutex("m").Acquire(ctx))
	fmt.Println(lease.Resource(), lease.Token() > 0, lease.Err())
	check(lease.Release(ctx))
	<-lease.Done()
	fmt.Println(errors.Is(context.Cause(lease.Context()), signalbox.ErrReleased))
	// Output:
	// m true <nil>
	// true
}

// A lease outlives the loss of one server of three, and ends with the second.
func ExampleQuorumLease_Servers() {
	boxes, quorum, end := three()
	defer end()
	lease := sure(quorum.Mutex("m").Acquire(ctx, signalbox.TTL(3*time.Second)))
	lose := func(i int) {
		ids := sure(boxes[i].Inspect(ctx, "m")).Holders
		sure(boxes[i].Force(ctx, "m", ids[0].ID))
	}

	lose(2)
	for lease.Servers() == 3 { // until it has been told
		_ = sure(boxes[2].Inspect(ctx, "m"))
	}
	fmt.Println(lease.Servers(), lease.Err())
	lose(0)
	<-lease.Done()
	fmt.Println(errors.Is(lease.Err(), signalbox.ErrForced))
	_ = lease.Release(ctx) // says what was lost
	// Output:
	// 2 <nil>
	// true
}
