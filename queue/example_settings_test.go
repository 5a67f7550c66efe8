package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// Examples of what an operator decides while the queue runs, and of what a process says when it opens a queue.

// Changes are values: several of them are made at once.
func ExampleChange() {
	q, end := openQueue()
	defer end()

	atNight := []queue.Change{queue.NoLimit(queue.OfKind("report")), queue.Pause(queue.OfKind("newsletter"))}
	check(q.Configure(ctx, atNight...))
	fmt.Println(sure(q.Settings(ctx)).Scopes[0].Scope)
	// Output: kind newsletter
}

// A job over which workers die is dead after so many.
func ExampleCrashes() {
	q, end := openQueue()
	defer end()

	fmt.Println(sure(q.Settings(ctx)).Crashes)
	check(q.Configure(ctx, queue.Crashes(5)))
	fmt.Println(sure(q.Settings(ctx)).Crashes)
	// Output:
	// 3
	// 5
}

// However many workers there are, no more run at once.
func ExampleLimit() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Limit(queue.OfKind("mail.send"), 1)))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	bob := sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}))
	w := q.Worker("w", queue.Slots(20))
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		if j.Args.To == "ann" {
			fmt.Println(sure(q.Why(ctx, bob.ID())))
		}
		return Receipt{}, nil
	})
	workAll(q, w)
	// Output: the limit of kind mail.send is used up: 1 of 1 run
}

// Without its limit the job waits for nothing but a worker.
func ExampleNoLimit() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Limit(queue.WholeQueue, 0)))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Why(ctx, job.ID())))
	check(q.Configure(ctx, queue.NoLimit(queue.WholeQueue)))
	fmt.Println(sure(q.Why(ctx, job.ID())))
	// Output:
	// the limit of the queue is used up: 0 of 0 run
	// no worker is online
}

// Once ann's mail has begun, bob's would wait for an hour.
func ExampleNoRate() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Rate(queue.WholeQueue, time.Hour, 1)))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	bob := sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("to", j.Args.To)
		if j.Args.To == "ann" {
			fmt.Println("bob's waits:", sure(q.Why(ctx, bob.ID())).Reason)
			check(q.Configure(ctx, queue.NoRate(queue.WholeQueue)))
		}
		return Receipt{}, nil
	})
	workAll(q, w)
	// Output:
	// to ann
	// bob's waits: rate
	// to bob
}

// Nothing of a kind begins while it is paused; what runs goes on.
func ExamplePause() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Pause(queue.OfKind("mail.send"))))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Why(ctx, job.ID())))
	// Output: kind mail.send is paused
}

// Of several idle workers, the one is chosen that has had nothing to do for longest.
func ExamplePlacement() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Placement(queue.LongestIdle)))
	fmt.Println(sure(q.Settings(ctx)).Placement == queue.LongestIdle)
	// Output: true
}

// Any other word is refused.
func ExampleOrder() {
	q, end := openQueue()
	defer end()

	for _, order := range []queue.Order{queue.LongestIdle, queue.LeastBusy, queue.AnyWorker, "fastest"} {
		fmt.Println(q.Configure(ctx, queue.Placement(order)))
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// configure "app": invalid argument: there is no placement "fastest": it is LongestIdle, LeastBusy or AnyWorker
}

// Five calls may start at once, and then one each 100ms.
func ExampleRate() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Rate(queue.OfKey("api.example.org"), 100*time.Millisecond, 5)))
	rate := sure(q.Settings(ctx)).Scopes[0]
	fmt.Println(rate.Scope, rate.Every, rate.Burst)
	// Output: key api.example.org 100ms 5
}

// What was paused goes on where it was.
func ExampleResume() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Pause(queue.WholeQueue)))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Why(ctx, job.ID())))
	check(q.Configure(ctx, queue.Resume(queue.WholeQueue)))
	fmt.Println(sure(q.Why(ctx, job.ID())))
	// Output:
	// the queue is paused
	// no worker is online
}

// With a step of 0 a priority is worth nothing: first in, first out.
func ExampleStep() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Step(0)))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	sure(SendMail.Enqueue(ctx, q, Mail{To: "bob"}, queue.Priority(60)))
	w := q.Worker("w", queue.Slots(1))
	SendMail.Handle(w, printTo)
	workAll(q, w)
	// Output:
	// to ann
	// to bob
}

// A tenant with many jobs does not keep others waiting.
func ExampleTurns() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Turns(true)))
	for _, to := range []string{"ann 1", "ann 2", "ann 3"} {
		sure(SendMail.Enqueue(ctx, q, Mail{To: to}, queue.Key("ann")))
	}
	sure(SendMail.Enqueue(ctx, q, Mail{To: "bob 1"}, queue.Key("bob")))
	w := q.Worker("w", queue.Slots(1))
	SendMail.Handle(w, printTo)
	workAll(q, w)
	// Output:
	// to ann 1
	// to bob 1
	// to ann 2
	// to ann 3
}

// Limit and rate are taken away together.
func ExampleUnlimited() {
	q, end := openQueue()
	defer end()

	tenant := queue.OfKey("tenant:42")
	check(q.Configure(ctx, queue.Limit(tenant, 2), queue.Rate(tenant, time.Second, 1)))
	check(q.Configure(ctx, queue.Unlimited(tenant)))
	fmt.Println(len(sure(q.Settings(ctx)).Scopes))
	// Output: 0
}

// A scope is a value that may be compared, and is told to people by its String.
func ExampleScope() {
	for _, of := range []queue.Scope{queue.WholeQueue, queue.EachKey, queue.OfKind("mail.send"), queue.OfKey("tenant:42")} {
		fmt.Println(of, of == queue.WholeQueue)
	}
	// Output:
	// queue true
	// each key false
	// kind mail.send false
	// key tenant:42 false
}

func ExampleScope_String() {
	fmt.Println("what is paused: " + queue.OfKind("mail.send").String())
	// Output: what is paused: kind mail.send
}

// So a scope is readable in JSON, too.
func ExampleScope_MarshalText() {
	text := sure(json.Marshal(queue.ScopeSetting{Scope: queue.OfKey("tenant:42"), Paused: true}))
	fmt.Println(string(text))
	// Output: {"scope":"key tenant:42","paused":true}
}

// One tenant's jobs wait, the others' do not.
func ExampleOfKey() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Pause(queue.OfKey("tenant:42"))))
	for _, key := range []string{"tenant:42", "tenant:43"} {
		job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key(key)))
		fmt.Println(key, sure(q.Why(ctx, job.ID())).Reason)
	}
	// Output:
	// tenant:42 paused
	// tenant:43 no worker
}

// One kind's jobs are limited, whatever their keys.
func ExampleOfKind() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Limit(queue.OfKind(SendMail.Name()), 0)))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42")))
	fmt.Println(sure(q.Why(ctx, job.ID())).Scope == queue.OfKind("mail.send"))
	// Output: true
}

// What is not set for a scope is nil or 0.
func ExampleScopeSetting() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Limit(queue.EachKey, 2), queue.Rate(queue.WholeQueue, time.Second, 10)))
	for _, s := range sure(q.Settings(ctx)).Scopes {
		if s.Limit != nil {
			fmt.Println(s.Scope, "limit", *s.Limit)
		}
		if s.Every > 0 {
			fmt.Println(s.Scope, "one each", s.Every)
		}
	}
	// Output:
	// queue one each 1s
	// each key limit 2
}

// Settings are given to Open or New, and hold for what this process does with the queue.
func ExampleSetting() {
	settings := []queue.Setting{queue.Lease(5 * time.Second)}
	settings = append(settings, queue.Observer(func(e queue.Event) { fmt.Println(e.What, e.Kind) }))
	q, end := openQueue(settings...) // with a server: queue.Open(ctx, "redis://localhost:6379", "app", settings...)
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	// Output: added mail.send
}
