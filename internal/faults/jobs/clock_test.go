//go:build linux

package jobs_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/queue"
)

// startAnHourBehind starts a redis-server whose clock is an hour behind ours.
func startAnHourBehind(t *testing.T) *difftest.Server {
	t.Helper()
	library, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	must(t, err)
	env, err := exec.LookPath("env")
	must(t, err)
	if len(library) == 0 {
		t.Fatal("libfaketime is not installed (Debian: apt-get install libfaketime)")
	}
	dir := t.TempDir()
	return difftest.Start(t, func(port string) []string {
		return []string{
			env, "LD_PRELOAD=" + library[0] + " libc.so.6", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME=-3600", // in seconds
			difftest.RedisServer(t), "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no",
		}
	})
}

// TestJobsClockAhead: the clocks of programs do not move ticks.
func TestJobsClockAhead(t *testing.T) {
	faults.Begin(t)
	s := startAnHourBehind(t)
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
