package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/queue"
)

// Examples of what may be seen of a queue: its jobs, why they wait, its events, and what a server has of it.

// An agent takes one call and three chats at once: a second call waits, a chat does not.
func ExampleCapacity() {
	q, end := openQueue()
	defer end()

	talk := queue.Define[string, queue.None]("talk")
	sure(talk.Enqueue(ctx, q, "ann", queue.Cost("call", 1)))
	second := sure(talk.Enqueue(ctx, q, "bob", queue.Cost("call", 1)))
	w := q.Worker("agent-7", queue.With(queue.Capacity{"call": 1, "chat": 3}))
	talk.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		if j.Args == "ann" {
			fmt.Println(sure(q.Why(ctx, second.ID())))
		}
		return queue.None{}, nil
	})
	workAll(q, w)
	// Output: the one worker that could run it is busy: 1 of 1 call used
}

// What a worker has in use is seen by everybody.
func ExampleOccupied() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Cost("connection", 2)))
	w := q.Worker("w", queue.With(queue.Capacity{"connection": 5}))
	SendMail.Handle(w, func(context.Context, *queue.Job[Mail]) (Receipt, error) {
		connections := sure(q.Workers(ctx))[0].Capacities["connection"]
		fmt.Println(connections.Used, "of", connections.Limit)
		return Receipt{}, nil
	})
	workAll(q, w)
	// Output: 2 of 5
}

// An observer is told of everything, and picks what it wants to know.
func ExampleEvent() {
	q, end := openQueue(queue.Observer(func(e queue.Event) {
		if e.What == queue.Ended && e.Err != nil {
			fmt.Println(e.Worker, e.Kind, e.Key, e.Verb, e.Err)
		}
	}))
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "nobody"}, queue.Key("tenant:42")))
	w := q.Worker("mailer")
	SendMail.Handle(w, bounce)
	workAll(q, w)
	// Output: mailer mail.send tenant:42 dead no such mailbox
}

// The life of a job, as its process sees it.
func ExampleHappening() {
	q, end := openQueue(queue.Observer(func(e queue.Event) {
		switch e.What {
		case queue.Added, queue.Started, queue.Ended:
			fmt.Println(e.What, e.Kind)
		}
	}))
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("mailer")
	SendMail.Handle(w, printTo)
	workAll(q, w)
	// Output:
	// added mail.send
	// started mail.send
	// to ann
	// ended mail.send
}

// Programs read the fields, people the sentence.
func ExampleExplanation() {
	q, end := openQueue()
	defer end()

	check(q.Configure(ctx, queue.Limit(queue.OfKey("tenant:42"), 0)))
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42")))
	why := sure(q.Why(ctx, job.ID()))
	fmt.Println(why.Reason == queue.Limited, why.Scope, why.Used, why.Most)
	// Output: true key tenant:42 0 0
}

func ExampleExplanation_String() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println("It does not run: " + sure(q.Why(ctx, job.ID())).String() + ".")
	// Output: It does not run: no worker is online.
}

// What to do about it depends on the reason.
func ExampleReason() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	switch sure(q.Why(ctx, job.ID())).Reason {
	case queue.Nobody:
		fmt.Println("start a worker")
	case queue.Busy, queue.Limited:
		fmt.Println("there is more to do than may run")
	}
	// Output: start a worker
}

// A filter says what has to hold; an empty field says nothing.
func ExampleFilter() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}, queue.Key("a")), SendMail.With(Mail{To: "bob"}, queue.Key("b"))))
	for _, f := range []queue.Filter{{}, {State: queue.Pending, Key: "a"}, {State: queue.Dead}} {
		fmt.Println(sure(q.Count(ctx, f)))
	}
	// Output:
	// 2
	// 1
	// 0
}

// A job, for who wants to know all of it.
func ExampleJobInfo() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}, queue.Key("tenant:42")))
	w := q.Worker("w")
	SendMail.Handle(w, printTo)
	workAll(q, w)
	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.Kind, info.Key, info.State, info.Attempts, string(info.Arguments), string(info.Result))
	// Output:
	// to ann
	// mail.send tenant:42 done 0 {"To":"ann","Text":"hello"} {"Bytes":5}
}

// Each kind has counts of its own.
func ExampleKindStats() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"})))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		if j.Args.To == "bob" {
			return Receipt{}, queue.Fail(errors.New("no such mailbox"))
		}
		return Receipt{}, nil
	})
	workAll(q, w)
	for _, k := range sure(q.Stats(ctx)).Kinds {
		fmt.Println(k.Kind, k.Enqueued, "enqueued,", k.Done, "done,", k.Dead, "dead")
	}
	// Output: mail.send 2 enqueued, 1 done, 1 dead
}

// Somebody has deleted a key of the queue from the server: the job is known, but would never run.
func ExampleFinding() {
	box := sure(embedded.Open(""))
	q := sure(box.Queue("app"))
	defer func() { check(errors.Join(q.Close(), box.Close())) }()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.ID("welcome:ann")))
	sure(box.Engine().Do(ctx, "DEL", "signalbox:queue:{app}:waiting"))
	for _, f := range sure(q.Check(ctx, true)) { // and mends what it finds
		fmt.Println(f.What+":", f.Where)
	}
	fmt.Println(sure(q.Stats(ctx)).Waiting, "waiting")
	// Output:
	// job in no place: welcome:ann
	// 1 waiting
}

// A queue that is well has no findings.
func ExampleFindings() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	findings := sure(q.Check(ctx, false))
	fmt.Println(len(findings))
	// Output: 0
}

// The library makes the calls of a queue available to other languages.
func ExampleFunction() {
	q, end := openQueue()
	defer end()

	sure(q.InstallFunctions(ctx))
	for _, f := range sure(q.Functions(ctx))[0].List {
		if strings.HasSuffix(f.Name, "enqueue") {
			fmt.Println(f.Name+":", f.Description)
		}
	}
	// Output: signalbox_queue_enqueue: takes jobs in, at most 500
}

// Of a Cluster there is one for each primary.
func ExampleFunctions() {
	q, end := openQueue()
	defer end()

	for _, server := range sure(q.InstallFunctions(ctx)) {
		fmt.Println("before:", server.Version)
	}
	for _, server := range sure(q.Functions(ctx)) {
		fmt.Println("now:", server.Version == queue.FunctionsVersion)
	}
	// Output:
	// before: 0
	// now: true
}

// Who may not install it from here gives the source to FUNCTION LOAD.
func ExampleFunctionsSource() {
	name, _, _ := strings.Cut(queue.FunctionsSource(), "\n")
	fmt.Println(name)
	// Output: #!lua name=signalbox_queue
}
