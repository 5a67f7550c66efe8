package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// Examples of how a job is to run: an option given to Define holds for all jobs of a kind, one given to Enqueue or With for
// one.

// Options are values, so that jobs which are alike can share a list of them.
func ExampleOption() {
	q, end := openQueue()
	defer end()

	ofTenant := []queue.Option{queue.Key("tenant:42"), queue.Priority(3), queue.Require("eu")}
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, ofTenant...))
	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.Key, info.Tags)
	// Output: tenant:42 [eu]
}

// A job may wait for a time of the server's clock.
func ExampleAt() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.At(time.Now().AddDate(0, 0, 7))))
	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.State, info.Due.After(info.Enqueued))
	// Output: delayed true
}

// A job that fails waits for longer each time. Backoff stands with the kind: it is the worker that asks it.
func ExampleBackoff() {
	q, end := openQueue()
	defer end()

	fetch := queue.Define[string, queue.None]("fetch", queue.MaxAttempts(3), queue.Backoff(func(attempt int) time.Duration {
		fmt.Println("attempt", attempt, "has failed")
		return time.Duration(attempt) * 10 * time.Millisecond
	}))
	sure(fetch.Enqueue(ctx, q, "https://example.org"))
	w := q.Worker("w")
	fetch.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
		return queue.None{}, errors.New("no answer")
	})
	workAll(q, w)
	fmt.Println(sure(q.Count(ctx, queue.Filter{State: queue.Dead})), "dead")
	// Output:
	// attempt 1 has failed
	// attempt 2 has failed
	// 1 dead
}

// A job may cost of several capacities. It runs where there is room in all of them.
func ExampleCost() {
	q, end := openQueue()
	defer end()

	render := queue.Define[string, queue.None]("render", queue.Cost("gpu", 1), queue.Cost("memory_gb", 8))
	film := sure(render.Enqueue(ctx, q, "film", queue.Cost("memory_gb", 64))) // more than others of its kind
	fmt.Println(sure(q.Look(ctx, film.ID())).Cost)
	// Output: map[gpu:1 memory_gb:64]
}

// For an hour, only workers of that name may have the job.
func ExampleFor() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.For("anna", time.Now().Add(time.Hour))))
	why := sure(q.Why(ctx, job.ID()))
	fmt.Println(why.Reason, "for", why.Job.For)
	// Output: reserved for anna
}

// ForWithin counts from when the job is enqueued, so it may stand with the kind.
func ExampleForWithin() {
	q, end := openQueue()
	defer end()

	callBack := queue.Define[string, queue.None]("callback", queue.ForWithin("anna", time.Hour))
	job := sure(callBack.Enqueue(ctx, q, "ben"))
	why := sure(q.Why(ctx, job.ID()))
	fmt.Println(why.Reason, "for", why.Job.For)
	// Output: reserved for anna
}

// With an id of one's own, a job may be enqueued again without harm.
func ExampleID() {
	q, end := openQueue()
	defer end()

	for range 2 {
		job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.ID("welcome:ann")))
		fmt.Println(job.ID(), job.Duplicate())
	}
	// Output:
	// welcome:ann false
	// welcome:ann true
}

// A delay counts from when the job is enqueued.
func ExampleIn() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.In(time.Hour)))
	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.State, info.Due.Sub(info.Enqueued))
	// Output: delayed 1h0m0s
}

// Limits hold for each key, and jobs may be found by theirs.
func ExampleKey() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42")))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}, queue.Key("tenant:43")))
	fmt.Println(sure(q.Count(ctx, queue.Filter{Key: "tenant:42"})))
	// Output: 1
}

// A job that has failed as often as this is dead.
func ExampleMaxAttempts() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.MaxAttempts(2)))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("attempt", j.Attempt)
		return Receipt{}, queue.Retry(errors.New("mailbox full"), time.Millisecond)
	})
	workAll(q, w)
	fmt.Println(sure(q.Look(ctx, job.ID())).State)
	// Output:
	// attempt 1
	// attempt 2
	// dead
}

// What comes with a job is read by the queue that runs it, as if Propagate had injected it.
func ExampleMeta() {
	q, end := openQueue(queue.Propagate(nil, func(ctx context.Context, meta map[string]string) context.Context {
		return context.WithValue(ctx, tenant{}, meta["t"])
	}))
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Meta(map[string]string{"t": "tenant 42"})))
	w := q.Worker("w")
	SendMail.Handle(w, func(ctx context.Context, _ *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("for", ctx.Value(tenant{}))
		return Receipt{}, nil
	})
	workAll(q, w)
	// Output: for tenant 42
}

// A priority of 60 is worth an hour of waiting.
func ExamplePriority() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}, queue.Priority(60)))
	w := q.Worker("w", queue.Slots(1))
	SendMail.Handle(w, printTo)
	workAll(q, w)
	// Output:
	// to bob
	// to ann
}

// The worker has to have all of these tags.
func ExampleRequire() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Require("lang:de", "vip")))
	fmt.Println(sure(q.Look(ctx, job.ID())).Tags)

	w := q.Worker("anna", queue.Tags("lang:de", "lang:fr", "vip"))
	SendMail.Handle(w, printTo)
	workAll(q, w)
	// Output:
	// [lang:de vip]
	// to ann
}

// A kind without results keeps nothing of jobs that are done, unless it is told to.
func ExampleRetain() {
	q, end := openQueue()
	defer end()

	sweep := queue.Define[queue.None, queue.None]("sweep")
	gone := sure(sweep.Enqueue(ctx, q, queue.None{}))
	kept := sure(sweep.Enqueue(ctx, q, queue.None{}, queue.Retain(time.Hour)))
	w := q.Worker("w")
	sweep.Handle(w, func(context.Context, *queue.Job[queue.None]) (queue.None, error) { return queue.None{}, nil })
	workAll(q, w)

	_, err := q.Look(ctx, gone.ID())
	fmt.Println(errors.Is(err, queue.ErrUnknownJob))
	fmt.Println(sure(q.Look(ctx, kept.ID())).State)
	// Output:
	// true
	// done
}

// A handler that takes too long has its context ended. What it returns says what becomes of the job, as ever.
func ExampleTimeout() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Timeout(10*time.Millisecond)))
	w := q.Worker("w")
	SendMail.Handle(w, func(ctx context.Context, _ *queue.Job[Mail]) (Receipt, error) {
		<-ctx.Done() // whatever is called with ctx returns by then
		fmt.Println(context.Cause(ctx))
		return Receipt{}, queue.Fail(ctx.Err())
	})
	workAll(q, w)
	// Output: job timed out
}
