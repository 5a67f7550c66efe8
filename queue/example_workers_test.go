package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
)

// Examples of workers, and of offers to them.

// mailer makes a worker that sends mails.
func mailer(q *queue.Queue, options ...queue.WorkerOption) *queue.Worker {
	w := q.Worker("mailer", options...)
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		return Receipt{Bytes: len(j.Args.Text)}, nil
	})
	return w
}

// AnswerCall is the kind of what agents are offered.
var AnswerCall = queue.Define[string, string]("call", queue.Cost("call", 1))

// agentOf makes a worker that is offered calls, one at a time.
func agentOf(q *queue.Queue, name string, options ...queue.WorkerOption) *queue.Worker {
	w := q.Worker(name, append([]queue.WorkerOption{queue.With(queue.Capacity{"call": 1}), queue.OfferFor(time.Hour)}, options...)...)
	AnswerCall.Handle(w, func(_ context.Context, j *queue.Job[string]) (string, error) { return name + " to " + j.Args, nil })
	return w
}

// logIn runs a worker, and returns when the server knows it. What it returns drains the worker.
func logIn(q *queue.Queue, w *queue.Worker) (logOut func()) {
	before := len(sure(q.Workers(ctx)))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for len(sure(q.Workers(ctx))) == before {
		time.Sleep(time.Millisecond)
	}
	return func() { check(errors.Join(w.Drain(ctx), <-ended)) }
}

// A worker has a handler for each kind that it runs.
func ExampleWorker() {
	q, end := openQueue()
	defer end()

	w := q.Worker("mailer", queue.Slots(20), queue.Tags("region:eu"))
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("to", j.Args.To)
		return Receipt{}, nil
	})
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	workAll(q, w)
	// Output: to ann
}

// The name of a worker is for people.
func ExampleQueue_Worker() {
	q, end := openQueue()
	defer end()

	w := mailer(q) // q.Worker("mailer"), with a handler
	defer logIn(q, w)()
	fmt.Println(sure(q.Workers(ctx))[0].Name)
	// Output: mailer
}

// Run returns when its context ends and what ran has ended.
func ExampleWorker_Run() {
	q, end := openQueue()
	defer end()

	w := mailer(q)
	running, stop := context.WithCancel(ctx) // such as signal.NotifyContext
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}))
	fmt.Println(sure(job.Wait(ctx)).Bytes, "bytes")
	stop()
	fmt.Println(<-ended)
	// Output:
	// 5 bytes
	// <nil>
}

// A worker that drains finishes what it runs. Then its Run has returned, and the server knows it no more.
func ExampleWorker_Drain() {
	q, end := openQueue()
	defer end()

	w := mailer(q)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	sure(sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"})).Wait(ctx))
	check(w.Drain(ctx))
	fmt.Println(<-ended, len(sure(q.Workers(ctx))))
	// Output: <nil> 0
}

// Who is away takes nothing new.
func ExampleWorker_Away() {
	q, end := openQueue()
	defer end()

	w := mailer(q)
	defer logIn(q, w)()
	check(w.Away(ctx))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Workers(ctx))[0].State, sure(q.Why(ctx, job.ID())).Reason)
	// Output: away no worker
}

// What came while a worker was away waits for it.
func ExampleWorker_Online() {
	q, end := openQueue()
	defer end()

	w := mailer(q)
	check(w.Away(ctx)) // so it begins
	defer logIn(q, w)()
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}))
	check(w.Online(ctx))
	fmt.Println(sure(job.Wait(ctx)).Bytes, "bytes")
	// Output: 5 bytes
}

// State is what the worker itself knows, without asking the server.
func ExampleWorker_State() {
	q, end := openQueue()
	defer end()

	w := mailer(q)
	defer logIn(q, w)()
	fmt.Println(w.State())
	check(w.Away(ctx))
	fmt.Println(w.State())
	// Output:
	// online
	// away
}

// The server tells the state of every worker.
func ExampleWorkerState() {
	q, end := openQueue()
	defer end()

	w := mailer(q)
	defer logIn(q, w)()
	online := 0
	for _, seen := range sure(q.Workers(ctx)) {
		if seen.State == queue.Online {
			online++
		}
	}
	fmt.Println(online, "online")
	// Output: 1 online
}

// Workers are those that the server knows, of all processes.
func ExampleQueue_Workers() {
	q, end := openQueue()
	defer end()

	defer logIn(q, agentOf(q, "ben"))()
	defer logIn(q, agentOf(q, "anna"))()
	for _, w := range sure(q.Workers(ctx)) {
		fmt.Println(w.Name, w.State, w.Capacities["call"].Used, "of", w.Capacities["call"].Limit)
	}
	// Output:
	// anna online 0 of 1
	// ben online 0 of 1
}

// What is known of a worker: what it runs, what it has, and how much of that is in use.
func ExampleWorkerInfo() {
	q, end := openQueue()
	defer end()

	defer logIn(q, agentOf(q, "anna", queue.Tags("lang:de", "vip")))()
	info := sure(q.Workers(ctx))[0]
	fmt.Println(info.Name, info.Kinds, info.Tags, info.Capacities["call"].Limit, info.OfferFor)
	// Output: anna [call] [lang:de vip] 1 1h0m0s
}

// Options may be kept, for workers that are alike.
func ExampleWorkerOption() {
	q, end := openQueue()
	defer end()

	options := []queue.WorkerOption{queue.Slots(5), queue.Tags("region:eu"), queue.DrainTimeout(time.Minute)}
	w := mailer(q, options...)
	defer logIn(q, w)()
	info := sure(q.Workers(ctx))[0]
	fmt.Println(info.Capacities["slot"].Limit, info.Tags)
	// Output: 5 [region:eu]
}

// A handler that goes on when the time to drain is over has its context ended. Its job runs again elsewhere.
func ExampleDrainTimeout() {
	q, end := openQueue()
	defer end()

	w := q.Worker("mailer", queue.DrainTimeout(time.Millisecond))
	begun := make(chan struct{})
	SendMail.Handle(w, func(ctx context.Context, _ *queue.Job[Mail]) (Receipt, error) {
		close(begun)
		<-ctx.Done()
		fmt.Println(errors.Is(context.Cause(ctx), queue.ErrStopped))
		return Receipt{}, context.Cause(ctx)
	})
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	logOut := logIn(q, w)
	<-begun
	logOut()
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	// Output:
	// true
	// waiting
}

// One worker is observed, where Observer hears of all of a process.
func ExampleObserve() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	workAll(q, mailer(q, queue.Observe(func(e queue.Event) {
		if e.What == queue.Started || e.What == queue.Ended {
			fmt.Println(e.Worker, e.What, e.Kind)
		}
	})))
	// Output:
	// mailer started mail.send
	// mailer ended mail.send
}

// So many jobs without a cost run at once.
func ExampleSlots() {
	q, end := openQueue()
	defer end()

	defer logIn(q, mailer(q, queue.Slots(20)))()
	fmt.Println(sure(q.Workers(ctx))[0].Capacities["slot"].Limit)
	// Output: 20
}

// A job goes only to workers that have all the tags that it requires.
func ExampleTags() {
	q, end := openQueue()
	defer end()

	defer logIn(q, mailer(q, queue.Tags("region:eu")))()
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Require("region:us")))
	fmt.Println(sure(q.Why(ctx, job.ID())).Missing)
	sure(sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}, queue.Require("region:eu"))).Wait(ctx))
	// Output: tag region:us
}

// Programs that know only lists push a line, and it becomes a job.
func ExampleTakeFrom() {
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()
	q := sure(box.Queue("app"))
	defer func() { check(q.Close()) }()

	welcome := queue.Define[[]string, queue.None]("welcome")
	w := q.Worker("mailer", queue.TakeFrom("queue:email"))
	welcomed := make(chan string)
	welcome.Handle(w, func(_ context.Context, j *queue.Job[[]string]) (queue.None, error) {
		welcomed <- j.Args[0]
		return queue.None{}, nil
	})
	defer logIn(q, w)()
	sure(box.Engine().Do(ctx, "RPUSH", "queue:email", `["welcome", ["bob"]]`)) // any language
	fmt.Println(<-welcomed)
	// Output: bob
}

// An offer says what the job is, before anybody takes it.
func ExampleOffer() {
	q, end := openQueue()
	defer end()

	anna := agentOf(q, "anna", queue.Tags("lang:de"))
	defer logIn(q, anna)()
	sure(AnswerCall.Enqueue(ctx, q, "Ben", queue.Key("tenant:42"), queue.Require("lang:de")))
	offer := <-anna.Offers()
	fmt.Println(offer.Kind, offer.Key, string(offer.Args), offer.Tags, offer.Cost)
	// Output: call tenant:42 "Ben" [lang:de] map[call:1]
}

// Offers come by a channel, which is closed when Run returns.
func ExampleWorker_Offers() {
	q, end := openQueue()
	defer end()

	anna := agentOf(q, "anna")
	logOut := logIn(q, anna)
	call := sure(AnswerCall.Enqueue(ctx, q, "Ben"))
	for offer := range anna.Offers() {
		check(offer.Accept(ctx))
		fmt.Println(sure(call.Wait(ctx)))
		logOut() // ends the loop
	}
	// Output: anna to Ben
}

// The handler runs once the offer was accepted.
func ExampleOffer_Accept() {
	q, end := openQueue()
	defer end()

	anna := agentOf(q, "anna")
	defer logIn(q, anna)()
	call := sure(AnswerCall.Enqueue(ctx, q, "Ben"))
	check((<-anna.Offers()).Accept(ctx))
	fmt.Println(sure(call.Wait(ctx)))
	// Output: anna to Ben
}

// What one declines is offered to the next.
func ExampleOffer_Decline() {
	q, end := openQueue()
	defer end()

	anna, carl := agentOf(q, "anna"), agentOf(q, "carl")
	defer logIn(q, anna)()
	defer logIn(q, carl)()
	call := sure(AnswerCall.Enqueue(ctx, q, "Ben", queue.ForWithin("anna", time.Hour))) // so anna is asked first
	check((<-anna.Offers()).Decline(ctx))
	check((<-carl.Offers()).Accept(ctx))
	fmt.Println(sure(call.Wait(ctx)))
	// Output: carl to Ben
}

// A telephone rings until the offer is over, here because the caller has hung up.
func ExampleOffer_Done() {
	q, end := openQueue()
	defer end()

	anna := agentOf(q, "anna")
	defer logIn(q, anna)()
	call := sure(AnswerCall.Enqueue(ctx, q, "Ben"))
	offer := <-anna.Offers()
	check(q.Cancel(ctx, "the caller has hung up", call.ID()))
	<-offer.Done()
	fmt.Println(errors.Is(offer.Accept(ctx), queue.ErrOfferOver))
	// Output: true
}

// Err says why an offer is over.
func ExampleOffer_Err() {
	q, end := openQueue()
	defer end()

	anna := agentOf(q, "anna")
	defer logIn(q, anna)()
	sure(AnswerCall.Enqueue(ctx, q, "Ben"))
	offer := <-anna.Offers()
	fmt.Println(offer.Err())
	check(offer.Decline(ctx))
	fmt.Println(offer.Err())
	// Output:
	// <nil>
	// offer over: it was declined
}

// Who does not answer is away, unless it stays.
func ExampleStay() {
	q, end := openQueue()
	defer end()

	anna := agentOf(q, "anna", queue.OfferFor(100*time.Millisecond), queue.Stay())
	defer logIn(q, anna)()
	sure(AnswerCall.Enqueue(ctx, q, "Ben"))
	offer := <-anna.Offers()
	<-offer.Done()
	fmt.Println(errors.Is(offer.Err(), queue.ErrOfferOver), anna.State())
	// Output: true online
}
