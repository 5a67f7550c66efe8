package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// An agent is asked before it is given a call. It is the only one that may have this one for the next five minutes.
func ExampleOfferFor() {
	q, done := openQueue()
	defer done()
	check(q.Configure(ctx, queue.Placement(queue.LongestIdle)))
	answerCall := queue.Define[string, string]("call", queue.Cost("call", 1))

	anna := q.Worker("anna", queue.With(queue.Capacity{"call": 1, "chat": 3}), queue.Tags("lang:de"), queue.OfferFor(20*time.Second))
	answerCall.Handle(anna, func(_ context.Context, j *queue.Job[string]) (string, error) { return "hello " + j.Args, nil })
	ended := make(chan error, 1)
	go func() { ended <- anna.Run(ctx) }()

	call := sure(answerCall.Enqueue(ctx, q, "Ben", queue.Require("lang:de"), queue.ForWithin("anna", 5*time.Minute)))
	offer := <-anna.Offers()
	fmt.Println(offer.Kind, sure(q.Look(ctx, call.ID())).State)
	check(offer.Accept(ctx))
	fmt.Println(sure(call.Wait(ctx)))

	check(anna.Away(ctx))
	fmt.Println(anna.State())
	check(anna.Online(ctx))
	check(anna.Drain(ctx))
	check(<-ended)
	// Output:
	// call offered
	// hello Ben
	// away
}
