//go:build unix

package move_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/move"
	"github.com/signalbox-io/signalbox/queue"
)

// The move under load: clients of locks and workers of a queue know the source's URL only. Whatever is killed, no permit is
// held twice, tokens increase, and each job that was acknowledged runs.

// jobs is a producer and the workers of a queue.
type jobs struct {
	t     *testing.T
	ends  []func() error
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu    sync.Mutex
	acked map[string]bool
	runs  map[string]int
	lost  bool // a worker has lost a lease: then a job may run again
}

var note = queue.Define[string, queue.None]("note", queue.MaxAttempts(1))

const slots = 20

func startJobs(t *testing.T, url string) *jobs {
	t.Helper()
	j := &jobs{t: t, acked: map[string]bool{}, runs: map[string]int{}}
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	t.Cleanup(j.end)
	q := j.open(url)
	w := j.open(url).Worker("worker", queue.Slots(slots), queue.Observe(func(e queue.Event) {
		if e.What == queue.LeaseLost {
			j.mu.Lock()
			j.lost = true
			j.mu.Unlock()
		}
	}))
	note.Handle(w, func(_ context.Context, job *queue.Job[string]) (queue.None, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.runs[job.ID]++
		return queue.None{}, nil
	})
	j.tasks.Go(func() {
		if err := w.Run(ctx); err != nil && !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("worker: %v", err)
		}
	})
	j.tasks.Go(func() { j.produce(ctx, q) })
	j.more(20)
	return j
}

func (j *jobs) open(url string) (q *queue.Queue) {
	j.t.Helper()
	var err error
	faults.Await(j.t, "a queue", func() bool {
		q, err = queue.Open(j.t.Context(), url, "app", queue.Lease(10*time.Second))
		return err == nil || !errors.Is(err, queue.ErrUnavailable)
	})
	must(j.t, err)
	j.ends = append(j.ends, q.Close)
	return q
}

// produce enqueues each job again under its id until it is acknowledged.
func (j *jobs) produce(ctx context.Context, q *queue.Queue) {
	for n := 0; ctx.Err() == nil; n++ {
		id := "job" + strconv.Itoa(n)
		for ctx.Err() == nil {
			if _, err := q.EnqueueMany(ctx, note.With(id, queue.ID(id))); err == nil {
				j.mu.Lock()
				j.acked[id] = true
				j.mu.Unlock()
				break
			}
		}
	}
}

// more waits until so many more jobs have run.
func (j *jobs) more(n int) {
	j.t.Helper()
	ran := func() int {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.runs)
	}
	goal := ran() + n
	faults.Await(j.t, "jobs that run", func() bool { return ran() >= goal })
}

// finish waits until all have run.
func (j *jobs) finish() {
	j.t.Helper()
	j.more(20)
	faults.Await(j.t, "a run of every job that was acknowledged", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		for id := range j.acked {
			if j.runs[id] == 0 {
				return false
			}
		}
		return true
	})
	j.mu.Lock()
	again := 0
	for id, n := range j.runs {
		if again += n - 1; n > 1 && !j.lost {
			j.t.Errorf("Q2: %s ran %d times, and no worker lost its lease", id, n)
		}
	}
	j.t.Logf("%d jobs, %d second runs", len(j.acked), again)
	j.mu.Unlock()
	j.end()
}

func (j *jobs) end() {
	j.stop()
	j.tasks.Wait()
	for _, end := range j.ends {
		if err := end(); err != nil && !errors.Is(err, queue.ErrUnavailable) {
			j.t.Error(err)
		}
	}
	j.ends = nil
}

// kinds are the pairs of servers, and how the data goes.
var kinds = []struct{ from, to, by string }{
	{"engine", "redis", move.ByReplicaOf},
	{"redis", "engine", move.ByRestore},
	{"redis", "redis", move.ByRestore},
	{"engine", "engine", move.ByReplicaOf},
	{"engine", "redis", move.ByRestore},
	{"redis", "engine", move.ByReplicaOf},
}

// TestMoveUnderLoad is a few rounds; MOVE_ROUNDS says how many, and SEED what happens in them.
func TestMoveUnderLoad(t *testing.T) {
	rounds, seed := 3, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("MOVE_ROUNDS")); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("SEED=%d", seed)
	for i := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		kind := kinds[i%len(kinds)]
		t.Run(fmt.Sprintf("%d-%s-%s-%s", i, kind.from, kind.to, kind.by), func(t *testing.T) {
			from, to := start(t, kind.from), start(t, kind.to)
			fill(t, dial(t, from.Addr), 20_000)
			load := faults.StartLoad(t, faults.Setup{
				URL: url(from), Well: url(to), PerBox: 33,
				Servers: func() []*redis.Client { return nil }, // the queue's keys are there as well
			})
			work := startJobs(t, url(from))
			moveAmidKills(t, r, from, to, kind.by)
			work.finish()
			load.Finish()
		})
	}
}

// fill writes keys, so that a move takes its time.
func fill(t *testing.T, client *redis.Client, n int) {
	t.Helper()
	for n > 0 {
		_, err := client.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for range min(n, 1000) {
				pipe.Set(t.Context(), "fill"+strconv.Itoa(n), strings.Repeat("x", 50), 0)
				n--
			}
			return nil
		})
		must(t, err)
	}
}

// moveAmidKills moves again and again while something is killed each time, and at last in peace.
func moveAmidKills(t *testing.T, r *rand.Rand, from, to *difftest.Server, by string) {
	t.Helper()
	for attempt := 0; ; attempt++ {
		mover := faults.StartChild(t, moveFrom+"="+url(from), moveTo+"="+url(to), moveBy+"="+by)
		victim := r.IntN(4)
		if attempt < 2 && victim < 3 {
			after := time.NewTimer(time.Duration(r.IntN(1200)) * time.Millisecond)
			<-after.C
			switch victim {
			case 0:
				from.Kill()
				from.Restart()
			case 1:
				to.Kill()
				to.Restart()
			case 2:
				mover.Kill(t)
			}
			t.Logf("attempt %d: killed %s", attempt, []string{"the source", "the target", "the move"}[victim])
		}
		said := mover.Rest(t)
		t.Logf("attempt %d: %s", attempt, said)
		switch {
		case strings.Contains(said, "moved"), strings.Contains(said, "was closed by a move that came to its end"):
			return
		case attempt > 6:
			t.Fatal("it does not come to its end")
		}
	}
}
