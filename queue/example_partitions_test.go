package queue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/signalbox-io/signalbox/queue"
)

// Examples of a queue that is spread over the primaries of a Cluster. One server does for them too.

// openPartitions opens a queue of four partitions. What it returns besides closes them and their server.
func openPartitions() (queue.Partitions, func()) {
	url, end := serve()
	p := sure(queue.OpenPartitions(ctx, url, "app", 4))
	return p, func() {
		check(p.Close())
		end()
	}
}

// A partition is a queue like any other.
func ExamplePartitions() {
	p, end := openPartitions()
	defer end()

	sure(SendMail.Enqueue(ctx, p.Of("tenant:42"), Mail{To: "ann"}, queue.Key("tenant:42")))
	waiting := 0
	for _, q := range p {
		waiting += sure(q.Stats(ctx)).Waiting
	}
	fmt.Println(len(p), "partitions,", waiting, "waiting")
	// Output: 4 partitions, 1 waiting
}

// The address is that of a server or of a Cluster.
func ExampleOpenPartitions() {
	url, end := serve() // such as redis+cluster://node1:6379,node2:6379
	defer end()

	p := sure(queue.OpenPartitions(ctx, url, "app", 4))
	for _, q := range p {
		fmt.Println(q.Name())
	}
	check(p.Close())
	// Output:
	// app/0of4
	// app/1of4
	// app/2of4
	// app/3of4
}

// Close closes each of them.
func ExamplePartitions_Close() {
	url, end := serve()
	defer end()

	p := sure(queue.OpenPartitions(ctx, url, "app", 4))
	check(p.Close())
	_, err := p.Stats(ctx)
	fmt.Println(errors.Is(err, queue.ErrClosed))
	// Output: true
}

// What is set is set in every partition.
func ExamplePartitions_Configure() {
	p, end := openPartitions()
	defer end()

	check(p.Configure(ctx, queue.Limit(queue.EachKey, 2)))
	for _, q := range p {
		for _, s := range sure(q.Settings(ctx)).Scopes {
			fmt.Println(s.Scope, *s.Limit)
		}
	}
	// Output:
	// each key 2
	// each key 2
	// each key 2
	// each key 2
}

// Each job goes to the partition of its key, and the outcomes stand in the order of the requests.
func ExamplePartitions_EnqueueMany() {
	p, end := openPartitions()
	defer end()

	outcomes := sure(p.EnqueueMany(ctx,
		SendMail.With(Mail{To: "ann"}, queue.Key("a"), queue.ID("welcome:ann")),
		SendMail.With(Mail{To: "bob"}, queue.Key("b"), queue.ID("welcome:bob")),
	))
	fmt.Println(outcomes[0].ID, outcomes[1].ID)
	fmt.Println(sure(p.Of("b").Look(ctx, "welcome:bob")).Key)
	// Output:
	// welcome:ann welcome:bob
	// b
}

// A call that counts once, in all partitions together.
func ExamplePartitions_EnqueueNumbered() {
	p, end := openPartitions()
	defer end()

	for range 2 { // the second time after a crash
		sure(p.EnqueueNumbered(ctx, "orders", 7,
			SendMail.With(Mail{To: "ann"}, queue.Key("a"), queue.ID("order:7:ann")),
			SendMail.With(Mail{To: "bob"}, queue.Key("b"), queue.ID("order:7:bob")),
		))
	}
	fmt.Println(sure(p.Stats(ctx)).Waiting)
	// Output: 2
}

// Of is where all jobs of a key are: to look at them, and to wait for them.
func ExamplePartitions_Of() {
	p, end := openPartitions()
	defer end()

	q := p.Of("tenant:42")
	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42")))
	fmt.Println(p.Of("tenant:42") == q, sure(q.Look(ctx, job.ID())).State)
	// Output: true waiting
}

// Run has a worker of its own for each partition.
func ExamplePartitions_Run() {
	p, end := openPartitions()
	defer end()

	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(running, func(q *queue.Queue) *queue.Worker {
			w := q.Worker("mailer")
			SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
				return Receipt{Bytes: len(j.Args.Text)}, nil
			})
			return w
		})
	}()
	job := sure(SendMail.Enqueue(ctx, p.Of("a"), Mail{To: "ann", Text: "hello"}, queue.Key("a")))
	fmt.Println(sure(job.Wait(ctx)).Bytes, "bytes")
	stop()
	check(<-ended)
	// Output: 5 bytes
}

// Stats are the sums over all partitions.
func ExamplePartitions_Stats() {
	p, end := openPartitions()
	defer end()

	for _, key := range []string{"a", "b", "c"} {
		sure(SendMail.Enqueue(ctx, p.Of(key), Mail{To: key}, queue.Key(key)))
	}
	fmt.Println(sure(p.Stats(ctx)).Waiting)
	// Output: 3
}
