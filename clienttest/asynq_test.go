package clienttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hibiken/asynq"
)

// asynq keeps its queues in lists and sorted sets, moves tasks by scripts, and cancels by pub/sub. Its times have a
// resolution of seconds, so whatever is delayed is delayed by a second, or by an hour and then told to run.

// producers are what an application uses to enqueue and to look.
type producers struct {
	client    *asynq.Client
	inspector *asynq.Inspector
	redis     asynq.RedisClientOpt
}

func openAsynq(t *testing.T, addr string) producers {
	t.Helper()
	p := producers{redis: asynq.RedisClientOpt{Addr: addr, DB: 2}}
	p.client, p.inspector = asynq.NewClient(p.redis), asynq.NewInspector(p.redis)
	t.Cleanup(func() {
		if err := errors.Join(p.client.Close(), p.inspector.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p producers) enqueue(t *testing.T, kind string, options ...asynq.Option) *asynq.TaskInfo {
	t.Helper()
	info, err := p.client.EnqueueContext(t.Context(), asynq.NewTask(kind, []byte(kind)), options...)
	must(t, "enqueue "+kind, err)
	return info
}

// listed fails the test unless the inspector lists these ids. Their order is by seconds, so it is not looked at.
func listed(t *testing.T, what string, list func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error), queue string, want ...string) {
	t.Helper()
	tasks, err := list(queue)
	var ids []string
	for _, task := range tasks {
		ids = append(ids, task.ID)
	}
	slices.Sort(ids)
	check(t, what, want, ids, err)
}

// work starts a worker that looks for tasks without delay, and returns how to end it.
func (p producers) work(t *testing.T, config asynq.Config, handler asynq.Handler) (shutdown func()) {
	t.Helper()
	config.TaskCheckInterval, config.DelayedTaskCheckInterval = time.Millisecond, 10*time.Millisecond
	config.LogLevel = asynq.FatalLevel
	server := asynq.NewServer(p.redis, config)
	must(t, "start the worker", server.Start(handler))
	shutdown = sync.OnceFunc(server.Shutdown)
	t.Cleanup(shutdown)
	return shutdown
}

// runs is told of every task that is run.
type runs struct{ of chan string }

func newRuns() runs { return runs{make(chan string, 100)} }

// next waits for n runs and returns them in order.
func (r runs) next(t *testing.T, n int) []string {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	var got []string
	for range n {
		select {
		case run := <-r.of:
			got = append(got, run)
		case <-late.C:
			t.Fatalf("waited for %d runs, saw only %q", n, got)
		}
	}
	return got
}

func (r runs) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.next(t, len(want))); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAsynqRunsDelayedUniqueAndPrioritizedTasks(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		p := openAsynq(t, addr)
		p.enqueue(t, "mail", asynq.TaskID("low1"), asynq.Queue("low"))
		p.enqueue(t, "mail", asynq.TaskID("low2"), asynq.Queue("low"))
		p.enqueue(t, "mail", asynq.TaskID("mid"), asynq.Queue("default"), asynq.Retention(time.Hour))
		p.enqueue(t, "mail", asynq.TaskID("top"), asynq.Queue("critical"))
		p.enqueue(t, "mail", asynq.TaskID("soon"), asynq.ProcessIn(time.Second))
		p.enqueue(t, "mail", asynq.TaskID("far"), asynq.ProcessIn(time.Hour))
		p.enqueue(t, "once", asynq.TaskID("only"), asynq.Unique(time.Hour))
		if _, err := p.client.Enqueue(asynq.NewTask("mail", nil), asynq.TaskID("mid")); !errors.Is(err, asynq.ErrTaskIDConflict) {
			t.Fatalf("the id of a task that is there: %v", err)
		}
		if _, err := p.client.Enqueue(asynq.NewTask("once", []byte("once")), asynq.Unique(time.Hour)); !errors.Is(err, asynq.ErrDuplicateTask) {
			t.Fatalf("a task like a unique one: %v", err)
		}
		queues, err := p.inspector.Queues()
		slices.Sort(queues)
		check(t, "queues", []string{"critical", "default", "low"}, queues, err)
		listed(t, "pending", p.inspector.ListPendingTasks, "low", "low1", "low2")
		listed(t, "scheduled", p.inspector.ListScheduledTasks, "default", "far", "soon")

		ran := newRuns()
		shutdown := p.work(t, asynq.Config{Concurrency: 1, StrictPriority: true, Queues: map[string]int{"critical": 3, "default": 2, "low": 1}},
			asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
				id, _ := asynq.GetTaskID(ctx)
				if id == "mid" {
					if _, err := task.ResultWriter().Write([]byte("done with " + string(task.Payload()))); err != nil {
						return err
					}
				}
				ran.of <- id
				return nil
			}))
		// The delayed one may come at any point after its second; a slow machine may see it first.
		got := ran.next(t, 6)
		got = slices.DeleteFunc(got, func(id string) bool { return id == "soon" })
		check(t, "runs", []string{"top", "mid", "only", "low1", "low2"}, got, nil)
		must(t, "run what is due in an hour", p.inspector.RunTask("default", "far"))
		ran.want(t, "told to run", "far")
		shutdown()
		listed(t, "completed", p.inspector.ListCompletedTasks, "default", "mid")
		info, err := p.inspector.GetTaskInfo("default", "mid")
		must(t, "task info", err)
		check(t, "result", "done with mail", string(info.Result), nil)
		p.enqueue(t, "once", asynq.Unique(time.Hour)) // its lock went with the first
		servers, err := p.inspector.Servers()
		check(t, "servers after shutdown", 0, len(servers), err)
	})
}

func TestAsynqRetriesAndArchives(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		p := openAsynq(t, addr)
		ran := newRuns()
		hour := func(int, error, *asynq.Task) time.Duration { return time.Hour }
		now := func(int, error, *asynq.Task) time.Duration { return 0 }
		failing := asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			id, _ := asynq.GetTaskID(ctx)
			retried, _ := asynq.GetRetryCount(ctx)
			ran.of <- fmt.Sprintf("%s %d", id, retried)
			switch {
			case task.Type() == "hopeless":
				return fmt.Errorf("no use: %w", asynq.SkipRetry)
			case task.Type() == "twice" && retried == 2:
				return nil
			}
			return fmt.Errorf("failure %d", retried)
		})
		p.enqueue(t, "twice", asynq.TaskID("t"), asynq.MaxRetry(5))
		shutdown := p.work(t, asynq.Config{Concurrency: 1, RetryDelayFunc: now}, failing)
		ran.want(t, "retries", "t 0", "t 1", "t 2")
		p.enqueue(t, "never", asynq.TaskID("n"), asynq.MaxRetry(1))
		ran.want(t, "retries up to the limit", "n 0", "n 1")
		p.enqueue(t, "hopeless", asynq.TaskID("h"), asynq.MaxRetry(5))
		ran.want(t, "no retries", "h 0")
		shutdown()
		listed(t, "archived", p.inspector.ListArchivedTasks, "default", "h", "n")
		info, err := p.inspector.GetTaskInfo("default", "n")
		must(t, "task info", err)
		check(t, "its end", "failure 1, 1 of 1, archived", fmt.Sprintf("%s, %d of %d, %v", info.LastErr, info.Retried, info.MaxRetry, info.State), nil)

		// What waits for its retry can be seen and told to run.
		p.enqueue(t, "later", asynq.TaskID("l"), asynq.MaxRetry(5))
		shutdown = p.work(t, asynq.Config{Concurrency: 1, RetryDelayFunc: hour}, failing)
		ran.want(t, "first run", "l 0")
		shutdown()
		listed(t, "waiting for a retry", p.inspector.ListRetryTasks, "default", "l")
		n, err := p.inspector.RunAllRetryTasks("default")
		check(t, "run all", 1, n, err)
		n, err = p.inspector.RunAllArchivedTasks("default")
		check(t, "run the archived", 2, n, err)
		listed(t, "pending again", p.inspector.ListPendingTasks, "default", "h", "l", "n")
		must(t, "delete", p.inspector.DeleteTask("default", "l"))
		n, err = p.inspector.DeleteAllPendingTasks("default")
		check(t, "delete all", 2, n, err)
		must(t, "delete the queue", p.inspector.DeleteQueue("default", false))
	})
}

// TestAsynqShutsDown: a worker that ends gives back what it has not finished, and another finishes it. A task that
// runs is cancelled from elsewhere, by pub/sub.
func TestAsynqShutsDown(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		p := openAsynq(t, addr)
		ran := newRuns()
		p.enqueue(t, "long", asynq.TaskID("long"), asynq.MaxRetry(0))
		shutdown := p.work(t, asynq.Config{Concurrency: 2, ShutdownTimeout: time.Nanosecond}, asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
			ran.of <- "begun"
			<-ctx.Done()
			return ctx.Err()
		}))
		ran.want(t, "the first worker", "begun")
		listed(t, "active", p.inspector.ListActiveTasks, "default", "long")
		shutdown()
		listed(t, "given back", p.inspector.ListPendingTasks, "default", "long")

		shutdown = p.work(t, asynq.Config{Concurrency: 2}, asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
			ran.of <- "again"
			<-ctx.Done()
			ran.of <- "cancelled"
			return fmt.Errorf("cancelled: %w", asynq.SkipRetry)
		}))
		ran.want(t, "the second worker", "again")
		cancelUntil(t, p, ran)
		shutdown()
		listed(t, "archived", p.inspector.ListArchivedTasks, "default", "long")
	})
}

// cancelUntil cancels until the task has heard: the worker may subscribe after it has begun to work.
func cancelUntil(t *testing.T, p producers, ran runs) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		must(t, "cancel", p.inspector.CancelProcessing("long"))
		select {
		case run := <-ran.of:
			check(t, "after the cancel", "cancelled", run, nil)
			return
		case <-again.C:
		}
	}
}

// TestAsynqAggregatesAndSchedules: groups that are handed over as one task, and tasks of a schedule.
func TestAsynqAggregatesAndSchedules(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		p := openAsynq(t, addr)
		for _, id := range []string{"a", "b", "c"} {
			p.enqueue(t, id, asynq.TaskID(id), asynq.Group("letters"))
		}
		groups, err := p.inspector.Groups("default")
		check(t, "groups", []*asynq.GroupInfo{{Group: "letters", Size: 3}}, groups, err)
		listed(t, "aggregating", func(queue string, options ...asynq.ListOption) ([]*asynq.TaskInfo, error) {
			return p.inspector.ListAggregatingTasks(queue, "letters", options...)
		}, "default", "a", "b", "c")
		ran := newRuns()
		aggregate := func(group string, tasks []*asynq.Task) *asynq.Task {
			var kinds []string
			for _, task := range tasks {
				kinds = append(kinds, task.Type())
			}
			return asynq.NewTask(group, []byte(strings.Join(kinds, "+")))
		}
		p.work(t, asynq.Config{Concurrency: 1, GroupGracePeriod: time.Second, GroupMaxSize: 3, GroupAggregator: asynq.GroupAggregatorFunc(aggregate)},
			asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
				ran.of <- task.Type() + ": " + string(task.Payload())
				return nil
			}))
		ran.want(t, "the group", "letters: a+b+c")

		scheduler := asynq.NewScheduler(p.redis, &asynq.SchedulerOpts{Logger: silent{}, HeartbeatInterval: 10 * time.Millisecond})
		id, err := scheduler.Register("@every 1s", asynq.NewTask("tick", []byte("tock")))
		must(t, "register", err)
		must(t, "start the scheduler", scheduler.Start())
		shutdown := sync.OnceFunc(scheduler.Shutdown)
		t.Cleanup(shutdown)
		// The second tick is long after the first heartbeat, which lists the entry.
		ran.want(t, "the schedule", "tick: tock", "tick: tock")
		entries, err := p.inspector.SchedulerEntries()
		check(t, "entries", 1, len(entries), err)
		check(t, "its entry", id, entries[0].ID, nil)
		shutdown()
		entries, err = p.inspector.SchedulerEntries()
		check(t, "entries after shutdown", 0, len(entries), err)
	})
}

// silent is a logger that says nothing.
type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}

func (silent) Fatal(args ...any) { log.New(io.Discard, "", 0).Fatal(args...) }
