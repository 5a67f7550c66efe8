package queue_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
)

// Examples for whoever operates a queue, and of what workers can do besides.

// One that waits ends at once; one that runs has its context ended, with the cause.
func ExampleQueue_Cancel() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	check(q.Cancel(ctx, "the order was withdrawn", job.ID()))
	_, err := job.Wait(ctx)
	fmt.Println(errors.Is(err, queue.ErrCanceled), sure(q.Look(ctx, job.ID())).Error)

	check(q.Retry(ctx, job.ID()))
	fmt.Println(sure(q.Look(ctx, job.ID())).State)

	check(q.Delete(ctx, job.ID()))
	_, err = q.Look(ctx, job.ID())
	fmt.Println(errors.Is(err, queue.ErrUnknownJob))
	// Output:
	// true the order was withdrawn
	// waiting
	// true
}

// What is done to many is counted beforehand, and tells how far it is.
func ExampleQueue_CancelAll() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.Key("a")), SendMail.With(Mail{To: "bob"}, queue.Key("b"))))
	ofAnn := queue.Filter{Key: "a"}
	fmt.Println(sure(q.Count(ctx, ofAnn)), "to cancel")
	sure(q.CancelAll(ctx, "tenant a is gone", ofAnn, func(n int) { fmt.Println(n, "canceled") }))
	fmt.Println(sure(q.DeleteAll(ctx, queue.Filter{State: queue.Canceled})), "deleted")
	// Output:
	// 1 to cancel
	// 1 canceled
	// 1 deleted
}

// What is set holds for all processes until it is changed again.
func ExampleQueue_Settings() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Turns(true), queue.Crashes(5), queue.Pause(queue.OfKind("report")),
		queue.Limit(queue.OfKey("tenant:42"), 2), queue.Rate(queue.WholeQueue, time.Second, 1)))
	check(q.Configure(ctx, queue.Unlimited(queue.OfKey("tenant:42")), queue.NoRate(queue.WholeQueue), queue.NoLimit(queue.EachKey)))
	settings := sure(q.Settings(ctx))
	fmt.Println(settings.Turns, settings.Crashes)
	for _, s := range settings.Scopes {
		fmt.Println(s.Scope.String(), s.Paused)
	}
	check(q.Configure(ctx, queue.Resume(queue.OfKind("report"))))
	fmt.Println(len(sure(q.Settings(ctx)).Scopes))
	// Output:
	// true 5
	// kind report true
	// 0
}

// Workers may be seen, sent away, and drained from elsewhere: they finish what they run, and end.
func ExampleQueue_Drain() {
	q, end := openQueue()
	defer end()

	online := make(chan struct{})
	w := q.Worker("mailer", queue.Slots(5), queue.DrainTimeout(time.Minute), queue.Observe(func(e queue.Event) {
		if e.What == queue.Draining {
			fmt.Println(e.Worker, "drains")
		}
	}))
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) {
		close(online)
		return Receipt{}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	<-online
	sure(job.Wait(ctx))

	check(w.Away(ctx)) // takes nothing new for now
	check(w.Online(ctx))
	for _, seen := range sure(q.Workers(ctx)) {
		fmt.Println(seen.Name, seen.Capacities["slot"].Limit)
		check(q.Drain(ctx, seen.ID))
	}
	check(<-ended)
	fmt.Println(len(sure(q.Workers(ctx))))
	// Output:
	// mailer 5
	// mailer drains
	// 0
}

// Stats counts in one call, whatever the backlog.
func ExampleQueue_Stats() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"}, queue.In(time.Hour))))
	stats := sure(q.Stats(ctx))
	fmt.Println(stats.Waiting, "waiting,", stats.Later, "later,", stats.Kinds[0].Kind, stats.Kinds[0].Enqueued)
	// Output: 1 waiting, 1 later, mail.send 2
}

// Check looks for what no call leaves behind, and mends it if it is told to.
func ExampleQueue_Check() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Check(ctx, true)))
	// Output: []
}

// gobCodec is a codec for kinds whose arguments and results need not be read by people.
type gobCodec struct{}

func (gobCodec) Name() string { return "gob" }

func (gobCodec) Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(value)
	return out.Bytes(), err
}

func (gobCodec) Decode(data []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(into)
}

// A kind may have a codec other than JSON, on both sides.
func ExampleEncoding() {
	q, end := openQueue()
	defer end()

	render := queue.Define[Mail, Receipt]("render", queue.Encoding(gobCodec{}))
	job := sure(render.Enqueue(ctx, q, Mail{To: "ann"}))
	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.Codec, sure(render.Arguments(info)).To)
	// Output: gob ann
}

// Snooze puts a job off, and counts no attempt: it was not its time yet.
func ExampleSnooze() {
	q, end := openQueue()
	defer end()

	var calls atomic.Int32
	poll := queue.Define[string, queue.None]("poll", queue.Retain(time.Hour), queue.Timeout(time.Minute),
		queue.Backoff(func(attempt int) time.Duration { return time.Duration(attempt) * time.Second }))
	job := sure(poll.Enqueue(ctx, q, "the print shop"))
	w := q.Worker("w")
	poll.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		if calls.Add(1) < 3 {
			return queue.None{}, queue.Snooze(time.Millisecond)
		}
		fmt.Println("ready, attempt", j.Attempt)
		return queue.None{}, nil
	})
	workAll(q, w)
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	// Output:
	// ready, attempt 1
	// done
}

// A job may wait for the first of several others.
func ExampleAfterAny() {
	q, end := openQueue()
	defer end()

	ask := queue.Define[string, queue.None]("ask")
	ann := sure(ask.Enqueue(ctx, q, "ann"))
	bob := sure(ask.Enqueue(ctx, q, "bob", queue.In(time.Hour)))
	order := sure(ask.Enqueue(ctx, q, "order from who answers first", queue.AfterAny(queue.CancelIt, ann.ID(), bob.ID())))
	fmt.Println(sure(q.Why(ctx, order.ID())))
	// Output: it waits for 2 other jobs to end
}

// A schedule ends when it is told to. The jobs that it has made stay.
func ExampleQueue_Unschedule() {
	q, end := openQueue()
	defer end()

	check(q.Schedule(ctx, "sweep", queue.Every(10*time.Minute), queue.Skip, SendMail.With(Mail{To: "all"})))
	check(q.Unschedule(ctx, "sweep"))
	fmt.Println(len(sure(q.Schedules(ctx))))
	// Output: 0
}

// A worker that dies is replaced when its lease is over. A shorter one makes more heartbeats.
func ExampleLease() {
	box := sure(embedded.Open(""))
	defer func() { check(box.Close()) }()
	q := sure(box.Queue("app", queue.Lease(5*time.Second)))
	fmt.Println(q.Name())
	check(q.Close())
	// Output: app
}
