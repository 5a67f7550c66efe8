package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// Where a key of a queue is another program's, nothing is enqueued, not even in half, no worker begins, and the error names
// the key.
func TestAForeignKeyIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		ctx := within(t)
		for _, name := range []string{
			"jobs", "waiting", "index", "lanes", "claims", "links", "times", "counts", "rates", "workers", "settings", "unique", "ended",
			"endings", "stats", "clock", "schedules", "ticks",
		} {
			key := "signalbox:queue:{app}:" + name
			must(t, server.FlushAll(ctx).Err())
			must(t, server.RPush(ctx, key, "theirs").Err())
			q := open(t, server)
			id, kept, err := note.With("kept").Encode()
			must(t, err)
			again, err := queue.DecodeRequest(kept, 0)
			must(t, err)
			w := q.Worker("w")
			note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
			_, enqueued := note.Enqueue(ctx, q, "a")
			_, numbered := q.EnqueueNumbered(ctx, "s", 1, again)
			for doing, err := range map[string]error{"enqueue": enqueued, "numbered": numbered, "work": w.Run(ctx)} {
				if !errors.Is(err, queue.ErrWrongType) || !strings.Contains(err.Error(), key+" is a list of another program") || !strings.Contains(err.Error(), `"app"`) {
					t.Errorf("%s: %s: %v", name, doing, err)
				}
			}
			keys, err := server.Keys(ctx, "*").Result()
			must(t, err)
			if len(keys) != 1 {
				t.Errorf("%s: there are %q", name, keys)
			}
			must(t, server.Del(ctx, key).Err())
			becomes(t, q, enqueue(t, q, "b"), queue.Pending)
			if _, err := q.Look(ctx, id); !errors.Is(err, queue.ErrUnknownJob) {
				t.Errorf("%s: the job is there: %v", name, err)
			}
		}
	})
}
