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

// Operators retry, cancel and delete by filters while workers run the same jobs. Each job ends once (Q2), in one place (Q1).
func TestFiltersWhileWorkersRun(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q, operator := open(t, server), open(t, server)
		must(t, q.Configure(within(t), queue.Limit(queue.EachKey, 3)))
		var mu sync.Mutex
		runs, ends := map[string]int{}, map[string]int{}
		for i := range 2 {
			w := q.Worker(fmt.Sprint(i), queue.Slots(8))
			note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
				mu.Lock()
				runs[j.ID]++
				first := runs[j.ID] == 1
				mu.Unlock()
				time.Sleep(time.Millisecond)
				if first {
					return queue.None{}, queue.Fail(errors.New("not at the first time"))
				}
				mu.Lock()
				ends[j.ID]++
				mu.Unlock()
				return queue.None{}, nil
			})
			start(t, w)
		}
		const jobs = 300
		for i := range jobs {
			enqueue(t, q, "a", queue.ID(fmt.Sprint("j", i)), queue.Key([]string{"kept", "canceled", "deleted"}[i%3]), queue.Retain(time.Hour))
		}
		for over := false; !over; time.Sleep(time.Millisecond) { // else virtual time would stand still
			_, err := operator.RetryAll(within(t), queue.Filter{State: queue.Dead})
			must(t, err)
			_, err = operator.CancelAll(within(t), "enough", queue.Filter{Key: "canceled"})
			must(t, err)
			_, err = operator.DeleteAll(within(t), queue.Filter{Key: "deleted"})
			must(t, err)
			over = true
			for state, key := range map[queue.State]string{queue.Pending: "", queue.Running: "", queue.Dead: "kept"} {
				n, err := operator.Count(within(t), queue.Filter{State: state, Key: key})
				must(t, err)
				over = over && n == 0
			}
		}
		for _, c := range []struct {
			filter queue.Filter
			want   int
		}{{queue.Filter{State: queue.Done, Key: "kept"}, jobs / 3}, {queue.Filter{Key: "kept"}, jobs / 3}, {queue.Filter{Key: "canceled"}, jobs / 3}} {
			if n, err := operator.Count(within(t), c.filter); err != nil || n != c.want {
				t.Errorf("%+v: %d, want %d; %v", c.filter, n, c.want, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for id, n := range ends {
			if n != 1 {
				t.Errorf("Q2: %s ended %d times", id, n)
			}
		}
		findings, err := operator.Check(within(t), false)
		must(t, err)
		if len(findings) > 0 {
			t.Errorf("Q1: %v", findings)
		}
	})
}
