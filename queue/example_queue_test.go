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

// Examples of a queue itself: how it is opened, what is in it, what is done to its jobs, what is set.

// serve has an engine listen, as a server would. What it returns besides ends it.
func serve() (url string, end func()) {
	e := sure(engine.Open(engine.Options{}))
	listener := sure(net.Listen("tcp", "127.0.0.1:0"))
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	return "redis://" + listener.Addr().String(), func() { check(errors.Join(e.Close(), <-served)) }
}

// A process opens a queue once, and all its goroutines use it.
func ExampleQueue() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer")
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil })
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	workAll(q, w)
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	// Output:
	// waiting
	// done
}

// The address of a server is a URL.
func ExampleOpen() {
	url, end := serve() // such as redis://localhost:6379
	defer end()

	q := sure(queue.Open(ctx, url, "app"))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Stats(ctx)).Waiting, "waiting")
	check(q.Close())
	// Output: 1 waiting
}

// A program that has a client already gives it to the queue. Close of the queue leaves the client open.
func ExampleNew() {
	url, end := serve()
	defer end()

	options := sure(redis.ParseURL(url))
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	client := redis.NewClient(options)
	q := sure(queue.New(client, "app"))
	check(q.Close())
	fmt.Println(sure(client.Ping(ctx).Result()))
	check(client.Close())
	// Output: PONG
}

// A queue that was closed does nothing any more.
func ExampleQueue_Close() {
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()

	q := sure(box.Queue("app"))
	check(q.Close())
	_, err := SendMail.Enqueue(ctx, q, Mail{To: "ann"})
	fmt.Println(errors.Is(err, queue.ErrClosed))
	// Output: true
}

// Name is what the queue was opened with.
func ExampleQueue_Name() {
	q, end := openQueue()
	defer end()

	fmt.Println(q.Name())
	// Output: app
}

// Look is all that there is to know of one job.
func ExampleQueue_Look() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.ID("welcome:ann"), queue.Key("tenant:42")))
	job := sure(q.Look(ctx, "welcome:ann"))
	fmt.Println(job.State, job.Kind, job.Key, string(job.Arguments))

	_, err := q.Look(ctx, "welcome:bob")
	fmt.Println(errors.Is(err, queue.ErrUnknownJob))
	// Output:
	// waiting mail.send tenant:42 {"To":"ann","Text":""}
	// true
}

// Jobs goes through the jobs that a filter means.
func ExampleQueue_Jobs() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.Key("a")), SendMail.With(Mail{To: "bob"}, queue.Key("b"))))
	for job, err := range q.Jobs(ctx, queue.Filter{Key: "b"}) {
		check(err)
		fmt.Println(job.State, sure(SendMail.Arguments(&job)).To)
	}
	// Output: waiting bob
}

// Count says how many jobs a filter means.
func ExampleQueue_Count() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"}, queue.In(time.Hour))))
	fmt.Println(sure(q.Count(ctx, queue.Filter{})), sure(q.Count(ctx, queue.Filter{State: queue.Delayed})))
	// Output: 2 1
}

// A job that does not run can be deleted. Nothing is kept of it.
func ExampleQueue_Delete() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	check(q.Delete(ctx, job.ID()))
	fmt.Println(sure(q.Count(ctx, queue.Filter{})))
	// Output: 0
}

// DeleteAll deletes what a filter means, and says how many jobs those were.
func ExampleQueue_DeleteAll() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.Key("a")), SendMail.With(Mail{To: "bob"}, queue.Key("b"))))
	fmt.Println(sure(q.DeleteAll(ctx, queue.Filter{Key: "a"})), "deleted,", sure(q.Stats(ctx)).Waiting, "waiting")
	// Output: 1 deleted, 1 waiting
}

// Retry has a delayed job run now, and one that is dead or canceled again.
func ExampleQueue_Retry() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.In(time.Hour)))
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	check(q.Retry(ctx, job.ID()))
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	// Output:
	// delayed
	// waiting
}

// Who reads jobs from a log with offsets makes each call under its offset. A call that is made again, here after a crash
// before the offset was noted, adds nothing.
func ExampleQueue_EnqueueNumbered() {
	q, end := openQueue()
	defer end()

	mail := SendMail.With(Mail{To: "ann"}, queue.ID("order:7"))
	for range 2 {
		outcomes := sure(q.EnqueueNumbered(ctx, "orders", 7, mail))
		fmt.Println(outcomes[0].ID, outcomes[0].Err, sure(q.Stats(ctx)).Waiting)
	}
	// Output:
	// order:7 <nil> 1
	// order:7 <nil> 1
}

// A call that comes late is refused, and the error says which call was the last.
func ExamplePastError() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueNumbered(ctx, "orders", 8, SendMail.With(Mail{To: "bob"}, queue.ID("order:8"))))
	_, err := q.EnqueueNumbered(ctx, "orders", 7, SendMail.With(Mail{To: "ann"}, queue.ID("order:7")))
	var past *queue.PastError
	if errors.As(err, &past) {
		fmt.Println(past.Sequence, past.Number, "after", past.Last)
	}
	// Output: orders 7 after 8
}

// The error names the queue and the sequence.
func ExamplePastError_Error() {
	err := &queue.PastError{Queue: "app", Sequence: "orders", Number: 7, Last: 8}
	fmt.Println(err)
	// Output: enqueue on "app": call 7 of sequence "orders" comes after call 8, or is another one: nothing was enqueued
}

// The library is installed once, for programs in other languages.
func ExampleQueue_InstallFunctions() {
	q, end := openQueue()
	defer end()

	before := sure(q.InstallFunctions(ctx))
	fmt.Println("version before:", before[0].Version)
	before = sure(q.InstallFunctions(ctx)) // it is there already
	fmt.Println("the same version:", before[0].Version == queue.FunctionsVersion)
	// Output:
	// version before: 0
	// the same version: true
}

// Functions says what the server, in a Cluster each primary, has of the library.
func ExampleQueue_Functions() {
	q, end := openQueue()
	defer end()

	sure(q.InstallFunctions(ctx))
	for _, server := range sure(q.Functions(ctx)) {
		fmt.Println(server.Version == queue.FunctionsVersion, len(server.List) > 0)
	}
	// Output: true true
}

// DeleteFunctions removes the library. Queues of this package go on without it.
func ExampleQueue_DeleteFunctions() {
	q, end := openQueue()
	defer end()

	sure(q.InstallFunctions(ctx))
	was := sure(q.DeleteFunctions(ctx))
	fmt.Println(was[0].Version == queue.FunctionsVersion, sure(q.Functions(ctx))[0].Version)
	// Output: true 0
}

// The states of a job are told by Look, and may be filtered by.
func ExampleState() {
	q, end := openQueue()
	defer end()

	first := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}, queue.In(time.Hour)))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "eve"}, queue.After(queue.CancelIt, first.ID())))
	for _, state := range []queue.State{queue.Pending, queue.Delayed, queue.Held, queue.Dead} {
		fmt.Println(state, sure(q.Count(ctx, queue.Filter{State: state})))
	}
	// Output:
	// waiting 1
	// delayed 1
	// held 1
	// dead 0
}

// With Waiting a job is the only one until it has begun; with Alive until it has ended.
func ExampleStates() {
	q, end := openQueue()
	defer end()

	again := make(chan queue.Enqueued[queue.None], 1)
	refresh := queue.Define[queue.None, queue.None]("refresh", queue.Unique("all", queue.Waiting))
	w := q.Worker("w", queue.Slots(1))
	refresh.Handle(w, func(ctx context.Context, j *queue.Job[queue.None]) (queue.None, error) {
		if len(again) == 0 { // something has changed since it began, so it is to run once more
			again <- sure(refresh.Enqueue(ctx, q, queue.None{}))
		}
		return queue.None{}, nil
	})
	sure(refresh.Enqueue(ctx, q, queue.None{}))
	fmt.Println(sure(refresh.Enqueue(ctx, q, queue.None{})).Duplicate())
	workAll(q, w)
	fmt.Println((<-again).Duplicate())
	// Output:
	// true
	// false
}

// Stats are cheap: a dashboard may ask every second.
func ExampleStats() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"}, queue.In(time.Hour))))
	stats := sure(q.Stats(ctx))
	fmt.Println(stats.Waiting, stats.Running, stats.Later, stats.Kept)
	for _, kind := range stats.Kinds {
		fmt.Println(kind.Kind, kind.Enqueued, !kind.Oldest.After(stats.Now))
	}
	// Output:
	// 1 0 1 0
	// mail.send 2 true
}

// Settings are what somebody has set, for the whole queue and for its scopes.
func ExampleSettings() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Step(time.Hour), queue.Crashes(1), queue.Placement(queue.LeastBusy), queue.Limit(queue.EachKey, 2)))
	settings := sure(q.Settings(ctx))
	fmt.Println(settings.Step, settings.Crashes, settings.Placement)
	for _, s := range settings.Scopes {
		fmt.Println(s.Scope, *s.Limit)
	}
	// Output:
	// 1h0m0s 1 least
	// each key 2
}

// A schedule says when it ticks next, and what it makes.
func ExampleScheduled() {
	q, end := openQueue()
	defer end()

	check(q.Schedule(ctx, "sweep", queue.Every(10*time.Minute), queue.Skip, SendMail.With(Mail{To: "all"})))
	s := sure(q.Schedules(ctx))[0]
	fmt.Println(s.Name, s.Kind, s.Timing.Spec, s.Missed, s.Next.UTC().Minute()%10)
	// Output: sweep mail.send @every 10m0s skip 0
}

// Schedules are listed with the next one to tick in front.
func ExampleQueue_Schedules() {
	q, end := openQueue()
	defer end()

	check(q.Schedule(ctx, "report", queue.Cron("@yearly", ""), queue.RunLast, SendMail.With(Mail{To: "boss"})))
	check(q.Schedule(ctx, "sweep", queue.Every(time.Hour), queue.Skip, SendMail.With(Mail{To: "all"})))
	schedules := sure(q.Schedules(ctx))
	fmt.Println(len(schedules), !schedules[0].Next.After(schedules[1].Next))
	// Output: 2 true
}

// A timing is what Cron or Every returns.
func ExampleTiming() {
	for _, timing := range []queue.Timing{queue.Cron("@daily", "Europe/Berlin"), queue.Every(90 * time.Second)} {
		fmt.Println(timing.Spec, timing.Zone)
	}
	// Output:
	// @daily Europe/Berlin
	// @every 1m30s
}

// On workdays at nine in Berlin, in summer and in winter.
func ExampleCron() {
	q, end := openQueue()
	defer end()

	check(q.Schedule(ctx, "digest", queue.Cron("0 9 * * mon-fri", "Europe/Berlin"), queue.RunLast, SendMail.With(Mail{To: "all"})))
	berlin := sure(time.LoadLocation("Europe/Berlin"))
	fmt.Println(sure(q.Schedules(ctx))[0].Next.In(berlin).Format("15:04"))
	// Output: 09:00
}

// At the full five minutes, whoever set it and when.
func ExampleEvery() {
	q, end := openQueue()
	defer end()

	check(q.Schedule(ctx, "sweep", queue.Every(5*time.Minute), queue.Skip, SendMail.With(Mail{To: "all"})))
	next := sure(q.Schedules(ctx))[0].Next
	fmt.Println(next.Equal(next.Truncate(5 * time.Minute)))
	// Output: true
}

// A process has its own observer hear of its producers and of all of its workers.
func ExampleObserver() {
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()
	q := sure(box.Queue("app", queue.Observer(func(e queue.Event) {
		if e.What == queue.Added || e.What == queue.Ended {
			fmt.Println(e.Kind, e.What, e.Verb)
		}
	})))
	defer func() { check(q.Close()) }()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer")
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil })
	workAll(q, w)
	// Output:
	// mail.send added new
	// mail.send ended done
}

// Wrap is around every handler of every worker of the process; what a worker uses is inside.
func ExampleWrap() {
	named := func(name string) queue.Middleware {
		return func(next queue.Runner) queue.Runner {
			return func(ctx context.Context, t *queue.Task) ([]byte, error) {
				fmt.Println(name)
				return next(ctx, t)
			}
		}
	}
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()
	q := sure(box.Queue("app", queue.Wrap(named("of the process"))))
	defer func() { check(q.Close()) }()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer", queue.Use(named("of the worker")))
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil })
	workAll(q, w)
	// Output:
	// of the process
	// of the worker
}

// A runner may look at what comes of a job, and change it: here what a kind of error means for all kinds.
func ExampleRunner() {
	errGone := errors.New("the account is gone")
	noUse := func(next queue.Runner) queue.Runner {
		return func(ctx context.Context, t *queue.Task) ([]byte, error) {
			result, err := next(ctx, t)
			if errors.Is(err, errGone) {
				err = queue.Fail(err) // to try again is no use
			}
			return result, err
		}
	}
	q, end := openQueue()
	defer end()
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer", queue.Use(noUse))
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, errGone })
	workAll(q, w)
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	// Output: dead
}

// A task is what middleware sees of a job, whatever the types of its kind.
func ExampleTask() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42")))
	w := q.Worker("mailer", queue.Use(func(next queue.Runner) queue.Runner {
		return func(ctx context.Context, t *queue.Task) ([]byte, error) {
			fmt.Printf("%s of %s, attempt %d of %d: %s\n", t.Kind, t.Key, t.Attempt, t.Attempts, t.Args)
			return next(ctx, t)
		}
	}))
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil })
	workAll(q, w)
	// Output: mail.send of tenant:42, attempt 1 of 5: {"To":"ann","Text":""}
}
