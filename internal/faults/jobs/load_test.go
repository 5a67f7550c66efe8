//go:build unix

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/queue"
)

// A load is producers and workers on a queue, and a note of every job that was acknowledged and of every run. At the end
// each job has run (Q3), and none a second time but one whose worker had lost its lease (Q2, Q5); no key was over its limit
// (Q4); and Check finds nothing (Q1).

const (
	keys      = 5
	limit     = 2 // of each key
	producers = 2
	doors     = 2
)

var note = queue.Define[string, queue.None]("note", queue.MaxAttempts(1))

type load struct {
	t                *testing.T
	client           *redis.Client   // past the proxy
	making           context.Context // ends when no more is to be enqueued
	stop             context.CancelFunc
	working          context.Context
	leave            context.CancelFunc
	ending           []func()
	producing, tasks sync.WaitGroup
	failing          atomic.Int64 // calls of workers that a fault made fail
	lossy            bool         // the server loses its data: only what came after that counts, and limits do not

	mu      sync.Mutex
	era     int
	made    int
	acked   map[string]int    // job -> era
	runs    map[string][]*run // by job
	running map[string]int    // by key
	over    int
	wrong   string
}

// run is one time that a job ran. It is excused if its worker has lost its lease since: then others may run it.
type run struct {
	worker  string
	excused bool
}

func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// start begins a load through url on the server at addr, and returns when jobs run.
func start(t *testing.T, url, addr string) *load {
	t.Helper()
	l := &load{t: t, client: dial(t, addr), acked: map[string]int{}, runs: map[string][]*run{}, running: map[string]int{}}
	l.making, l.stop = context.WithCancel(context.Background())
	l.working, l.leave = context.WithCancel(context.Background())
	t.Cleanup(l.end)
	q := l.open(url)
	must(t, q.Configure(faults.Patient(t), queue.Limit(queue.EachKey, limit)))
	for i := range doors {
		l.workOn(l.open(url), fmt.Sprint("worker", i))
	}
	for i := range producers {
		l.producing.Go(func() { l.produce(q, i) })
	}
	l.Done(20)
	return l
}

func (l *load) open(url string) (q *queue.Queue) {
	l.t.Helper()
	var err error
	faults.Await(l.t, "a queue", func() bool {
		q, err = queue.Open(l.t.Context(), url, "app", queue.Lease(10*time.Second))
		return err == nil || !errors.Is(err, queue.ErrUnavailable)
	})
	must(l.t, err)
	l.ending = append(l.ending, func() {
		if err := q.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return q
}

func (l *load) workOn(q *queue.Queue, name string) {
	w := q.Worker(name, queue.Slots(8), queue.Observe(func(e queue.Event) { l.observe(e, name) }))
	note.Handle(w, func(ctx context.Context, j *queue.Job[string]) (queue.None, error) {
		l.begins(j.ID, j.Key, name)
		defer l.ends(j.Key)
		return queue.None{}, nil
	})
	l.tasks.Go(func() {
		if err := w.Run(l.working); err != nil && !errors.Is(err, queue.ErrUnavailable) {
			l.t.Errorf("%s: %v", name, err)
		}
	})
}

func (l *load) observe(e queue.Event, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.What {
	case queue.Failing:
		l.failing.Add(1)
	case queue.LeaseLost:
		for _, runs := range l.runs {
			for _, r := range runs {
				r.excused = r.excused || r.worker == name
			}
		}
	}
}

func (l *load) begins(id, key, worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs[id] {
		if !r.excused && !l.lossy {
			l.violated("Q2: %s ran by %s, which has not lost its lease, and runs again by %s", id, r.worker, worker)
		}
	}
	l.runs[id] = append(l.runs[id], &run{worker: worker})
	if l.running[key]++; l.running[key] > limit && !l.lossy {
		l.violated("Q4: %d jobs of %s run at once", l.running[key], key)
	}
}

func (l *load) ends(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[key]--
	l.over++
}

// violated notes a violation; the first one counts. Called with mu held.
func (l *load) violated(format string, args ...any) {
	if l.wrong == "" {
		l.wrong = fmt.Sprintf(format, args...)
	}
}

// produce enqueues small batches, each again under its ids until it is acknowledged.
func (l *load) produce(q *queue.Queue, producer int) {
	for n := 0; l.making.Err() == nil; n++ {
		var requests []queue.Request
		var made []string
		for i := range 1 + n%4 {
			id := fmt.Sprintf("p%d-%d-%d", producer, n, i)
			made = append(made, id)
			requests = append(requests, note.With(id, queue.ID(id), queue.Key(fmt.Sprint("k", (n+i)%keys)), queue.Priority(n%3)))
		}
		for l.enqueue(q, requests, made) != nil && l.making.Err() == nil {
		}
		l.keepUp()
	}
}

func (l *load) enqueue(q *queue.Queue, requests []queue.Request, made []string) error {
	l.mu.Lock()
	era := l.era
	l.mu.Unlock()
	_, err := q.EnqueueMany(l.making, requests...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		for _, id := range made {
			l.acked[id] = era
		}
		l.made += len(made)
	}
	return err
}

// keepUp waits while the backlog is long.
func (l *load) keepUp() {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for l.making.Err() == nil {
		l.mu.Lock()
		behind := l.made - l.over
		l.mu.Unlock()
		if behind < 200 {
			return
		}
		<-again.C
	}
}

// Done waits until so many more jobs have run.
func (l *load) Done(n int) {
	l.t.Helper()
	l.mu.Lock()
	goal := l.over + n
	l.mu.Unlock()
	faults.Await(l.t, fmt.Sprintf("the end of %d more jobs", n), func() bool { return l.ended() >= goal })
}

func (l *load) ended() int {
	l.t.Helper()
	l.mu.Lock()
	over, wrong := l.over, l.wrong
	l.mu.Unlock()
	if wrong != "" {
		l.t.Fatal(wrong)
	}
	return over
}

// Failures waits until so many more calls of workers have failed.
func (l *load) Failures(n int64) {
	l.t.Helper()
	goal := l.failing.Load() + n
	faults.Await(l.t, "calls that fail", func() bool { return l.failing.Load() >= goal })
}

// Losing is a time in which the server loses what it has: what was enqueued before need not run.
func (l *load) Losing(act func()) {
	l.mu.Lock()
	l.lossy = true
	l.era++
	l.mu.Unlock()
	act()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.era++
	l.over = l.made // what is lost never ends
}

// Repeat does something between jobs, until n times have passed.
func (l *load) Repeat(times, jobs int, act func()) {
	l.t.Helper()
	for range times {
		act()
		l.Done(jobs)
	}
}

// Finish waits until all that counts has run, and looks at what is left.
func (l *load) Finish() {
	l.t.Helper()
	l.Done(50)
	l.stop()
	l.producing.Wait()
	faults.Await(l.t, "a run of every job that was acknowledged: Q3", func() bool {
		l.ended()
		return len(l.missing()) == 0
	})
	q := l.open("redis://" + l.client.Options().Addr)
	faults.Await(l.t, "the end of every job: Q7", func() bool {
		stats, err := q.Stats(faults.Patient(l.t))
		must(l.t, err)
		return stats.Waiting+stats.Running+stats.Later == 0
	})
	found, err := q.Check(faults.Patient(l.t), false)
	must(l.t, err)
	if len(found) > 0 {
		l.t.Errorf("Q1: torn: %v", found)
	}
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrong != "" {
		l.t.Error(l.wrong)
	}
	again := 0
	for _, runs := range l.runs {
		again += len(runs) - 1
	}
	l.t.Logf("%d jobs, %d second runs, %d calls of workers failed", len(l.acked), again, l.failing.Load())
}

// missing are the jobs that count and have not run.
func (l *load) missing() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, era := range l.acked {
		if era == l.era && len(l.runs[id]) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// end ends producers and workers. Ending again does nothing.
func (l *load) end() {
	l.stop()
	l.producing.Wait()
	l.leave()
	l.tasks.Wait()
	for _, end := range slices.Backward(l.ending) {
		end()
	}
	l.ending = nil
}
