package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

func partitions(t *testing.T, server redis.UniversalClient, n int) queue.Partitions {
	t.Helper()
	p, err := queue.NewPartitions(server, "app", n)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

// Q4: a key is in one partition, whoever works it, and its limit holds.
func TestAKeysLimitHoldsOverPartitions(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		const jobs, keys, limit = 200, 20, 2
		p := partitions(t, server, 4)
		must(t, p.Configure(within(t), queue.Limit(queue.EachKey, limit)))
		var requests []queue.Request
		for i := range jobs {
			requests = append(requests, note.With("x", queue.Key(fmt.Sprint(i%keys))))
		}
		outcomes, err := p.EnqueueMany(within(t), requests...)
		must(t, err)
		before, err := p.Stats(within(t))
		must(t, err)
		if len(outcomes) != jobs || before.Waiting != jobs || len(before.Kinds) != 1 || before.Kinds[0].Enqueued != jobs {
			t.Errorf("%d outcomes, and %+v", len(outcomes), before)
		}
		ctx, stop := context.WithCancel(within(t))
		var mu sync.Mutex
		running, where, ran := map[string]int{}, map[string]map[string]bool{}, 0
		worker := func(q *queue.Queue) *queue.Worker {
			w := q.Worker("w", queue.Slots(5))
			note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
				mu.Lock()
				if running[j.Key]++; running[j.Key] > limit {
					t.Errorf("Q4: %d jobs of key %s run at once", running[j.Key], j.Key)
				}
				if where[j.Key] == nil {
					where[j.Key] = map[string]bool{}
				}
				where[j.Key][q.Name()] = true
				mu.Unlock()
				time.Sleep(time.Millisecond) // work
				mu.Lock()
				defer mu.Unlock()
				running[j.Key]--
				if ran++; ran == jobs {
					stop()
				}
				return queue.None{}, nil
			})
			return w
		}
		other := partitions(t, server, 4) // another process
		ended := make(chan error, 1)
		go func() { ended <- other.Run(ctx, worker) }()
		must(t, p.Run(ctx, worker))
		must(t, <-ended)
		used := map[string]bool{}
		for key, names := range where {
			for name := range names {
				used[name] = true
			}
			if len(names) != 1 {
				t.Errorf("key %s was in %v", key, names)
			}
		}
		if ran != jobs || len(used) != 4 {
			t.Errorf("%d of %d jobs ran, in %v", ran, jobs, used)
		}
	})
}

// What has to be one of its kind goes where the other one would be.
func TestWhatIsUniqueIsInOnePartition(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		p := partitions(t, server, 8)
		for _, same := range []queue.Option{queue.ID("mine"), queue.Unique("print", queue.Alive)} {
			for i := range 5 {
				outcomes, err := p.EnqueueMany(within(t), note.With("x", same))
				must(t, err)
				if outcomes[0].Duplicate != (i > 0) {
					t.Errorf("enqueued %d times: %+v", i+1, outcomes[0])
				}
			}
		}
		outcomes, err := p.EnqueueMany(within(t), note.With("y", queue.After(queue.CancelIt, "mine")), note.With("z"))
		must(t, err)
		if !errors.Is(outcomes[0].Err, queue.ErrInvalid) || outcomes[1].Err != nil {
			t.Errorf("a job that waits for one of who knows where: %+v", outcomes)
		}
		_, err = queue.NewPartitions(server, "app", 0)
		wantErr(t, err, queue.ErrInvalid)
		for i := range 8 {
			if name := p[i].Name(); name != fmt.Sprintf("app/%dof8", i) {
				t.Errorf("partition %d is named %s", i, name)
			}
		}
	})
}
