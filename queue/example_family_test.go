package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/queue"
)

// Examples of what a job says when it fails or waits, of what comes with it from its producer, and of partitions.

// A job that has failed for good says why. It is kept for DeadRetain, to be looked at and run again.
func ExampleDeadError() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "nobody"}))
	w := q.Worker("w")
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) {
		return Receipt{}, queue.Fail(errors.New("no such mailbox"))
	})
	workAll(q, w)

	_, err := job.Wait(ctx)
	var dead *queue.DeadError
	if errors.As(err, &dead) && errors.Is(err, queue.ErrDead) {
		fmt.Println(dead.Reason)
	}
	// Output: no such mailbox
}

// Why says what stands in the way of a job, for people and for programs.
func ExampleQueue_Why() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Require("lang:de"), queue.Cost("gpu", 1)))
	why := sure(q.Why(ctx, job.ID()))
	fmt.Println(why.Reason == queue.Nobody, why)

	check(q.Configure(ctx, queue.Limit(queue.OfKind("mail.send"), 0)))
	why = sure(q.Why(ctx, job.ID()))
	fmt.Println(why.Reason == queue.Limited, why.Used, why.Most, why)
	// Output:
	// true no worker is online
	// true 0 0 the limit of kind mail.send is used up: 0 of 0 run
}

// What a failed parent means is said with the child: it is canceled (CancelIt), waits to be retried by hand (HoldIt), or runs
// all the same (RunIt).
func ExampleParentFailure() {
	q, end := openQueue()
	defer end()

	step := queue.Define[string, queue.None]("step")
	w := q.Worker("w", queue.Slots(1))
	step.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		fmt.Println(j.Args)
		if j.Args == "build" {
			return queue.None{}, queue.Fail(errors.New("it does not compile"))
		}
		return queue.None{}, nil
	})
	build := sure(step.Enqueue(ctx, q, "build", queue.In(10*time.Millisecond)))
	deploy := sure(step.Enqueue(ctx, q, "deploy", queue.After(queue.CancelIt, build.ID())))
	sure(step.Enqueue(ctx, q, "tell", queue.After(queue.RunIt, build.ID())))
	workAll(q, w)
	_, err := deploy.Wait(ctx)
	fmt.Println(errors.Is(err, queue.ErrCanceled))
	// Output:
	// build
	// tell
	// true
}

// MissedTicks says what becomes of ticks at which no worker was there.
func ExampleMissedTicks() {
	q, end := openQueue()
	defer end()

	report := queue.Define[string, queue.None]("report")
	for name, missed := range map[string]queue.MissedTicks{"a": queue.RunLast, "b": queue.RunEach, "c": queue.Skip} {
		check(q.Schedule(ctx, name, queue.Cron("0 6 * * mon", "Europe/Berlin"), missed, report.With(name)))
	}
	for _, s := range sure(q.Schedules(ctx)) {
		fmt.Println(s.Name, s.Timing.Spec, s.Missed, s.Kind)
	}
	// Output:
	// a 0 6 * * mon last report
	// b 0 6 * * mon each report
	// c 0 6 * * mon skip report
}

// tenant is a name in a context, as a request has it.
type tenant struct{}

// Something of the context of who enqueues comes with the job. Packages logging, metrics and tracing use this, and Observer and
// Wrap, for traces and the like.
func ExamplePropagate() {
	e := sure(engine.Open(engine.Options{}))
	client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() }})
	q := sure(queue.New(client, "app",
		queue.Propagate(func(ctx context.Context, meta map[string]string) { meta["t"], _ = ctx.Value(tenant{}).(string) },
			func(ctx context.Context, meta map[string]string) context.Context {
				return context.WithValue(ctx, tenant{}, meta["t"])
			}),
		queue.Observer(func(e queue.Event) {
			if e.What == queue.Added || e.What == queue.Ended {
				fmt.Println(e.What, e.Verb, e.Kind)
			}
		}),
		queue.Wrap(func(next queue.Runner) queue.Runner {
			return func(ctx context.Context, t *queue.Task) ([]byte, error) {
				fmt.Println("for", ctx.Value(tenant{}))
				return next(ctx, t)
			}
		})))
	defer func() { check(errors.Join(q.Close(), client.Close(), e.Close())) }()

	ping := queue.Define[queue.None, queue.None]("ping")
	sure(ping.Enqueue(context.WithValue(ctx, tenant{}, "ann"), q, queue.None{}))
	w := q.Worker("w")
	ping.Handle(w, func(context.Context, *queue.Job[queue.None]) (queue.None, error) { return queue.None{}, nil })
	workAll(q, w)
	// Output:
	// added new ping
	// for ann
	// ended done ping
}

// A queue that is too large for one primary of a Cluster is spread over several. All jobs of a key are in one of them.
func ExampleNewPartitions() {
	e := sure(engine.Open(engine.Options{}))
	client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() }})
	p := sure(queue.NewPartitions(client, "app", 4)) // with a server: queue.OpenPartitions(ctx, "redis+cluster://…", "app", 4)
	defer func() { check(errors.Join(p.Close(), client.Close(), e.Close())) }()

	check(p.Configure(ctx, queue.Limit(queue.EachKey, 2)))
	sure(p.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.Key("a")), SendMail.With(Mail{To: "bob"}, queue.Key("b"))))
	of := p.Of("a") // the queue that has all jobs of the key
	fmt.Println(p.Of("a") == of, sure(p.Stats(ctx)).Waiting)

	running, stop := context.WithCancel(ctx)
	done := make(chan string, 2)
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(running, func(q *queue.Queue) *queue.Worker {
			w := q.Worker("mailer")
			SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
				done <- j.Args.To
				return Receipt{}, nil
			})
			return w
		})
	}()
	both := map[string]bool{<-done: true, <-done: true}
	stop()
	check(<-ended)
	fmt.Println(both)
	// Output:
	// true 2
	// map[ann:true bob:true]
}

// What is around every call of a producer may refuse it, here while too much waits.
func ExampleWrapEnqueue() {
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()
	errFull := errors.New("the queue is full")
	var q *queue.Queue
	giveWay := func(next queue.Enqueuer) queue.Enqueuer {
		return func(ctx context.Context, requests []queue.Request) ([]queue.ManyOutcome, error) {
			if stats, err := q.Stats(ctx); err != nil || stats.Waiting >= 2 {
				return nil, errors.Join(err, errFull)
			}
			return next(ctx, requests)
		}
	}
	q = sure(box.Queue("app", queue.WrapEnqueue(giveWay)))
	defer func() { check(q.Close()) }()
	for range 3 {
		_, err := SendMail.Enqueue(ctx, q, Mail{To: "ann"})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// the queue is full
}
