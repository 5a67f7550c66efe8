//go:build linux

package jobs_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/queue"
)

// TestJobsClockAhead: the clocks of programs do not move ticks.
func TestJobsClockAhead(t *testing.T) {
	faults.Begin(t)
	s := difftest.ClockedRedis(t, []string{"FAKETIME=-3600"}) // an hour behind ours
	q, err := queue.Open(t.Context(), "redis://"+s.Addr, "app")
	must(t, err)
	working, leave := context.WithCancel(context.Background())
	ended, ticks := make(chan error, 1), make(chan int64, 100)
	t.Cleanup(func() {
		leave()
		must(t, <-ended)
		must(t, q.Close())
	})
	w := q.Worker("w")
	note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		_, text, _ := strings.Cut(j.ID, "@")
		ms, err := strconv.ParseInt(text, 10, 64)
		ticks <- ms
		return queue.None{}, err
	})
	go func() { ended <- w.Run(working) }()
	client := dial(t, s.Addr)
	now := func() int64 {
		at, err := client.Time(t.Context()).Result()
		must(t, err)
		return at.UnixMilli()
	}
	begun := now()
	must(t, q.Schedule(t.Context(), "tick", queue.Every(time.Second), queue.RunEach, note.With("")))
	last := begun
	for n := range 3 {
		faults.Await(t, fmt.Sprintf("tick %d", n), func() bool { return len(ticks) > 0 })
		switch at := <-ticks; {
		case at <= last || n > 0 && at != last+1000 || at > now():
			t.Fatalf("tick %d is that of %d, after %d, at %d by the server's clock", n, at, last, now())
		default:
			last = at
		}
	}
}
