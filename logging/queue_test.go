package logging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/embedded"
	"github.com/signalbox-io/signalbox/logging"
	"github.com/signalbox-io/signalbox/queue"
)

var note = queue.Define[string, queue.None]("note")

// unchanging leaves out what differs from run to run.
func unchanging(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "took", "waited":
		return slog.Attr{}
	}
	return a
}

func ExampleQueue() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: unchanging}))
	box, err := embedded.Open("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	q, err := box.Queue("app", logging.Queue(logger, map[queue.Happening]slog.Level{queue.Added: slog.LevelInfo}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	if _, err := note.Enqueue(context.Background(), q, "hello", queue.ID("42"), queue.Key("tenant:7")); err != nil {
		fmt.Println(err)
	}
	// Output: level=INFO msg="job enqueued" queue=app job=42 kind=note key=tenant:7 outcome=new
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: unchanging, Level: slog.LevelDebug}))
		box, err := embedded.Open("")
		must(t, err)
		q, err := box.Queue("app", logging.Queue(logger, map[queue.Happening]slog.Level{queue.Started: logging.Off}))
		must(t, err)
		_, err = note.Enqueue(t.Context(), q, "secret", queue.ID("a"))
		must(t, err)
		w := q.Worker("w", queue.Slots(1))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			if j.Attempt == 1 {
				return queue.None{}, queue.Retry(errors.New("not yet"), time.Second)
			}
			return queue.None{}, queue.Fail(errors.New("never"))
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		time.Sleep(time.Minute)
		stop()
		must(t, <-ended)
		must(t, q.Close())
		must(t, box.Close())
		want := []string{
			`level=DEBUG msg="job enqueued" queue=app job=a kind=note outcome=new`,
			`level=WARN msg="job ended" queue=app worker=w job=a kind=note outcome=retry attempt=1 error="not yet"`,
			`level=ERROR msg="job ended" queue=app worker=w job=a kind=note outcome=dead attempt=2 error=never`,
			`level=INFO msg="worker draining" queue=app worker=w`,
		}
		if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
	})
}
