package queue_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

// onlineAt returns the names of the workers that were online at some time.
func onlineAt(sink history.Sink, at time.Time) (names []string) {
	online := map[string]string{} // ID -> name
	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		if e.At.After(at) || e.Job != nil { // all events are read: that somebody has vanished may be noticed later
			continue
		}
		switch e.What {
		case queue.WorkerLoggedOut, queue.WorkerVanished:
			delete(online, e.Worker.ID)
		default:
			delete(online, e.Worker.ID)
			if e.Worker.State == queue.Online {
				online[e.Worker.ID] = e.Worker.Name
			}
		}
	}
	for _, name := range online {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A history says what happened to each job and each worker, and so who was online at 02:40.
func ExampleHistoryReader() {
	q, done := openQueue()
	defer done()
	folder := sure(os.MkdirTemp("", "history"))
	defer func() { check(os.RemoveAll(folder)) }()
	sink := sure(files.Open(folder))
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	answerCall := queue.Define[string, string]("call", queue.Cost("call", 1))
	anna := q.Worker("anna", queue.With(queue.Capacity{"call": 1, "chat": 3}))
	answerCall.Handle(anna, func(_ context.Context, j *queue.Job[string]) (string, error) { return "hello " + j.Args, nil })
	call := sure(answerCall.Enqueue(ctx, q, "Ben", queue.Retain(time.Hour)))
	ended := make(chan error, 1)
	go func() { ended <- anna.Run(ctx) }()
	sure(call.Wait(ctx))
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		switch {
		case e.Job == nil:
			fmt.Println(e.Worker.Name, e.What)
		case e.Worker != nil:
			fmt.Println(e.Job.Kind, e.What, "on", e.Worker.Name)
		default:
			fmt.Println(e.Job.Kind, e.What)
		}
	}
	later := time.Now().Add(time.Hour) // or whatever time is asked for, as 02:40
	fmt.Println("online:", onlineAt(sink, later))
	check(anna.Drain(ctx))
	check(<-ended)
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	fmt.Println("online:", onlineAt(sink, later))
	check(sink.Close())
	// Output:
	// call enqueued
	// anna logged in
	// call running on anna
	// call done on anna
	// online: [anna]
	// online: []
}
