package outbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/queue"
)

// childEnv has the test program be a relay, in another process: "kill" stops after each call and says so.
const childEnv = "SIGNALBOX_OUTBOX_TEST_RELAY"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	postgrestest.CloseShared()
	os.Exit(code)
}

// child is a relay that stands still between the queue's answer and the database's commit, until it is told to go on.
func child() error {
	afterEnqueue = func() {
		fmt.Println("enqueued")
		_, _ = os.Stdin.Read(make([]byte, 1)) // it is killed before or after
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	q, err := queue.Open(ctx, os.Getenv("SERVER"), "app")
	if err != nil {
		return err
	}
	box, err := signalbox.Open(ctx, os.Getenv("SERVER"))
	if err != nil {
		return err
	}
	relay, err := NewRelay(pool, q, box.Election(os.Getenv(childEnv)), Batch(20))
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// relayProcess is one of its own.
type relayProcess struct {
	enqueued chan struct{} // something after each call, when it stands still
	proceed  io.Writer
	kill     func()
}

// startChild starts a relay process that campaigns in an election.
func startChild(t *testing.T, w *world, election string) *relayProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+election, "DATABASE="+w.pool.Config().ConnString(), "SERVER="+w.server)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan struct{})
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- struct{}{}
		}
		close(lines)
	}()
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have failed
		for range lines {
		}
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(kill)
	return &relayProcess{lines, in, kill}
}

// await waits for the next call.
func (p *relayProcess) await(t *testing.T) {
	t.Helper()
	select {
	case _, ok := <-p.enqueued:
		if !ok {
			t.Fatal("the relay has ended")
		}
	case <-time.After(patience):
		t.Fatal("the relay does nothing")
	}
}

// world is a database with an outbox, a Redis, and a worker that notes what runs.
type world struct {
	pool   *pgxpool.Pool
	server string
	queue  *queue.Queue
	box    *signalbox.Box

	mu      sync.Mutex
	changed *sync.Cond
	ran     []string
}

var (
	note = queue.Define[string, queue.None]("note", queue.Backoff(func(int) time.Duration { return time.Millisecond }))
	hour = Look(time.Hour) // so that only notifications tell
)

func newWorld(t *testing.T, pool *pgxpool.Pool, redis *difftest.Server) *world {
	t.Helper()
	w := &world{pool: pool, server: "redis://" + redis.Addr}
	w.changed = sync.NewCond(&w.mu)
	var err error
	// What its worker has is another's only after longer than a busy machine holds the worker up: each job is to run once.
	w.queue, err = queue.Open(t.Context(), w.server, "app", queue.Lease(time.Minute))
	must(t, err)
	t.Cleanup(func() { must(t, w.queue.Close()) })
	w.box, err = signalbox.Open(t.Context(), w.server)
	must(t, err)
	t.Cleanup(func() { must(t, w.box.Close()) })
	return w
}

func plainWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, outboxIn(t, postgrestest.Shared(t)), difftest.Redis(t))
}

// during runs something until the test ends.
func during(t *testing.T, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// work runs a worker that notes the arguments of jobs.
func (w *world) work(t *testing.T, slots int) {
	t.Helper()
	worker := w.queue.Worker("w", queue.Slots(slots))
	note.Handle(worker, func(_ context.Context, j *queue.Job[string]) (queue.None, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran = append(w.ran, j.Args)
		w.changed.Broadcast()
		return queue.None{}, nil
	})
	during(t, worker.Run)
}

// relay runs a relay. What troubles it is told to trouble, or fails the test.
func (w *world) relay(t *testing.T, election string, options ...Option) (stop func()) {
	t.Helper()
	unexpected := Trouble(func(err error) { t.Errorf("the relay is in trouble: %v", err) })
	relay, err := NewRelay(w.pool, w.queue, w.box.Election(election), append([]Option{unexpected, hour}, options...)...)
	must(t, err)
	return during(t, relay.Run)
}

// quiet is for relays that are bound to be in trouble.
var quiet = Trouble(func(error) {})

// await waits until all of these have run, and fails if anything has run twice.
func (w *world) await(t *testing.T, want []string) {
	t.Helper()
	giveUp := time.AfterFunc(patience, func() { w.mu.Lock(); w.changed.Broadcast(); w.mu.Unlock() })
	begun := time.Now()
	defer giveUp.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ran) < len(want) && time.Since(begun) < patience {
		w.changed.Wait()
	}
	w.same(t, want)
}

// same compares what has run. Called with mu held.
func (w *world) same(t *testing.T, want []string) {
	t.Helper()
	counts := map[string]int{}
	for _, id := range w.ran {
		counts[id]++
	}
	for _, id := range want {
		counts[id]--
	}
	for id, n := range counts {
		if n != 0 {
			t.Errorf("%.40q ran %+d times too often", id, n)
		}
	}
}

// settle waits until the outbox is empty and so is the queue, and checks that what ran is what was to run.
func (w *world) settle(t *testing.T, want []string) {
	t.Helper()
	w.settleBeside(t, want, 0)
}

// settleBeside is settle where so many jobs stay on the queue.
func (w *world) settleBeside(t *testing.T, want []string, left int) {
	t.Helper()
	w.await(t, want)
	w.awaitEmpty(t)
	w.awaitJobs(t, left)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.same(t, want)
}

// awaitEmpty waits until the outbox is empty.
func (w *world) awaitEmpty(t *testing.T) {
	t.Helper()
	for begun, rows := time.Now(), 1; rows > 0; {
		err := w.pool.QueryRow(t.Context(), "select count(*) from signalbox_outbox").Scan(&rows) // it may have been restarted
		if time.Since(begun) > patience {
			t.Fatalf("%d jobs are in the outbox: %v", rows, err)
		}
	}
}

// awaitJobs waits until the queue knows so many jobs.
func (w *world) awaitJobs(t *testing.T, want int) {
	t.Helper()
	for begun, left := time.Now(), -1; left != want; {
		var err error
		left, err = w.queue.Count(t.Context(), queue.Filter{})
		must(t, err)
		if time.Since(begun) > patience {
			t.Fatalf("%d jobs are left", left)
		}
	}
}

// commit enqueues in a transaction and commits it.
func (w *world) commit(t *testing.T, ids ...string) {
	t.Helper()
	must(t, w.transaction(t.Context(), ids...))
}

var errRollback = errors.New("as planned")

func (w *world) transaction(ctx context.Context, ids ...string) error {
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		for _, id := range ids {
			if _, err := Enqueue(ctx, tx, note, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(prefix, i)
	}
	return ids
}

// severally calls do for each of n at the same time.
func severally(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
