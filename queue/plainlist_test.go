package queue_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// What any program pushes to a list is run by the callback of its name, in order; what is no job is put aside, and told.
func TestPlainListsWork(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		push := func(lines ...any) { must(t, server.RPush(within(t), "queue:email", lines...).Err()) }
		push(`["send_email", ["x@y", 1]]`, `nonsense`, `["send_email", []]`, `["send_email", {"to": "x"}]`, `["a\tb", []]`)
		var mu sync.Mutex
		var got []any
		var told []error
		done := make(chan struct{})
		w := q.Worker("w", queue.Slots(1), queue.TakeFrom("queue:email"), queue.Observe(func(e queue.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.What == queue.BadLine {
				told = append(told, e.Err)
			}
		}))
		email := queue.Define[[]any, queue.None]("send_email")
		email.Handle(w, func(_ context.Context, j *queue.Job[[]any]) (queue.None, error) {
			mu.Lock()
			defer mu.Unlock()
			if got = append(got, j.Args); len(got) == 3 {
				close(done)
			}
			return queue.None{}, nil
		})
		start(t, w)
		push(`["send_email", ["later"]]`)
		select {
		case <-done:
		case <-within(t).Done():
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]any{[]any{"x@y", 1.0}, []any{}, []any{"later"}}, got); diff != "" {
			t.Error(diff)
		}
		if len(told) != 3 {
			t.Errorf("told of %q", told)
		}
		bad, err := server.LRange(within(t), "queue:email:bad", 0, -1).Result()
		must(t, err)
		if diff := cmp.Diff([]string{`nonsense`, `["send_email", {"to": "x"}]`, `["a\tb", []]`}, bad); diff != "" {
			t.Error(diff)
		}
	})
}
