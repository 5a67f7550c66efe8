package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// Examples of requests, of what becomes of them, and of middleware.

// What became of each request stands at its place.
func ExampleManyOutcome() {
	q, end := openQueue()
	defer end()

	outcomes := sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.ID("a")), SendMail.With(Mail{To: "ann"}, queue.ID("a")),
		SendMail.With(Mail{To: "bob"}, queue.MaxAttempts(0))))
	for _, o := range outcomes {
		switch {
		case o.Err != nil:
			fmt.Println(errors.Is(o.Err, queue.ErrInvalid))
		case o.Duplicate:
			fmt.Println(o.ID, "was there")
		default:
			fmt.Println(o.ID, "is new")
		}
	}
	// Output:
	// a is new
	// a was there
	// true
}

// Requests of several kinds go in one call.
func ExampleRequest() {
	q, end := openQueue()
	defer end()

	report := queue.Define[string, queue.None]("report")
	requests := []queue.Request{SendMail.With(Mail{To: "ann"}), report.With("sales", queue.In(time.Hour))}
	for i, o := range sure(q.EnqueueMany(ctx, requests...)) {
		fmt.Println(requests[i].Kind(), o.Err)
	}
	// Output:
	// mail.send <nil>
	// report <nil>
}

// A request may be kept as bytes elsewhere, such as in a database, and has its id from then on.
func ExampleRequest_Encode() {
	q, end := openQueue()
	defer end()

	id, data, err := SendMail.With(Mail{To: "ann"}).Encode()
	check(err)
	again := sure(queue.DecodeRequest(data, 0))
	fmt.Println(sure(q.EnqueueMany(ctx, again))[0].ID == id)
	// Output: true
}

// A delay counts from when the request was encoded.
func ExampleDecodeRequest() {
	q, end := openQueue()
	defer end()

	_, data, err := SendMail.With(Mail{To: "ann"}, queue.In(time.Hour)).Encode()
	check(err)
	request := sure(queue.DecodeRequest(data, 20*time.Minute))
	info := sure(q.Look(ctx, sure(q.EnqueueMany(ctx, request))[0].ID))
	fmt.Println(info.State, info.Due.Sub(info.Enqueued))
	// Output: delayed 40m0s
}

func ExampleRequest_Key() {
	fmt.Println(SendMail.With(Mail{To: "ann"}, queue.Key("tenant:42")).Key())
	// Output: tenant:42
}

// A request with which something is wrong has no kind.
func ExampleRequest_Kind() {
	fmt.Printf("%q %q\n", SendMail.With(Mail{To: "ann"}).Kind(), SendMail.With(Mail{To: "ann"}, queue.MaxAttempts(0)).Kind())
	// Output: "mail.send" ""
}

// What goes into the queue may be seen, and counted, on its way.
func ExampleEnqueueMiddleware() {
	var counted queue.EnqueueMiddleware = func(next queue.Enqueuer) queue.Enqueuer {
		return func(ctx context.Context, requests []queue.Request) ([]queue.ManyOutcome, error) {
			outcomes, err := next(ctx, requests)
			fmt.Println(len(requests), "requests,", err)
			return outcomes, err
		}
	}
	q, end := openQueue(queue.WrapEnqueue(counted))
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"})))
	// Output: 2 requests, <nil>
}

// An enqueuer that refuses some requests calls the next one with the others, and gives each an outcome.
func ExampleEnqueuer() {
	errNoKey := errors.New("every job has a key here")
	keyed := func(next queue.Enqueuer) queue.Enqueuer {
		return func(ctx context.Context, requests []queue.Request) ([]queue.ManyOutcome, error) {
			outcomes := make([]queue.ManyOutcome, len(requests))
			var with []queue.Request
			var places []int
			for i, r := range requests {
				if outcomes[i].Err = errNoKey; r.Key() != "" {
					with, places = append(with, r), append(places, i)
				}
			}
			told, err := next(ctx, with)
			if err != nil {
				return nil, err // which holds for all that have no outcome
			}
			for i, o := range told {
				outcomes[places[i]] = o
			}
			return outcomes, nil
		}
	}
	q, end := openQueue(queue.WrapEnqueue(keyed))
	defer end()

	for _, o := range sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"}, queue.Key("b")))) {
		fmt.Println(o.Err)
	}
	// Output:
	// every job has a key here
	// <nil>
}

// Middleware may end a job before its handler is called.
func ExampleMiddleware() {
	var internalOnly queue.Middleware = func(next queue.Runner) queue.Runner {
		return func(ctx context.Context, t *queue.Task) ([]byte, error) {
			if !strings.HasPrefix(t.Key, "internal:") {
				return nil, queue.Fail(errors.New("not for others"))
			}
			return next(ctx, t)
		}
	}
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.Key("internal:1")), SendMail.With(Mail{To: "eve"})))
	w := q.Worker("w", queue.Use(internalOnly))
	SendMail.Handle(w, printTo)
	workAll(q, w)
	fmt.Println(sure(q.Count(ctx, queue.Filter{Error: "not for others"})), "refused")
	// Output:
	// to ann
	// 1 refused
}
