package queuetest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/queuetest"
)

// order is the program under test: it enqueues a mail.
func order(ctx context.Context, q *queue.Queue, customer string) error {
	_, err := sendMail.Enqueue(ctx, q, mail{To: customer}, queue.Key("customer:"+customer))
	return err
}

// report stands for the t of a test: an example has none.
type report struct{ testing.TB }

func (report) Helper() {}

func (report) Context() context.Context { return context.Background() }

func (report) Fatalf(format string, args ...any) { fmt.Printf("FAIL: "+format+"\n", args...) }

// What a program enqueues, without running it.
func ExampleRequireEnqueued() {
	t := report{}
	q, end := openExample()
	defer end()

	if err := order(t.Context(), q, "ann"); err != nil {
		t.Fatalf("%v", err)
	}
	job := queuetest.RequireEnqueued(t, q, sendMail, mail{To: "ann"})
	fmt.Println(job.Key, job.State)
	queuetest.RequireNoneEnqueued(t, q, note)
	fmt.Println(queuetest.Enqueued(t, q, sendMail))
	// Output:
	// customer:ann waiting
	// [{ann}]
}

// What a program enqueues, and what its handlers make of it.
func ExampleDrain() {
	t := report{}
	q, end := openExample()
	defer end()

	if err := order(t.Context(), q, "ann"); err != nil {
		t.Fatalf("%v", err)
	}
	w := q.Worker("w")
	sendMail.Handle(w, func(_ context.Context, j *queue.Job[mail]) (queue.None, error) {
		fmt.Println("a mail to", j.Args.To)
		return queue.None{}, nil
	})
	queuetest.Drain(t, q, w)
	// Output: a mail to ann
}

// cleanups is a report that New may leave its ends with.
type cleanups struct {
	report
	ends []func()
}

func (c *cleanups) Cleanup(end func()) { c.ends = append(c.ends, end) }

// openExample is queuetest.New for an example.
func openExample() (*queue.Queue, func()) {
	t := &cleanups{}
	q := queuetest.New(t)
	return q, func() {
		for _, end := range t.ends {
			end()
		}
	}
}

// The same in a test, in virtual time.
func TestExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t)
		if err := order(t.Context(), q, "ann"); err != nil {
			t.Fatal(err)
		}
		w := q.Worker("w")
		var sent []string
		sendMail.Handle(w, func(_ context.Context, j *queue.Job[mail]) (queue.None, error) {
			if j.Attempt < 3 {
				return queue.None{}, fmt.Errorf("attempt %d fails", j.Attempt)
			}
			sent = append(sent, j.Args.To)
			return queue.None{}, nil
		})
		queuetest.Drain(t, q, w)
		if len(sent) != 1 || sent[0] != "ann" {
			t.Errorf("mails went to %q", sent)
		}
	})
}
