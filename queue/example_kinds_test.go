package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// Examples of kinds, of their jobs as producers and handlers see them, and of requests.

// printTo and bounce are handlers of SendMail.
func printTo(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
	fmt.Println("to", j.Args.To)
	return Receipt{Bytes: len(j.Args.Text)}, nil
}

func bounce(context.Context, *queue.Job[Mail]) (Receipt, error) {
	return Receipt{}, queue.Fail(errors.New("no such mailbox"))
}

// A kind says what goes into a job and what comes of it; the compiler holds producers and handlers to that.
func ExampleKind() {
	q, end := openQueue()
	defer end()

	area := queue.Define[[2]int, int]("area", queue.Timeout(time.Minute))
	job := sure(area.Enqueue(ctx, q, [2]int{6, 7}))
	w := q.Worker("w")
	area.Handle(w, func(_ context.Context, j *queue.Job[[2]int]) (int, error) { return j.Args[0] * j.Args[1], nil })
	workAll(q, w)
	fmt.Println(sure(job.Wait(ctx)))
	// Output: 42
}

// Who looks at a job gets its arguments with their types.
func ExampleKind_Arguments() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}))
	for info, err := range q.Jobs(ctx, queue.Filter{Kind: SendMail.Name()}) {
		check(err)
		mail := sure(SendMail.Arguments(&info))
		fmt.Println(mail.To, mail.Text)
	}
	// Output: ann hello
}

// When Enqueue has returned without an error, the job is on the server.
func ExampleKind_Enqueue() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Key("tenant:42"), queue.MaxAttempts(3)))
	fmt.Println(sure(q.Look(ctx, job.ID())).State)

	_, err := SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.MaxAttempts(0))
	fmt.Println(errors.Is(err, queue.ErrInvalid), err)
	// Output:
	// waiting
	// true enqueue "mail.send": invalid argument: 0 attempts: it is at least one
}

// A process that knows the id of a job can wait for its result, whoever has enqueued it.
func ExampleKind_Job() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}, queue.ID("welcome:ann")))
	w := q.Worker("w")
	SendMail.Handle(w, printTo)
	workAll(q, w)

	receipt := sure(SendMail.Job(q, "welcome:ann").Wait(ctx)) // in another process
	fmt.Println(receipt.Bytes, "bytes")
	// Output:
	// to ann
	// 5 bytes
}

// The name is what limits, filters and counts go by.
func ExampleKind_Name() {
	fmt.Println(SendMail.Name(), queue.OfKind(SendMail.Name()))
	// Output: mail.send kind mail.send
}

// With makes requests, for many jobs in one call.
func ExampleKind_With() {
	q, end := openQueue()
	defer end()

	var requests []queue.Request
	for _, to := range []string{"ann", "bob", "eve"} {
		requests = append(requests, SendMail.With(Mail{To: to}, queue.Key(to)))
	}
	sure(q.EnqueueMany(ctx, requests...))
	fmt.Println(sure(q.Stats(ctx)).Waiting)
	// Output: 3
}

// None stands for arguments or a result that there are not.
func ExampleNone() {
	q, end := openQueue()
	defer end()

	sweep := queue.Define[queue.None, queue.None]("sweep")
	sure(sweep.Enqueue(ctx, q, queue.None{}))
	w := q.Worker("w")
	sweep.Handle(w, func(context.Context, *queue.Job[queue.None]) (queue.None, error) {
		fmt.Println("swept")
		return queue.None{}, nil
	})
	workAll(q, w)
	// Output: swept
}

// A codec reads what it has written. JSON is the one of kinds that have no other; see also Encoding.
func ExampleCodec() {
	for _, codec := range []queue.Codec{queue.JSON, gobCodec{}} {
		data := sure(codec.Encode(Mail{To: "ann"}))
		var mail Mail
		check(codec.Decode(data, &mail))
		fmt.Println(codec.Name(), mail.To)
	}
	// Output:
	// json ann
	// gob ann
}

// What a handler knows of its job, beside the arguments.
func ExampleJob() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.ID("welcome:ann"), queue.Key("tenant:42")))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println(j.ID, j.Kind, j.Key, "attempt", j.Attempt, "to", j.Args.To)
		return Receipt{}, nil
	})
	workAll(q, w)
	// Output: welcome:ann mail.send tenant:42 attempt 1 to ann
}

// Of a batch, each job has a context of its own: here one of two is canceled.
func ExampleJob_Context() {
	q, end := openQueue()
	defer end()

	sure(q.EnqueueMany(ctx, SendMail.With(Mail{To: "ann"}), SendMail.With(Mail{To: "bob"})))
	w := q.Worker("w", queue.Slots(2))
	SendMail.HandleBatch(w, 2, time.Hour, func(_ context.Context, jobs []*queue.Job[Mail]) []queue.Outcome[Receipt] {
		check(q.Cancel(ctx, "the order was withdrawn", jobs[0].ID))
		<-jobs[0].Context().Done()
		return []queue.Outcome[Receipt]{{Err: jobs[0].Context().Err()}, {Err: jobs[1].Context().Err()}}
	})
	workAll(q, w)
	fmt.Println(sure(q.Count(ctx, queue.Filter{State: queue.Canceled})), "canceled,", sure(q.Count(ctx, queue.Filter{State: queue.Done})), "done")
	// Output: 1 canceled, 1 done
}

// The log is kept with the job.
func ExampleJob_Logf() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		j.Logf("%d attachments", 2)
		return Receipt{}, nil
	})
	workAll(q, w)
	fmt.Println(sure(q.Look(ctx, job.ID())).Log[0].Text)
	// Output: 2 attachments
}

// Lines are kept over all attempts.
func ExampleLogLine() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.MaxAttempts(2)))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		j.Logf("connect to %s", "mx1")
		return Receipt{}, queue.Retry(errors.New("greylisted"), time.Millisecond)
	})
	workAll(q, w)
	for _, line := range sure(q.Look(ctx, job.ID())).Log {
		fmt.Println(line.Attempt, line.Text)
	}
	// Output:
	// 1 connect to mx1
	// 2 connect to mx1
}

// The last that the handler has said of how far it is.
func ExampleProgress() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		j.Progress(50, "attachments")
		j.Progress(100, "sent")
		return Receipt{}, nil
	})
	workAll(q, w)
	if p := sure(q.Look(ctx, job.ID())).Progress; p != nil { // nil: it has said nothing
		fmt.Println(p.Percent, p.What)
	}
	// Output: 100 sent
}

// Fail ends a job, however many attempts are left.
func ExampleFail() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "nobody"}, queue.MaxAttempts(20)))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("attempt", j.Attempt)
		return Receipt{}, queue.Fail(errors.New("no such mailbox"))
	})
	workAll(q, w)
	info := sure(q.Look(ctx, job.ID()))
	fmt.Println(info.State, info.Error)
	// Output:
	// attempt 1
	// dead no such mailbox
}

// Retry says when to try again, where the other side has told.
func ExampleRetry() {
	q, end := openQueue()
	defer end()

	sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	w := q.Worker("w")
	SendMail.Handle(w, func(_ context.Context, j *queue.Job[Mail]) (Receipt, error) {
		fmt.Println("attempt", j.Attempt)
		if j.Attempt == 1 {
			return Receipt{}, queue.Retry(errors.New("greylisted"), 10*time.Millisecond)
		}
		return Receipt{}, nil
	})
	workAll(q, w)
	// Output:
	// attempt 1
	// attempt 2
}

// The error of Wait names the job.
func ExampleDeadError_Error() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "nobody"}, queue.ID("welcome:ann")))
	w := q.Worker("w")
	SendMail.Handle(w, bounce)
	workAll(q, w)
	_, err := job.Wait(ctx)
	fmt.Println(err)
	// Output: job welcome:ann: job failed: no such mailbox
}

// Who does not want to know why compares with ErrDead.
func ExampleDeadError_Is() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "nobody"}))
	w := q.Worker("w")
	SendMail.Handle(w, bounce)
	workAll(q, w)
	_, err := job.Wait(ctx)
	fmt.Println(errors.Is(err, queue.ErrDead), errors.Is(err, queue.ErrCanceled))
	// Output: true false
}

// Each job of a batch has an outcome, with a result or an error as a handler returns it.
func ExampleOutcome() {
	q, end := openQueue()
	defer end()

	ann := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}))
	w := q.Worker("w")
	SendMail.HandleBatch(w, 100, 10*time.Millisecond, func(_ context.Context, jobs []*queue.Job[Mail]) (all []queue.Outcome[Receipt]) {
		for _, j := range jobs {
			all = append(all, queue.Outcome[Receipt]{Result: Receipt{Bytes: len(j.Args.Text)}})
		}
		return all
	})
	workAll(q, w)
	fmt.Println(sure(ann.Wait(ctx)).Bytes, "bytes")
	// Output: 5 bytes
}

// A producer may wait for what comes of its job, or keep the id and ask later.
func ExampleEnqueued() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann", Text: "hello"}))
	w := q.Worker("w")
	SendMail.Handle(w, printTo)
	workAll(q, w)
	fmt.Println(job.Duplicate(), sure(job.Wait(ctx)).Bytes)
	// Output:
	// to ann
	// false 5
}

// With a fingerprint the handle is that of the job which is there already.
func ExampleEnqueued_Duplicate() {
	q, end := openQueue()
	defer end()

	for range 2 {
		job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}, queue.Unique("welcome:ann", queue.Waiting)))
		fmt.Println(job.Duplicate())
	}
	// Output:
	// false
	// true
}

func ExampleEnqueued_ID() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	fmt.Println(sure(q.Look(ctx, job.ID())).ID == job.ID())
	// Output: true
}

// Wait returns the result, or why there is none.
func ExampleEnqueued_Wait() {
	q, end := openQueue()
	defer end()

	job := sure(SendMail.Enqueue(ctx, q, Mail{To: "ann"}))
	check(q.Cancel(ctx, "ann has left", job.ID()))
	_, err := job.Wait(ctx)
	fmt.Println(errors.Is(err, queue.ErrCanceled))
	// Output: true
}
