package queue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

// Examples of a queue's history: recording it, reading it, and making the queue again from it.

// openSink makes a folder for a history. What it returns besides removes it.
func openSink() (history.Sink, func()) {
	folder := sure(os.MkdirTemp("", "history"))
	sink := sure(files.Open(folder))
	return sink, func() { check(errors.Join(sink.Close(), os.RemoveAll(folder))) }
}

// lostQueue returns the history of a queue with two jobs whose server is gone, and a new one that is empty.
func lostQueue() (sink history.Sink, q *queue.Queue, end func()) {
	lost, loseIt := openQueue()
	sink, remove := openSink()
	sure(lost.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"}, queue.In(time.Hour))))
	check(lost.Record(ctx, sink, queue.UntilCaughtUp()))
	loseIt()
	q, closeIt := openQueue()
	return sink, q, func() {
		closeIt()
		remove()
	}
}

// Record runs in one process for as long as there is the queue, and copies each entry once.
func ExampleQueue_Record() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink() // such as files.Open("/var/lib/app/history")
	defer remove()

	recording, stop := context.WithCancel(ctx)
	copied, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		ended <- q.Record(recording, sink, queue.OnRecorded(func(id string, _ int) { copied <- id }))
	}()
	<-copied
	fmt.Println(sure(q.History(ctx)).On)
	stop()
	fmt.Println(<-ended, sure(sink.Queue(ctx)))
	// Output:
	// true
	// <nil> app
}

// Several options may be given.
func ExampleRecordOption() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	options := []queue.RecordOption{queue.SinkName("archive"), queue.HistoryKeep(5000), queue.UntilCaughtUp()}
	check(q.Record(ctx, sink, options...))
	fmt.Println(sure(q.History(ctx)).Keep)
	// Output: 5000
}

// A sink that stands still may not fill the server: what is older than this many entries is removed.
func ExampleHistoryKeep() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	check(q.Record(ctx, sink, queue.HistoryKeep(1_000_000), queue.UntilCaughtUp()))
	fmt.Println(sure(q.History(ctx)).Keep)
	// Output: 1000000
}

// How far the sink is can be told to whoever watches over it.
func ExampleOnRecorded() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	last := ""
	check(q.Record(ctx, sink, queue.OnRecorded(func(id string, _ int) { last = id }), queue.UntilCaughtUp()))
	fmt.Println(last == sure(sink.Position(ctx)))
	// Output: true
}

// A queue may have several sinks, here one for each data center.
func ExampleSinkName() {
	q, end := openQueue()
	defer end()

	for _, name := range []string{"north", "south"} {
		sink, remove := openSink()
		defer remove()
		check(q.Record(ctx, sink, queue.SinkName(name), queue.UntilCaughtUp()))
	}
	sinks := sure(q.History(ctx)).Sinks
	fmt.Println(len(sinks), sinks["north"] != "", sinks["south"] != "")
	// Output: 2 true true
}

// A program that runs now and then has the sink take what there is, and ends.
func ExampleUntilCaughtUp() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	fmt.Println(sure(q.History(ctx)).Sinks["sink"] == sure(sink.Position(ctx)))
	// Output: true
}

// History says which sinks there are, and how far each of them is.
func ExampleQueue_History() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	fmt.Println(sure(q.History(ctx)).On)
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	fmt.Println(sure(q.History(ctx)).On)
	// Output:
	// false
	// true
}

// The server keeps what some sink has not taken, and one entry more.
func ExampleHistoryInfo() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	info := sure(q.History(ctx))
	fmt.Println(info.Entries, "of at most", info.Keep)
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.History(ctx)).Entries > info.Entries)
	// Output:
	// 1 of at most 100000
	// true
}

// For a sink that is given up nothing has to be kept any more.
func ExampleQueue_ForgetSink() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	check(q.Record(ctx, sink, queue.SinkName("south"), queue.UntilCaughtUp()))
	check(q.ForgetSink(ctx, "south"))
	fmt.Println(len(sure(q.History(ctx)).Sinks))
	// Output: 0
}

// A history is kept until somebody ends it.
func ExampleQueue_EndHistory() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	check(q.EndHistory(ctx))
	fmt.Println(sure(q.History(ctx)).On)
	// Output: false
}

// A server has lost its data. An empty one gets the queue as the sink knows it.
func ExampleQueue_Rebuild() {
	sink, q, end := lostQueue()
	defer end()

	made := sure(q.Rebuild(ctx, sink))
	stats := sure(q.Stats(ctx))
	fmt.Println(made.Jobs, "jobs:", stats.Waiting, "waiting,", stats.Later, "later")
	check(q.Record(ctx, sink, queue.UntilCaughtUp())) // it goes on behind what the sink has
	// Output: 2 jobs: 1 waiting, 1 later
}

// Rebuilt says what was read, and what there is now.
func ExampleRebuilt() {
	sink, q, end := lostQueue()
	defer end()

	made := sure(q.Rebuild(ctx, sink))
	fmt.Println(made.Jobs, "jobs,", made.Again, "of them ran;", made.Entries > 0, made.Events >= made.Entries)
	// Output: 2 jobs, 0 of them ran; true true
}

// A queue as it was at some time, to look at: with Until and AsCopy.
func ExampleRebuildOption() {
	sink, q, end := lostQueue()
	defer end()

	options := []queue.RebuildOption{queue.AsCopy(), queue.Until(time.Now().Add(time.Hour))}
	fmt.Println(sure(q.Rebuild(ctx, sink, options...)).Jobs)
	// Output: 2
}

// A copy keeps no history: the sink stays that of the queue which is alive elsewhere.
func ExampleAsCopy() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()
	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	copied, endCopy := openQueue() // of the same name, on another server
	defer endCopy()
	fmt.Println(sure(copied.Rebuild(ctx, sink, queue.AsCopy())).Jobs)
	fmt.Println(sure(copied.History(ctx)).On, sure(q.History(ctx)).On)
	// Output:
	// 1
	// false true
}

// To make a large queue takes a while. Somebody may watch.
func ExampleOnRebuilding() {
	sink, q, end := lostQueue()
	defer end()

	jobs := 0
	made := sure(q.Rebuild(ctx, sink, queue.OnRebuilding(func(r queue.Rebuilt) { jobs = r.Jobs })))
	fmt.Println(jobs, "of", made.Jobs)
	// Output: 2 of 2
}

// Somebody has deleted everything. The queue is made as it was before that.
func ExampleUntil() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	before := sure(q.Stats(ctx)).Now
	for !sure(q.Stats(ctx)).Now.After(before.Add(time.Millisecond)) { // some time later
	}
	sure(q.DeleteAll(ctx, queue.Filter{}))
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	copied, endCopy := openQueue()
	defer endCopy()
	fmt.Println(sure(copied.Rebuild(ctx, sink, queue.AsCopy(), queue.Until(before))).Jobs)
	// Output: 1
}

// recordCall returns the history of a call that anna has answered.
func recordCall() (history.Sink, func()) {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	answerCall := queue.Define[string, string]("call", queue.Cost("call", 1))
	sure(answerCall.Enqueue(ctx, q, "Ben", queue.Key("tenant:42")))
	anna := q.Worker("anna", queue.With(queue.Capacity{"call": 1}), queue.Tags("lang:de"))
	answerCall.Handle(anna, func(_ context.Context, j *queue.Job[string]) (string, error) { return "hello " + j.Args, nil })
	workAll(q, anna)
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	return sink, remove
}

// A sink is read from its beginning, also while Record fills it.
func ExampleNewHistoryReader() {
	sink, remove := recordCall()
	defer remove()

	events := 0
	for _, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		events++
	}
	fmt.Println(events > 0)
	// Output: true
}

// Called again, Events goes on where it was.
func ExampleHistoryReader_Events() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	reader := queue.NewHistoryReader(sink)
	for _, to := range []string{"ann", "bob"} {
		sure(SendMail.Enqueue(ctx, q, Mail{To: to}, queue.ID("welcome:"+to)))
		check(q.Record(ctx, sink, queue.UntilCaughtUp()))
		for e, err := range reader.Events(ctx) {
			check(err)
			fmt.Println(e.Job.ID, e.What)
		}
	}
	// Output:
	// welcome:ann enqueued
	// welcome:bob enqueued
}

// An event of a job that was canceled says why.
func ExampleHistoryEvent() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	check(q.Cancel(ctx, "the order was withdrawn", job.ID()))
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		fmt.Printf("%s %s %q\n", e.Job.Kind, e.What, e.Reason)
	}
	// Output:
	// mail.send enqueued ""
	// mail.send canceled "the order was withdrawn"
}

// An event of a job says which one it was, and which attempt.
func ExampleHistoryJob() {
	sink, remove := recordCall()
	defer remove()

	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		if e.Job != nil {
			fmt.Println(e.Job.Kind, "of", e.Job.Key, e.What+", attempt", e.Job.Attempt)
		}
	}
	// Output:
	// call of tenant:42 enqueued, attempt 1
	// call of tenant:42 running, attempt 1
	// call of tenant:42 done, attempt 1
}

// An event of a worker says who it was, and what it could do.
func ExampleHistoryWorker() {
	sink, remove := recordCall()
	defer remove()

	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		if e.What == queue.WorkerLoggedIn {
			fmt.Println(e.Worker.Name, e.Worker.State, e.Worker.Kinds, e.Worker.Tags, e.Worker.Capacities)
		}
	}
	// Output: anna online [call] [lang:de] map[call:1]
}

// What is told of a worker begins with a login, and ends with a logout.
func ExampleTold() {
	sink, remove := recordCall()
	defer remove()

	for e, err := range queue.NewHistoryReader(sink).Events(ctx) {
		check(err)
		switch e.What {
		case queue.WorkerLoggedIn, queue.WorkerLoggedOut:
			fmt.Println(e.Worker.Name, e.What)
		}
	}
	// Output:
	// anna logged in
	// anna logged out
}
