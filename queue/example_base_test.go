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

// Once a week the history says again all that the queue has. What was before that can be removed some day.
func ExampleQueue_HistoryBase() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	check(q.HistoryBase(ctx))
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))
	upto, _, err := queue.Prunable(ctx, sink, time.Now().Add(time.Hour))
	fmt.Println(upto != "", err)
	// Output: true <nil>
}

// What nobody needs to make the queue as it was in the last thirty days is removed from a folder.
func ExamplePrunable() {
	q, end := openQueue()
	defer end()
	folder := sure(os.MkdirTemp("", "history"))
	sink := sure(files.Open(folder))
	defer func() { check(errors.Join(sink.Close(), os.RemoveAll(folder))) }()
	check(q.Record(ctx, sink, queue.UntilCaughtUp()))

	upto, entries, err := queue.Prunable(ctx, sink, time.Now().AddDate(0, 0, -30))
	if err == nil && upto != "" {
		err = files.Prune(folder, upto)
	}
	fmt.Println(entries, "were too old,", err)
	// Output: 0 were too old, <nil>
}

// awayOnce is a sink whose database is out of reach for a moment.
type awayOnce struct {
	history.Sink
	calls int
}

// Append fails the first time, as that of an sqlsink.Sink does while its database is started again.
func (a *awayOnce) Append(ctx context.Context, of string, entries []history.Entry) error {
	if a.calls++; a.calls == 1 {
		return history.ErrUnavailable
	}
	return a.Sink.Append(ctx, of, entries)
}

// Record waits until a database is there again. Somebody should know.
func ExampleOnRecordTrouble() {
	q, end := openQueue()
	defer end()
	sink, remove := openSink()
	defer remove()

	check(q.Record(ctx, &awayOnce{Sink: sink}, queue.UntilCaughtUp(), queue.OnRecordTrouble(func(err error) {
		fmt.Println("it is waited for:", errors.Is(err, history.ErrUnavailable))
	})))
	fmt.Println(sure(sink.Queue(ctx)))
	// Output:
	// it is waited for: true
	// app
}
