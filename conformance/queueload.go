package conformance

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

// QueueLoad is a queue at work while something happens to its servers: producers, workers, a limit for each key, a
// schedule. It watches what the promises say, and at the end wants every job to have run that was acknowledged.
type QueueLoad struct {
	t      *testing.T
	queues []*queue.Queue
	stop   context.CancelFunc // of the producers

	producers, workers sync.WaitGroup

	mu      sync.Mutex
	lossy   bool // what was acknowledged may have been lost
	acked   map[string]bool
	ran     map[string]int
	turns   int
	running map[string]int
	moved   chan struct{} // closed at the next turn
}

const (
	loadProducers = 2
	loadWorkers   = 3
	loadKeys      = 4
	loadLimit     = 2
)

// StartQueueLoad starts one, each of whose processes has a client of its own. It ends with the test at the latest.
func StartQueueLoad(t *testing.T, name string, dial func(t *testing.T) redis.UniversalClient, settings ...queue.Setting) *QueueLoad {
	t.Helper()
	l := &QueueLoad{t: t, acked: map[string]bool{}, ran: map[string]int{}, running: map[string]int{}, moved: make(chan struct{})}
	for range loadProducers + loadWorkers {
		q, err := queue.New(dial(t), name, settings...)
		if err != nil {
			t.Fatal(err)
		}
		l.queues = append(l.queues, q)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	t.Cleanup(func() {
		l.stop()
		for _, q := range l.queues {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
		l.producers.Wait()
		l.workers.Wait()
	})
	if err := l.queues[0].Configure(t.Context(), queue.Limit(queue.EachKey, loadLimit)); err != nil {
		t.Fatal(err)
	}
	if err := l.queues[0].Schedule(t.Context(), "tick", queue.Every(time.Second), queue.RunLast, echo.With("")); err != nil {
		t.Fatal(err)
	}
	for i, q := range l.queues {
		if i < loadProducers {
			l.producers.Go(func() { l.produce(ctx, i, q) })
		} else {
			l.workers.Go(func() { l.work(q) })
		}
	}
	l.Turns(50)
	return l
}

// produce enqueues until ctx ends. An enqueue that has begun is waited for, until nobody doubts it.
func (l *QueueLoad) produce(ctx context.Context, producer int, q *queue.Queue) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%d-%d", producer, i)
		_, err := echo.Enqueue(context.Background(), q, "", queue.ID(id), queue.Key(fmt.Sprint(i%loadKeys)))
		if err == nil {
			l.mu.Lock()
			l.acked[id] = true
			l.mu.Unlock()
		} else if !errors.Is(err, queue.ErrClosed) {
			l.t.Errorf("Q3: enqueue %s: %v", id, err)
		}
		select {
		case <-time.After(2 * time.Millisecond): // the pace of the load
		case <-ctx.Done():
		}
	}
}

func (l *QueueLoad) work(q *queue.Queue) {
	w := q.Worker("w", queue.Slots(4))
	echo.Handle(w, func(ctx context.Context, j *queue.Job[string]) (string, error) {
		l.begin(j)
		select {
		case <-time.After(time.Millisecond): // work
		case <-ctx.Done():
		}
		l.end(j)
		return "", ctx.Err()
	})
	if err := w.Run(context.Background()); err != nil && !errors.Is(err, queue.ErrClosed) {
		l.t.Errorf("a worker ended: %v", err)
	}
}

func (l *QueueLoad) begin(j *queue.Job[string]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ran[j.ID]++
	if j.Key == "" {
		return
	}
	if l.running[j.Key]++; l.running[j.Key] > loadLimit && !l.lossy {
		l.t.Errorf("Q4: %d jobs of key %s run at once", l.running[j.Key], j.Key)
	}
}

func (l *QueueLoad) end(j *queue.Job[string]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.Key != "" {
		l.running[j.Key]--
	}
	l.turns++
	close(l.moved)
	l.moved = make(chan struct{})
}

// Turns waits until so many more jobs have run.
func (l *QueueLoad) Turns(n int) {
	l.t.Helper()
	l.mu.Lock()
	goal := l.turns + n
	l.mu.Unlock()
	l.Until(fmt.Sprintf("%d more jobs", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.turns >= goal
	})
}

// Until waits for something, looking at each turn and from time to time.
func (l *QueueLoad) Until(what string, ok func() bool) {
	l.t.Helper()
	late := time.After(2 * patience)
	for !ok() {
		l.mu.Lock()
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-time.After(20 * time.Millisecond):
		case <-late:
			l.t.Fatalf("not within %v: %s", 2*patience, what)
		}
	}
}

// Losing has something happen that may lose what the server has acknowledged last. From then on nothing can be said of how
// often a job runs, nor of limits: jobs may run that the server does not know to run.
func (l *QueueLoad) Losing(happen func()) {
	l.t.Helper()
	l.mu.Lock()
	l.lossy = true
	l.mu.Unlock()
	happen()
}

// Finish stops the producers and wants all they have enqueued to have run, and nothing to be left or torn.
func (l *QueueLoad) Finish() {
	l.t.Helper()
	l.stop()
	l.producers.Wait()
	ctx, done := context.WithTimeout(l.t.Context(), 3*patience)
	defer done()
	q := l.queues[0]
	if err := q.Unschedule(ctx, "tick"); err != nil && !l.lossy {
		l.t.Error(err)
	}
	l.Until("nothing is left to run", func() bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Waiting+s.Running+s.Later == 0
	})
	found, err := q.Check(ctx, false)
	if err != nil || len(found) > 0 {
		l.t.Errorf("Q1: Check finds %v, %v", found, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	missing, twice := 0, 0
	for id := range l.acked {
		if l.ran[id] == 0 {
			missing++
		}
	}
	for _, n := range l.ran {
		if n > 1 {
			twice++
		}
	}
	l.t.Logf("%d jobs, %d never ran, %d more than once", len(l.acked), missing, twice)
	if missing > 0 && !l.lossy {
		l.t.Errorf("Q3: %d of %d jobs that were acknowledged never ran", missing, len(l.acked))
	}
	if twice > 0 && !l.lossy { // no worker has died
		l.t.Errorf("Q2: %d of %d jobs ran more than once", twice, len(l.ran))
	}
}
