package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// What a handler says is seen while the job runs, stays over its attempts, and is kept with it.
func TestProgressAndLogsReachAReader(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q := open(t, server, queue.Lease(4*time.Second))
		var attempt atomic.Int32
		w := q.Worker("w")
		goOn := make(chan struct{})
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			n := attempt.Add(1)
			j.Logf("line %d of\nattempt %d", 1, n)
			j.Progress(40, "half")
			<-goOn
			j.Logf("at the end")
			if n == 1 {
				return queue.None{}, errors.New("busy")
			}
			return queue.None{}, queue.Fail(errors.New("no"))
		})
		start(t, w)
		id := enqueue(t, q, "a")
		seen := func(lines int, want ...string) {
			t.Helper()
			var info *queue.JobInfo
			for ctx := within(t); ctx.Err() == nil; {
				var err error
				info, err = q.Look(ctx, id)
				must(t, err)
				if len(info.Log) == lines && info.Progress != nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			var got []string
			for _, line := range info.Log {
				got = append(got, fmt.Sprint(line.Attempt, " ", line.Text))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if p := info.Progress; p == nil || p.Percent != 40 || p.What != "half" || p.At.IsZero() {
				t.Errorf("the progress is %+v", p)
			}
		}
		seen(1, "1 line 1 of attempt 1")
		goOn <- struct{}{}
		seen(3, "1 line 1 of attempt 1", "1 at the end", "2 line 1 of attempt 2")
		goOn <- struct{}{}
		seen(4, "1 line 1 of attempt 1", "1 at the end", "2 line 1 of attempt 2", "2 at the end")
		if info := becomes(t, q, id, queue.Dead); info.Error != "no" || string(info.Arguments) != `"a"` {
			t.Errorf("it is %+v", info)
		}
	})
}

// A watcher is told what a handler says, and the end, though nothing is kept of the job.
func TestAWatcherFollowsAJob(t *testing.T) {
	onEach(t, func(t *testing.T, server redis.UniversalClient) {
		q, other := open(t, server, queue.Lease(4*time.Second)), open(t, server)
		w := q.Worker("w")
		seen := make(chan struct{})
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			j.Progress(130, "more")
			<-seen
			j.Logf("bye")
			return queue.None{}, nil
		})
		id := enqueue(t, q, "a", queue.In(100*time.Millisecond))
		start(t, w)
		var got []string
		for info, err := range other.Watch(within(t), id) {
			must(t, err)
			line := string(info.State)
			if info.Progress != nil {
				line += fmt.Sprint(" ", info.Progress.Percent, " ", len(info.Log))
			}
			if len(got) > 0 && got[len(got)-1] == line {
				continue
			}
			got = append(got, line)
			if line == "running 100 0" {
				if !strings.HasPrefix(info.By, "w ") {
					t.Errorf("it runs on %q", info.By)
				}
				close(seen)
			}
		}
		if len(got) > 3 && got[2] == "running 100 1" { // unless it comes with the end
			got = append(got[:2], got[3:]...)
		}
		if diff := cmp.Diff([]string{"delayed", "running 100 0", "done 100 1"}, got); diff != "" {
			t.Error(diff)
		}
		for _, err := range other.Watch(within(t), id) {
			wantErr(t, err, queue.ErrUnknownJob)
		}
	})
}

// A handler that says much costs no command more than one that says nothing, and only the end of it is kept.
func TestNotesCostNoCommandAndAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var commands [3]int64 // the first one loads the scripts
		for talks := range commands {
			client := &counting{UniversalClient: server}
			q, err := queue.New(client, fmt.Sprint(talks))
			must(t, err)
			w := q.Worker("w")
			note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
				for i := range 600 {
					if talks == 2 {
						j.Progress(float64(i)/6, "step")
						j.Logf("%d %s", i, strings.Repeat(`"`, i*20))
					}
					time.Sleep(100 * time.Millisecond)
				}
				return queue.None{}, nil
			})
			stop := start(t, w)
			id := enqueue(t, q, "a", queue.Retain(time.Hour))
			time.Sleep(2 * time.Minute)
			info := becomes(t, q, id, queue.Done)
			commands[talks] = client.calls.Load()
			if talks == 2 {
				size := 0
				for _, line := range info.Log {
					size += len(line.Text)
				}
				if last := info.Log[len(info.Log)-1].Text; !strings.HasPrefix(last, "599 ") || size > 8<<10 || size < 6<<10 {
					t.Errorf("%d bytes are kept in %d lines, the last is %.10q", size, len(info.Log), last)
				}
			}
			stop()
			must(t, q.Close())
		}
		if commands[2] > commands[1]+5 { // what else happens at the same time is in one call or in two
			t.Errorf("%d commands without notes, %d with", commands[1], commands[2])
		}
	})
}

// What was said in a call that got lost is said again.
func TestNotesSurviveALostCall(t *testing.T) {
	inBubble(t, func(t *testing.T, server redis.UniversalClient) {
		var cut atomic.Bool
		q, err := queue.New(&deaf{server, &cut}, "app")
		must(t, err)
		w := q.Worker("w")
		note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
			cut.Store(true)
			j.Logf("first")
			time.Sleep(7 * time.Second)
			cut.Store(false)
			time.Sleep(20 * time.Second)
			return queue.None{}, nil
		})
		stop := start(t, w)
		id := enqueue(t, q, "a")
		time.Sleep(17 * time.Second)
		if info := becomes(t, q, id, queue.Running); len(info.Log) != 1 || info.Log[0].Text != "first" {
			t.Errorf("the log is %+v", info.Log)
		}
		stop()
		must(t, q.Close())
	})
}
