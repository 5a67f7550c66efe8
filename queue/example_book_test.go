package queue_test

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
)

// The wishes that chapter 6.4 of Redis in Action ends up with for its task queues: first in, first out; several callbacks;
// priorities; delays. docs/book/ch06.md shows the bodies of these examples, and internal/tidytest holds them together.

type sale struct{ Seller, Item string }

// First in, first out. With a step of 0 a priority is worth nothing, and with one slot nothing overtakes.
func Example_bookFIFO() {
	q, end := openQueue()
	defer end()

	soldMail := queue.Define[sale, queue.None]("send_sold_email")
	check(q.Configure(ctx, queue.Step(0)))
	for _, item := range []string{"ItemA", "ItemB", "ItemC"} {
		sure(soldMail.Enqueue(ctx, q, sale{"ann", item}))
	}
	w := q.Worker("mailer", queue.Slots(1))
	soldMail.Handle(w, func(_ context.Context, j *queue.Job[sale]) (queue.None, error) {
		fmt.Println("to", j.Args.Seller+":", j.Args.Item, "is sold")
		return queue.None{}, nil
	})
	workAll(q, w)
	// Output:
	// to ann: ItemA is sold
	// to ann: ItemB is sold
	// to ann: ItemC is sold
}

// Several callbacks. A worker takes only kinds that it has a callback for; what others push to a list, as the book does, is
// taken in.
func Example_bookCallbacks() {
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()
	q := sure(box.Queue("app"))
	defer func() { check(q.Close()) }()

	soldMail := queue.Define[sale, queue.None]("send_sold_email")
	welcome := queue.Define[[]string, queue.None]("welcome")
	sure(soldMail.Enqueue(ctx, q, sale{"ann", "ItemA"}))
	sure(box.Engine().Do(ctx, "RPUSH", "queue:email", `["welcome", ["bob", "hello"]]`)) // any language

	w := q.Worker("mailer", queue.Slots(1), queue.TakeFrom("queue:email"))
	done := make(chan string)
	soldMail.Handle(w, func(_ context.Context, j *queue.Job[sale]) (queue.None, error) {
		done <- "to " + j.Args.Seller + ": " + j.Args.Item + " is sold"
		return queue.None{}, nil
	})
	welcome.Handle(w, func(_ context.Context, j *queue.Job[[]string]) (queue.None, error) {
		done <- "to " + j.Args[0] + ": " + j.Args[1]
		return queue.None{}, nil
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	fmt.Println(<-done)
	fmt.Println(<-done)
	stop()
	check(<-ended)
	// Unordered output:
	// to ann: ItemA is sold
	// to bob: hello
}

// Priorities. A step of priority is worth a minute of waiting: what matters more goes first, and nothing starves.
func Example_bookPriorities() {
	q, end := openQueue()
	defer end()

	mail := queue.Define[string, queue.None]("mail")
	sure(mail.Enqueue(ctx, q, "the newsletter", queue.Priority(-60)))
	sure(mail.Enqueue(ctx, q, "ItemA is sold"))
	sure(mail.Enqueue(ctx, q, "a new password", queue.Priority(10)))
	w := q.Worker("mailer", queue.Slots(1))
	mail.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		fmt.Println(j.Args)
		return queue.None{}, nil
	})
	workAll(q, w)
	// Output:
	// a new password
	// ItemA is sold
	// the newsletter
}

// Delays. A job waits for its time, by the server's clock; a worker is told when it has come, and nobody polls.
func Example_bookDelays() {
	q, end := openQueue()
	defer end()

	remind := queue.Define[string, queue.None]("remind")
	sure(remind.Enqueue(ctx, q, "welcome"))
	sure(remind.Enqueue(ctx, q, "the auction ends", queue.In(2*time.Second)))
	sure(remind.Enqueue(ctx, q, "you are outbid", queue.At(time.Now().Add(100*time.Millisecond))))
	w := q.Worker("reminder", queue.Slots(1))
	remind.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		fmt.Println(j.Args)
		return queue.None{}, nil
	})
	workAll(q, w)
	// Output:
	// welcome
	// you are outbid
	// the auction ends
}
