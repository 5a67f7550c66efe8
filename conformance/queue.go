package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/queue"
)

// ExerciseQueue has a server keep what the queue promises (docs/queue/promises.md), each under its number. What is about
// one server's scripts alone is tested where they are; here it is about processes, messages and time.
func ExerciseQueue(t *testing.T, dial Dial) {
	t.Helper()
	for name, keep := range map[string]func(*queueBench){
		"Q2 Q3 jobs run, and their results come back": jobsRun,
		"Q4 a limit per key holds":                    limitPerKeyHolds,
		"Q5 a worker that dies is replaced":           deadWorkerIsReplaced,
		"Q7 an idle worker is handed a job":           idleWorkerIsHanded,
		"Q7 a delayed job runs":                       delayedJobRuns,
		"Q10 a tick makes one job":                    tickMakesOneJob,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard(t, 4*patience)
			ctx, done := context.WithTimeout(t.Context(), 2*patience)
			t.Cleanup(done)
			keep(&queueBench{T: t, ctx: ctx, dial: dial, name: strings.ReplaceAll(t.Name(), "/", ":")})
		})
	}
}

// echo is the kind of the jobs here.
var echo = queue.Define[string, string]("echo", queue.Retain(time.Minute))

type queueBench struct {
	*testing.T
	ctx  context.Context
	dial Dial
	name string
}

// process is a door to the queue over a client of its own, as another process would have it.
func (b *queueBench) process(settings ...queue.Setting) (*queue.Queue, redis.UniversalClient) {
	b.Helper()
	client := b.dial(b.T)
	q, err := queue.New(client, b.name, settings...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := q.Close(); err != nil {
			b.Error(err)
		}
	})
	return q, client
}

func (b *queueBench) enqueue(q *queue.Queue, text string, options ...queue.Option) queue.Enqueued[string] {
	b.Helper()
	job, err := echo.Enqueue(b.ctx, q, text, options...)
	if err != nil {
		b.Fatal(err)
	}
	return job
}

func (b *queueBench) wait(job queue.Enqueued[string]) string {
	b.Helper()
	text, err := job.Wait(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// start runs a worker until the end of the test. It returns a function that waits for how Run ended.
func (b *queueBench) start(q *queue.Queue, slots int, handle func(context.Context, *queue.Job[string]) (string, error)) func() error {
	w := q.Worker("w", queue.Slots(slots))
	echo.Handle(w, handle)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = w.Run(ctx)
	}()
	b.Cleanup(func() {
		stop()
		<-ended
	})
	return func() error {
		<-ended
		return err
	}
}

// same returns what it was given.
func same(_ context.Context, j *queue.Job[string]) (string, error) { return j.Args, nil }

// sound wants nothing to be torn.
func (b *queueBench) sound(q *queue.Queue) {
	b.Helper()
	found, err := q.Check(b.ctx, false)
	if err != nil || len(found) > 0 {
		b.Errorf("Q1: Check finds %v, %v", found, err)
	}
}

func jobsRun(b *queueBench) {
	producer, _ := b.process()
	var requests []queue.Request
	for i := range 50 {
		requests = append(requests, echo.With(fmt.Sprint(i)))
	}
	outcomes, err := producer.EnqueueMany(b.ctx, requests...)
	if err != nil {
		b.Fatal(err)
	}
	worker, _ := b.process()
	b.start(worker, 5, same)
	for i, o := range outcomes {
		if got := b.wait(echo.Job(producer, o.ID)); got != fmt.Sprint(i) || o.Err != nil {
			b.Errorf("job %d returned %q, %v", i, got, o.Err)
		}
	}
	b.sound(producer)
}

func limitPerKeyHolds(b *queueBench) {
	producer, _ := b.process()
	if err := producer.Configure(b.ctx, queue.Limit(queue.EachKey, 2)); err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	running := map[string]int{}
	for range 2 {
		worker, _ := b.process()
		b.start(worker, 5, func(_ context.Context, j *queue.Job[string]) (string, error) {
			mu.Lock()
			if running[j.Key]++; running[j.Key] > 2 {
				b.Errorf("Q4: %d jobs of key %s run at once", running[j.Key], j.Key)
			}
			mu.Unlock()
			time.Sleep(time.Millisecond) // work
			mu.Lock()
			defer mu.Unlock()
			running[j.Key]--
			return j.Args, nil
		})
	}
	var all []queue.Enqueued[string]
	for i := range 60 {
		all = append(all, b.enqueue(producer, "x", queue.Key(fmt.Sprint(i%3))))
	}
	for _, job := range all {
		b.wait(job)
	}
	b.sound(producer)
}

// A worker whose connections end without a word is, to a server, a process that was killed.
func deadWorkerIsReplaced(b *queueBench) {
	lease := queue.Lease(2 * time.Second)
	doomed, client := b.process(lease)
	begun := make(chan struct{}, 1)
	ended := b.start(doomed, 1, func(ctx context.Context, _ *queue.Job[string]) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	producer, _ := b.process()
	job := b.enqueue(producer, "orphan")
	<-begun

	others, _ := b.process(lease)
	crashes, release := make(chan int, 2), make(chan struct{})
	b.start(others, 2, func(_ context.Context, j *queue.Job[string]) (string, error) {
		if j.Args == "other" {
			<-release
		}
		crashes <- j.Crashes
		return j.Args, nil
	})
	other := b.enqueue(producer, "other") // runs all the time
	if err := client.Close(); err != nil {
		b.Fatal(err)
	}
	if err := ended(); !errors.Is(err, redis.ErrClosed) {
		b.Errorf("a worker without a client ends with %v", err)
	}
	b.wait(job)
	if n := <-crashes; n != 1 {
		b.Errorf("Q5: the job counts %d crashes, want 1", n)
	}
	close(release)
	b.wait(other)
	if n := <-crashes; n != 0 {
		b.Errorf("Q5: the job of a worker that lives counts %d crashes", n)
	}
	b.sound(producer)
}

// The next heartbeat is minutes away: what runs within the test was handed over by a message.
func idleWorkerIsHanded(b *queueBench) {
	worker, _ := b.process(queue.Lease(time.Hour))
	b.start(worker, 1, same)
	producer, _ := b.process()
	for range 20 {
		b.wait(b.enqueue(producer, "x"))
	}
}

func delayedJobRuns(b *queueBench) {
	worker, _ := b.process(queue.Lease(time.Hour))
	b.start(worker, 1, same)
	producer, _ := b.process()
	b.wait(b.enqueue(producer, "first"))
	b.wait(b.enqueue(producer, "later", queue.In(200*time.Millisecond)))
}

func tickMakesOneJob(b *queueBench) {
	seen := make(chan string, 100)
	var processes []*queue.Queue
	for range 3 {
		q, _ := b.process()
		b.start(q, 2, func(_ context.Context, j *queue.Job[string]) (string, error) {
			seen <- j.ID
			return "", nil
		})
		if err := q.Schedule(b.ctx, "each second", queue.Every(time.Second), queue.RunLast, echo.With("tick")); err != nil {
			b.Fatal(err)
		}
		processes = append(processes, q)
	}
	ticks := map[string]bool{}
	for len(ticks) < 3 {
		select {
		case id := <-seen:
			if ticks[id] {
				b.Errorf("Q10: %s ran twice", id)
			}
			ticks[id] = true
		case <-b.ctx.Done():
			b.Fatalf("only these ticks came: %v", ticks)
		}
	}
	if err := processes[0].Unschedule(b.ctx, "each second"); err != nil {
		b.Error(err)
	}
}
