package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// tickers runs workers that write down when jobs of kind note ran, until the returned function is called.
func tickers(t *testing.T, q *queue.Queue, n int) (stop func() []string) {
	t.Helper()
	var r recorder
	var stops []func()
	for i := range n {
		w := q.Worker(fmt.Sprint(i))
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			r.add(j.Args + " " + time.Now().UTC().Format("02 15:04:05"))
			return queue.None{}, nil
		})
		stops = append(stops, start(t, w))
	}
	return func() []string {
		for _, stop := range stops {
			stop()
		}
		return r.all()
	}
}

// Q10: however many set it and work, a tick makes one job, at its time.
func TestSchedulesTickOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		a, b := open(t, server), open(t, server)
		stop, stopOthers := tickers(t, a, 2), tickers(t, b, 1)
		for range 2 {
			for _, q := range []*queue.Queue{a, b} {
				must(t, q.Schedule(within(t), "often", queue.Every(20*time.Second), queue.RunLast, note.With("often")))
				must(t, q.Schedule(within(t), "one", queue.Cron("5 1 * * *", "Europe/Berlin"), queue.RunLast, note.With("one")))
			}
		}
		time.Sleep(70 * time.Second)
		must(t, a.Unschedule(within(t), "often"))
		wantErr(t, a.Unschedule(within(t), "often"), queue.ErrInvalid)
		time.Sleep(9 * time.Minute)
		var got []string
		for _, ran := range [][]string{stop(), stopOthers()} {
			got = append(got, ran...)
		}
		want := map[string]int{"often 01 00:00:20": 1, "often 01 00:00:40": 1, "often 01 00:01:00": 1, "one 01 00:05:00": 1}
		ran := map[string]int{}
		for _, text := range got {
			ran[text]++
		}
		if diff := cmp.Diff(want, ran); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMissedTicks(t *testing.T) {
	for missed, want := range map[queue.MissedTicks][]string{
		queue.RunLast: {"x 01 00:03:30", "x 01 00:04:00"},
		queue.Skip:    {"x 01 00:04:00"},
		queue.RunEach: {"x 01 00:03:30", "x 01 00:03:30", "x 01 00:04:00"},
	} {
		t.Run(string(missed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, server redis.UniversalClient) {
				q := open(t, server)
				must(t, q.Schedule(within(t), "s", queue.Cron("*/1 * * * *", ""), missed, note.With("x")))
				time.Sleep(time.Minute)
				must(t, q.Unschedule(within(t), "s"))
				must(t, q.Schedule(within(t), "s", queue.Cron("*/2 * * * *", ""), missed, note.With("x")))
				if missed == queue.RunEach {
					must(t, q.Schedule(within(t), "s", queue.Cron("*/1 * * * *", ""), missed, note.With("x")))
				}
				time.Sleep(150 * time.Second)
				stop := tickers(t, q, 1)
				time.Sleep(40 * time.Second)
				if diff := cmp.Diff(want, stop()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestSchedulesThatCannotBe(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server)
		for name, timing := range map[string]queue.Timing{
			"never": queue.Cron("0 0 30 2 *", ""), "zone": queue.Cron("0 0 * * *", "Mars/Olympus"), "fields": queue.Cron("* *", ""),
			"fast": queue.Every(time.Millisecond), "": queue.Every(time.Hour),
		} {
			wantErr(t, q.Schedule(within(t), name, timing, queue.Skip, note.With("x")), queue.ErrInvalid)
		}
		for _, options := range [][]queue.Option{{queue.ID("x")}, {queue.In(time.Second)}, {queue.After(queue.RunIt, "y")}} {
			wantErr(t, q.Schedule(within(t), "s", queue.Every(time.Hour), queue.Skip, note.With("x", options...)), queue.ErrInvalid)
		}
		if all, err := q.Schedules(within(t)); err != nil || len(all) > 0 {
			t.Error(all, err)
		}
	})
}

// stopped is a client that is held up when it has jobs of ticks to enqueue, as by SIGSTOP.
type stopped struct {
	redis.UniversalClient
	goOn chan struct{}
}

func (s *stopped) Process(ctx context.Context, cmd redis.Cmder) error {
	for _, arg := range cmd.Args() {
		if text, ok := arg.(string); ok && strings.HasPrefix(text, "tick@") {
			<-s.goOn
		}
	}
	return s.UniversalClient.Process(ctx, cmd)
}

// Q10: who was told of a tick, and is stopped before it has made its job, makes none when it goes on: others have.
func TestATickIsMadeOnceThoughWhoWasToldIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		goOn := make(chan struct{})
		a, b := open(t, &stopped{server, goOn}), open(t, server)
		var ids recorder
		for _, q := range []*queue.Queue{a, b} {
			w := q.Worker("w")
			note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
				ids.add(j.ID)
				return queue.None{}, nil
			})
			start(t, w)
			must(t, q.Schedule(within(t), "tick", queue.Every(20*time.Second), queue.RunEach, note.With("")))
			time.Sleep(21 * time.Second) // of virtual time; the second worker comes when the first is stopped
		}
		time.Sleep(20 * time.Second)
		close(goOn)
		time.Sleep(20 * time.Second)
		seen := map[string]bool{}
		for _, id := range ids.all() {
			if seen[id] {
				t.Errorf("%s ran twice", id)
			}
			seen[id] = true
		}
		if len(seen) != 4 {
			t.Errorf("%d ticks in 80 seconds: %q", len(seen), ids.all())
		}
	})
}
