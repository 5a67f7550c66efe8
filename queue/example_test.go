package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
)

// The examples of this package run without a server, on the engine that embedded.Open brings along. With a server it is
// queue.Open(ctx, "redis://localhost:6379", "app") instead of openQueue; all else is the same.

var ctx = context.Background()

func sure[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// openQueue opens a queue on an engine of its own. What it returns besides closes both.
func openQueue(settings ...queue.Setting) (*queue.Queue, func()) {
	box := sure(embedded.Open(""))
	q := sure(box.Queue("app", settings...))
	return q, func() { check(errors.Join(q.Close(), box.Close())) }
}

// workAll has a worker run until all jobs have ended.
func workAll(q *queue.Queue, w *queue.Worker) {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	for {
		if s := sure(q.Stats(ctx)); s.Waiting+s.Running+s.Later == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	check(<-ended)
}

// Mail is what a job of kind mail.send is about, Receipt what comes of it.
type Mail struct{ To, Text string }

type Receipt struct{ Bytes int }

// Producers and workers share the kind.
var SendMail = queue.Define[Mail, Receipt]("mail.send", queue.MaxAttempts(5), queue.Timeout(time.Minute))

// A job is enqueued, run by a worker, and its result comes back.
func Example() {
	q, end := openQueue()
	defer end()

	w := q.Worker("mailer", queue.Slots(20))
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		return Receipt{Bytes: len(j.Args.Text)}, nil
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}))
	fmt.Println(sure(job.Wait(ctx)).Bytes, "bytes")

	stop() // it finishes what it runs
	check(<-ended)
	// Output: 5 bytes
}

// Options of Define hold for all jobs of the kind, those of Enqueue for one.
func ExampleDefine() {
	q, end := openQueue()
	defer end()

	report := queue.Define[string, queue.None]("report", queue.Cost("cpu", 4), queue.MaxAttempts(2))
	job := sure(report.Enqueue(ctx, q, "sales", queue.Key("tenant:42"), queue.Priority(3), queue.In(time.Hour)))

	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.Kind, info.Key, info.Cost, info.State, string(info.Arguments))
	// Output: report tenant:42 map[cpu:4] delayed "sales"
}

// Many jobs go in one call, and each has an outcome.
func ExampleQueue_EnqueueMany() {
	q, end := openQueue()
	defer end()

	outcomes := sure(q.EnqueueMany(ctx,
		SendMail.With(Mail{To: "ann"}),
		SendMail.With(Mail{To: "bob"}, queue.ID("welcome:bob")),
		SendMail.With(Mail{To: "bob"}, queue.ID("welcome:bob")),
		SendMail.With(Mail{To: "eve"}, queue.Priority(1<<30)),
	))
	for _, o := range outcomes {
		fmt.Println(o.Duplicate, o.Err)
	}
	// Output:
	// false <nil>
	// false <nil>
	// true <nil>
	// false enqueue "mail.send": invalid argument: priority 1073741824 is not between -1048576 and 1048576
}

// The error of a handler says what becomes of the job.
func ExampleKind_Handle() {
	q, end := openQueue()
	defer end()

	w := q.Worker("mailer", queue.Slots(1))
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("attempt", j.Attempt, "for", j.Args.To)
		switch {
		case !strings.Contains(j.Args.To, "@"):
			return Receipt{}, queue.Fail(errors.New("no such address")) // to try again is no use
		case j.Attempt == 1:
			return Receipt{}, queue.Retry(errors.New("greylisted"), time.Millisecond) // instead of the backoff
		}
		return Receipt{}, nil // any other error has it tried again, later and later
	})
	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "nobody"}), SendMail.With(Mail{To: "ann@example.org"})))
	workAll(q, w)
	for job, err := range q.Jobs(ctx, queue.Filter{State: queue.Dead}) {
		check(err)
		fmt.Println(job.Error)
	}
	// Output:
	// attempt 1 for nobody
	// attempt 1 for ann@example.org
	// attempt 2 for ann@example.org
	// no such address
}

// Several jobs in one go, with an outcome for each.
func ExampleKind_HandleBatch() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"}), SendMail.With(Mail{To: "eve"})))
	w := q.Worker("mailer", queue.Slots(100))
	SendMail.HandleBatch(w, 100, 50*time.Millisecond, func(_ context.Context, jobs []*queue.Job[Mail]) []queue.Outcome[Receipt] {
		fmt.Println(len(jobs), "jobs")
		outcomes := make([]queue.Outcome[Receipt], len(jobs))
		for i, j := range jobs {
			outcomes[i].Result.Bytes = len(j.Args.Text)
			if j.Args.To == "bob" {
				outcomes[i].Err = queue.Fail(errors.New("no such address"))
			}
		}
		return outcomes
	})
	workAll(q, w)
	fmt.Println(sure(q.Count(ctx, queue.Filter{State: queue.Done})), "done,", sure(q.Count(ctx, queue.Filter{State: queue.Dead})), "dead")
	// Output:
	// 3 jobs
	// 2 done, 1 dead
}

// What a handler says is seen while the job runs.
func ExampleJob_Progress() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		j.Logf("to %s", j.Args.To)
		j.Progress(50, "attachments")
		return Receipt{}, nil
	})
	workAll(q, w)

	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.Progress.Percent, info.Progress.What, info.Log[0].Text)
	// Output: 50 attachments to ann
}

// Whoever wants to see it as it comes watches the job until it has ended.
func ExampleQueue_Watch() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer")
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil })
	for info, err := range q.Watch(ctx, job.ID()) {
		check(err)
		fmt.Println(info.State)
		if info.State == queue.Pending {
			workAll(q, w)
		}
	}
	// Output:
	// waiting
	// done
}

// Limits hold for all processes, and may be changed while the queue runs.
func ExampleQueue_Configure() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx,
		queue.Limit(queue.EachKey, 2),
		queue.Limit(queue.OfKey("tenant:42"), 0),
		queue.Rate(queue.OfKind("mail.send"), 100*time.Millisecond, 5),
	))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42")))
	fmt.Println(sure(q.Why(ctx, job.ID())))
	// Output: the limit of key tenant:42 is used up: 0 of 0 run
}

// Any number of processes may set a schedule. A tick makes one job, and there is no scheduler to run.
func ExampleQueue_Schedule() {
	q, end := openQueue()
	defer end()

	for range 2 { // two processes
		check(q.Schedule(ctx, "digest", queue.Cron("0 9 * * 1-5", "Europe/Berlin"), queue.RunLast, SendMail.With(Mail{To: "all"})))
	}
	for _, s := range sure(q.Schedules(ctx)) {
		zone := sure(time.LoadLocation(s.Timing.Zone))
		fmt.Println(s.Name, s.Kind, s.Next.In(zone).Format("15:04"))
	}
	// Output: digest mail.send 09:00
}

// While there is a job with the same fingerprint, there is no second one.
func ExampleUnique() {
	q, end := openQueue()
	defer end()

	first := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Unique("welcome:ann", queue.Alive)))
	second := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Unique("welcome:ann", queue.Alive)))
	fmt.Println(second.Duplicate(), second.ID() == first.ID())
	// Output: true true
}

// A job may wait for others.
func ExampleAfter() {
	q, end := openQueue()
	defer end()

	w := q.Worker("w", queue.Slots(1))
	step := queue.Define[string, queue.None]("step")
	step.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		fmt.Println(j.Args)
		return queue.None{}, nil
	})
	flour := sure(step.Enqueue(ctx, q, "buy flour"))
	eggs := sure(step.Enqueue(ctx, q, "buy eggs"))
	sure(step.Enqueue(ctx, q, "bake", queue.After(queue.CancelIt, flour.ID(), eggs.ID()), queue.Priority(100)))
	workAll(q, w)
	// Output:
	// buy flour
	// buy eggs
	// bake
}

// Middleware wraps every handler of a worker.
func ExampleUse() {
	q, end := openQueue()
	defer end()

	logged := func(next queue.Runner) queue.Runner {
		return func(ctx context.Context, t *queue.Task) ([]byte, error) {
			result, err := next(ctx, t)
			fmt.Printf("%s %s: %s %v\n", t.Kind, t.Args, result, err)
			return result, err
		}
	}
	w := q.Worker("mailer", queue.Use(logged))
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) { return Receipt{}, nil })
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	workAll(q, w)
	// Output: mail.send {"To":"ann","Text":""}: {"Bytes":0} <nil>
}

// A worker declares what it can do at once; a job says what it costs and what its worker must have.
func ExampleWith() {
	q, end := openQueue()
	defer end()

	call := queue.Define[string, queue.None]("call", queue.Cost("call", 1))
	job := sure(call.Enqueue(ctx, q, "ann", queue.Require("lang:de")))
	agent := q.Worker("agent-7", queue.With(queue.Capacity{"call": 1, "chat": 3}), queue.Tags("lang:de", "vip"))
	call.Handle(agent, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		fmt.Println("a call with", j.Args)
		return queue.None{}, nil
	})
	fmt.Println(sure(q.Why(ctx, job.ID())))
	workAll(q, agent)
	// Output:
	// no worker is online
	// a call with ann
}

// Dead jobs are kept, to be looked at and run again.
func ExampleQueue_RetryAll() {
	q, end := openQueue()
	defer end()

	works := false
	worker := func() *queue.Worker {
		w := q.Worker("mailer")
		SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) {
			if !works {
				return Receipt{}, queue.Fail(errors.New("the template is broken"))
			}
			return Receipt{}, nil
		})
		return w
	}
	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"})))
	workAll(q, worker())
	works = true // a release later
	fmt.Println(sure(q.RetryAll(ctx, queue.Filter{State: queue.Dead, Error: "template"})), "run again")
	workAll(q, worker())
	fmt.Println(sure(q.Count(ctx, queue.Filter{State: queue.Dead})), "dead")
	// Output:
	// 2 run again
	// 0 dead
}
