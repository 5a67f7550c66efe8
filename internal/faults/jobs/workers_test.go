//go:build unix

package jobs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/queue"
)

// What happens to workers. They are processes of their own here: this test binary once more. A child says when a job begins
// ("begins job token") and when its context has ended ("ended job cause"); a job ends when the child is told to end it, or
// at once if the child is told so at the beginning.

const shortLease = 3 * time.Second // longer than a busy machine keeps a worker from its renewals

// workAsChild is what the process does. It is told "end" once for each job that is to end, or "all" for all to come.
func workAsChild(url string) error {
	q, err := queue.Open(context.Background(), url, "app", queue.Lease(shortLease))
	if err != nil {
		return err
	}
	w := q.Worker("child", queue.Slots(4), queue.Observe(func(e queue.Event) {
		if e.What == queue.LeaseLost || e.What == queue.ReportedLate {
			fmt.Println("event", e.What)
		}
	}))
	end := make(chan struct{})
	note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
		fmt.Println("begins", j.ID, j.Token)
		select {
		case <-end:
		case <-ctx.Done():
			fmt.Println("ended", errors.Is(context.Cause(ctx), queue.ErrLeaseLost))
			<-end
		}
		return queue.None{}, nil
	})
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if in.Text() == "all" {
				close(end)
				return
			}
			end <- struct{}{}
		}
		os.Exit(0) // the parent has gone
	}()
	return w.Run(context.Background())
}

func startWorker(t *testing.T, url string) *faults.Child {
	t.Helper()
	return faults.StartChild(t, workerURL+"="+url)
}

// line waits for a line that begins with a word.
func line(t *testing.T, c *faults.Child, word string) []string {
	t.Helper()
	for {
		if words := strings.Fields(c.Line(t)); len(words) > 0 && words[0] == word {
			return words
		}
	}
}

// TestJobsWorkerKilled: what it ran is given to others once its lease is over, and nothing else runs twice.
func TestJobsWorkerKilled(t *testing.T) {
	faults.Begin(t)
	s := difftest.Redis(t)
	url := "redis://" + s.Addr
	q, err := queue.Open(t.Context(), url, "app", queue.Lease(shortLease))
	must(t, err)
	defer q.Close()
	must(t, q.Configure(t.Context(), queue.Crashes(100)))
	const most = 60
	for round := range 3 {
		doomed := startWorker(t, url)
		var requests []queue.Request
		for i := range most {
			requests = append(requests, note.With("", queue.ID(fmt.Sprint(round, "-", i))))
		}
		_, err = q.EnqueueMany(t.Context(), requests...)
		must(t, err)
		held := map[string]bool{}
		for range 4 {
			held[line(t, doomed, "begins")[1]] = true
		}
		doomed.Kill(t)
		ran := othersRun(t, q, most)
		for id, n := range ran {
			if n != 1 {
				t.Errorf("Q2: %s ran %d times after the death of a worker", id, n)
			}
			delete(held, id)
		}
		if len(held) > 0 {
			t.Errorf("Q5: these ran by the worker that was killed, and not again: %v", held)
		}
	}
	stats, err := q.Stats(t.Context())
	must(t, err)
	if crashed := stats.Kinds[0].Crashed; crashed != 12 {
		t.Errorf("Q5: %d jobs were returned by deaths, want 4 of each worker", crashed)
	}
	found, err := q.Check(t.Context(), false)
	must(t, err)
	if len(found) > 0 {
		t.Errorf("Q1: %v", found)
	}
}

// othersRun has a worker of this process run so many jobs, and counts how often each did.
func othersRun(t *testing.T, q *queue.Queue, n int) map[string]int {
	t.Helper()
	var mu sync.Mutex
	ran, all := map[string]int{}, make(chan struct{})
	w := q.Worker("other", queue.Slots(4))
	note.Handle(w, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[j.ID]++
		if len(ran) == n {
			close(all)
		}
		return queue.None{}, nil
	})
	ctx, stop := context.WithCancel(faults.Patient(t))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	faults.Awaited(t, "the end of all jobs", all)
	stop()
	must(t, faults.Awaited(t, "the end of the worker", ended))
	return ran
}

// TestJobsWorkerSuspended: it wakes to find that its job is another's, whose token is larger. What it reports is refused.
func TestJobsWorkerSuspended(t *testing.T) {
	faults.Begin(t)
	s := difftest.Redis(t)
	url := "redis://" + s.Addr
	q, err := queue.Open(t.Context(), url, "app", queue.Lease(shortLease))
	must(t, err)
	defer q.Close()
	job, err := note.Enqueue(t.Context(), q, "", queue.Retain(time.Hour))
	must(t, err)
	first := startWorker(t, url)
	earlier := line(t, first, "begins")
	must(t, first.Process.Signal(syscall.SIGSTOP))
	second := startWorker(t, url)
	later := line(t, second, "begins")
	if before, after := number(t, earlier[2]), number(t, later[2]); earlier[1] != later[1] || after <= before {
		t.Errorf("Q2: %v began after %v", later, earlier)
	}
	must(t, first.Process.Signal(syscall.SIGCONT))
	if words := line(t, first, "ended"); words[1] != "true" {
		t.Errorf("the context of a job whose worker slept ended otherwise than with ErrLeaseLost")
	}
	first.Tell(t, "end") // its report does not count
	stats, err := q.Stats(t.Context())
	must(t, err)
	if stats.Running != 1 {
		t.Errorf("Q1: %d jobs run, want that of the second worker", stats.Running)
	}
	second.Tell(t, "all")
	_, err = job.Wait(faults.Patient(t))
	must(t, err)
	stats, err = q.Stats(t.Context())
	must(t, err)
	if done := stats.Kinds[0].Done; done != 1 {
		t.Errorf("Q2: it was done %d times", done)
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return n
}

// TestJobsHandedToASleeper: a worker that wakes after its lease does not begin what it was handed in its sleep and is another's
// by now.
func TestJobsHandedToASleeper(t *testing.T) {
	faults.Begin(t)
	s := difftest.Redis(t)
	url := "redis://" + s.Addr
	q, err := queue.Open(t.Context(), url, "app", queue.Lease(shortLease))
	must(t, err)
	defer q.Close()
	first := startWorker(t, url)
	job := func(id string) queue.Enqueued[queue.None] {
		job, err := note.Enqueue(t.Context(), q, "", queue.ID(id), queue.Retain(time.Hour))
		must(t, err)
		return job
	}
	job("before")
	line(t, first, "begins")
	first.Tell(t, "end") // so it is online, and idle
	faults.Await(t, "an idle worker", func() bool {
		info, err := q.Look(t.Context(), "before")
		must(t, err)
		return info.State == queue.Done
	})
	must(t, first.Process.Signal(syscall.SIGSTOP))
	faults.Await(t, "a process that is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first.Process.Pid))
		return err != nil || strings.Contains(string(stat), ") T ")
	})
	slept := job("slept")
	info, err := q.Look(t.Context(), "slept")
	must(t, err)
	if info.State != queue.Running {
		t.Fatalf("the sleeper was not handed the job: it is %s", info.State)
	}
	second := startWorker(t, url)
	line(t, second, "begins")
	must(t, first.Process.Signal(syscall.SIGCONT))
	if said := first.Line(t); said != "event lease lost" {
		t.Errorf("Q2: the sleeper said %q", said)
	}
	second.Tell(t, "all")
	_, err = slept.Wait(faults.Patient(t))
	must(t, err)
	second.Kill(t)
	job("after")
	if words := line(t, first, "begins"); words[1] != "after" {
		t.Errorf("Q2: the sleeper began %s, which was another's", words[1])
	}
	first.Tell(t, "all")
}
