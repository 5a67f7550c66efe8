package queuetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/queuetest"
)

type mail struct{ To string }

var (
	sendMail = queue.Define[mail, queue.None]("mail.send", queue.MaxAttempts(3))
	note     = queue.Define[string, queue.None]("note")
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// wantFailure has do fail its test, with a word.
func wantFailure(t *testing.T, word string, do func(t testing.TB)) {
	t.Helper()
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(f)
	}()
	<-done
	if !strings.Contains(f.said, word) {
		t.Errorf("it says %q, not %q", f.said, word)
	}
}

func TestDrainWaitsForRetriesAndDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Lease(time.Hour))
		begun := time.Now()
		var ran []string
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			if j.Attempt < 3 {
				return queue.None{}, queue.Retry(errors.New("busy"), time.Hour)
			}
			ran = append(ran, fmt.Sprint(j.Args, " ", time.Since(begun).Round(time.Hour)))
			time.Sleep(2 * time.Hour)
			return queue.None{}, nil
		})
		_, err := note.Enqueue(t.Context(), q, "a")
		must(t, err)
		_, err = note.Enqueue(t.Context(), q, "b", queue.In(9*time.Hour))
		must(t, err)
		must(t, q.Configure(t.Context(), queue.Rate(queue.WholeQueue, time.Hour, 1)))
		queuetest.Drain(t, q, w)
		if diff := cmp.Diff([]string{"a 2h0m0s", "b 11h0m0s"}, ran); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDrainSaysWhatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t)
		handled := func() *queue.Worker {
			w := q.Worker("w")
			note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
			return w
		}
		_, err := sendMail.Enqueue(t.Context(), q, mail{"x"})
		must(t, err)
		_, err = note.Enqueue(t.Context(), q, "a")
		must(t, err)
		wantFailure(t, "of 1 worker online, none has kind mail.send", func(t testing.TB) { queuetest.Drain(t, q, handled()) })
		wantFailure(t, "no worker is online", func(t testing.TB) { queuetest.Drain(t, q) })
		wantFailure(t, "it has no handlers", func(t testing.TB) { queuetest.Drain(t, q, q.Worker("w")) })
		queuetest.RequireNoneEnqueued(t, q, note)
	})
}

func TestRequireEnqueued(t *testing.T) {
	q := queuetest.New(t)
	wantFailure(t, `no job of kind "mail.send" is enqueued`, func(t testing.TB) {
		queuetest.RequireEnqueued(t, q, sendMail, mail{"x"})
	})
	_, err := q.EnqueueMany(t.Context(), sendMail.With(mail{"x"}), sendMail.With(mail{"y"}, queue.Key("k"), queue.In(time.Hour)), note.With("a"))
	must(t, err)
	if job := queuetest.RequireEnqueued(t, q, sendMail, mail{"y"}); job.Key != "k" || job.State != queue.Delayed {
		t.Errorf("it is %+v", job)
	}
	if diff := cmp.Diff([]mail{{"x"}, {"y"}}, queuetest.Enqueued(t, q, sendMail)); diff != "" {
		t.Error(diff)
	}
	wantFailure(t, "with {To:z}, but with\n\t{To:x}\n\t{To:y}", func(t testing.TB) {
		queuetest.RequireEnqueued(t, q, sendMail, mail{"z"})
	})
	wantFailure(t, `a job of kind "note" is enqueued`, func(t testing.TB) { queuetest.RequireNoneEnqueued(t, q, note) })
}
