package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// Batches, notes, handlers that do not heed their contexts, and workers that are drained and away, over a network that breaks:
// every job runs, and nothing is left behind.
func TestWorkersDoAllOfItAtOnce(t *testing.T) {
	for seed := range uint64(6) {
		inBubble(t, func(t *testing.T, server redis.UniversalClient) {
			chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeatable
			healthy := open(t, server)
			const jobs = 120
			var requests []queue.Request
			for i := range jobs {
				requests = append(requests, sendMail.With(mail{fmt.Sprint(i)}, queue.Key(fmt.Sprint(i%7))))
			}
			var mu sync.Mutex
			ran := map[string]bool{}
			work := func(j *queue.Job[mail], n int) queue.Outcome[receipt] {
				j.Logf("attempt %d", j.Attempt)
				j.Progress(50, "half")
				if n%5 == 0 {
					return queue.Outcome[receipt]{Err: errors.New("busy")}
				}
				mu.Lock()
				defer mu.Unlock()
				ran[j.Args.To] = true
				return queue.Outcome[receipt]{}
			}
			var n atomic.Int64
			for i := range 4 {
				var cut atomic.Bool
				q, err := queue.New(&deaf{server, &cut}, "app", queue.Lease(2*time.Second))
				must(t, err)
				t.Cleanup(func() { must(t, q.Close()) })
				w := q.Worker(fmt.Sprint(i), queue.Slots(5), queue.DrainTimeout(3*time.Second))
				if i%2 == 0 {
					sendMail.HandleBatch(w, 3, time.Second, func(_ context.Context, batch []*queue.Job[mail]) []queue.Outcome[receipt] {
						time.Sleep(time.Second)
						outcomes := make([]queue.Outcome[receipt], len(batch))
						for i, j := range batch {
							outcomes[i] = work(j, int(n.Add(1)))
						}
						return outcomes
					})
				} else {
					sendMail.Handle(w, func(ctx context.Context, j *queue.Job[mail]) (receipt, error) {
						select {
						case <-ctx.Done():
							return receipt{}, ctx.Err()
						case <-time.After(3 * time.Second):
						}
						o := work(j, int(n.Add(1)))
						return o.Result, o.Err
					})
				}
				start(t, w)
				outage, away := time.Duration(chance.IntN(6000))*time.Millisecond, time.Duration(chance.IntN(9000))*time.Millisecond
				time.AfterFunc(outage, func() { cut.Store(true) })
				time.AfterFunc(outage+time.Duration(chance.IntN(6000))*time.Millisecond, func() { cut.Store(false) })
				ctx := within(t)
				time.AfterFunc(away, func() { _ = w.Away(ctx) }) // it may drain by then
				time.AfterFunc(away+5*time.Second, func() { _ = w.Online(ctx) })
			}
			_, err := healthy.EnqueueMany(within(t), requests...)
			must(t, err)
			time.Sleep(10 * time.Second)
			workers, err := healthy.Workers(within(t))
			must(t, err)
			if len(workers) > 1 {
				must(t, healthy.Drain(within(t), workers[0].ID))
			}
			left := func() int {
				stats, err := healthy.Stats(within(t))
				must(t, err)
				return stats.Waiting + stats.Running + stats.Later
			}
			for begun := time.Now(); left() > 0; time.Sleep(time.Second) {
				if time.Since(begun) > 20*time.Minute {
					t.Fatalf("seed %d: %d jobs are left", seed, left())
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if len(ran) != jobs {
				t.Errorf("seed %d: %d of %d jobs have run", seed, len(ran), jobs)
			}
			findings, err := healthy.Check(within(t), false)
			must(t, err)
			if len(findings) > 0 {
				t.Errorf("seed %d: %v", seed, findings)
			}
		})
	}
}
