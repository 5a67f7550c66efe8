package examples

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/queue"
)

// Workers and producers in other languages on the same queue as those in Go. A language takes part with a program "jobs"
// beside its demo.

var jobPromises = map[string]func(*jobSite){
	"jobs of Go run there and bring results":      runThere,
	"jobs from there run in Go and bring results": runHere,
	"each job runs once in mixed company":         mixed,
	"a limit holds across languages":              limited,
	"a killed worker is replaced":                 killedWorker,
	"a job is canceled":                           canceled,
	"a worker that is told to end gives back":     ended,
	"an operator drains a worker":                 drained,
	"schedules of Go tick there":                  ticking,
	"a worker is heard without messages":          workerWithoutMessages,
}

type jobSite struct {
	*site
	l language
	q *queue.Queue
}

// jobLanguages are those that have workers.
func jobLanguages(t *testing.T) (found []language) {
	t.Helper()
	for _, l := range languages(t) {
		program := l.argv[len(l.argv)-1]
		jobs := filepath.Join(filepath.Dir(program), "jobs"+filepath.Ext(program))
		if _, err := os.Stat(jobs); err == nil {
			found = append(found, language{l.name, append(slices.Clone(l.argv[:len(l.argv)-1]), jobs)})
		}
	}
	if len(found) == 0 {
		t.Fatal("no language has workers")
	}
	return found
}

func TestJobsOfLanguages(t *testing.T) {
	all := jobLanguages(t)
	for where, addr := range servers(t) {
		t.Run(where, func(t *testing.T) {
			for _, l := range all {
				for what, promise := range jobPromises {
					t.Run(what+", "+l.name, func(t *testing.T) {
						t.Parallel()
						s := &jobSite{site: newSite(t, addr), l: l}
						s.name = "q}%7D{größe} " + what + ", " + l.name
						var err error
						s.q, err = queue.Open(t.Context(), s.url, s.name, queue.Lease(lease))
						s.must(err)
						t.Cleanup(func() { s.must(s.q.Close()) })
						promise(s)
					})
				}
			}
		})
	}
}

var (
	sum  = queue.Define[[]int, int]("sum")
	stay = queue.Define[int, queue.None]("stay", queue.Retain(time.Minute))
)

// lease is that of all workers: longer than a busy machine stalls, since a job whose worker has lost its lease runs again, and
// not much longer, since what a killed worker had is waited for.
const lease = 6 * time.Second

// work starts a worker of the language.
func (s *jobSite) work() *worker {
	s.Helper()
	argv := append(slices.Clone(s.l.argv), "work", s.name, "--url", s.url, "--lease", fmt.Sprint(lease.Seconds()))
	return s.run(s.l, argv)
}

func (s *jobSite) push(kind, args string) *worker {
	s.Helper()
	return s.run(s.l, append(slices.Clone(s.l.argv), "push", s.name, kind, args, "--url", s.url))
}

// here starts a worker in Go until the test ends.
func (s *jobSite) here(handle func(*queue.Worker)) {
	s.Helper()
	ctx, stop := context.WithCancel(s.ctx)
	w := s.q.Worker("go", queue.Slots(2))
	handle(w)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.Cleanup(func() {
		stop()
		s.must(<-ended)
	})
}

func runThere(s *jobSite) {
	s.work()
	job, err := sum.Enqueue(s.ctx, s.q, []int{1, 2, 39})
	s.must(err)
	if got, err := job.Wait(s.ctx); err != nil || got != 42 {
		s.Errorf("the sum is %d, %v", got, err)
	}
	flaky := queue.Define[queue.None, int]("flaky")
	again, err := flaky.Enqueue(s.ctx, s.q, queue.None{})
	s.must(err)
	if got, err := again.Wait(s.ctx); err != nil || got != 2 {
		s.Errorf("it has succeeded in attempt %d, %v", got, err)
	}
}

func runHere(s *jobSite) {
	s.here(func(w *queue.Worker) {
		sum.Handle(w, func(_ context.Context, j *queue.Job[[]int]) (total int, _ error) {
			for _, n := range j.Args {
				total += n
			}
			return total, nil
		})
	})
	pusher := s.push("sum", "[20, 22]")
	s.says(pusher.who, "result 42")
	pusher.ends(0)
}

// Many jobs, and workers on both sides.
func mixed(s *jobSite) {
	const n = 100
	var mu sync.Mutex
	ran := map[string]int{}
	s.here(func(w *queue.Worker) {
		sum.Handle(w, func(_ context.Context, j *queue.Job[[]int]) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[j.ID]++
			return j.Args[0], nil
		})
	})
	there := []*worker{s.work(), s.work()}
	s.eventually("all workers are there", func() bool {
		workers, err := s.q.Workers(s.ctx)
		s.must(err)
		return len(workers) == 3
	})
	requests := make([]queue.Request, n)
	for i := range requests {
		requests[i] = sum.With([]int{i})
	}
	outcomes, err := s.q.EnqueueMany(s.ctx, requests...)
	s.must(err)
	for i, o := range outcomes {
		s.must(o.Err)
		if got, err := sum.Job(s.q, o.ID).Wait(s.ctx); err != nil || got != i {
			s.Errorf("job %d has the result %d, %v", i, got, err)
		}
	}
	for _, w := range there {
		w.signal(syscall.SIGTERM)
		w.ends(0)
	}
	for _, line := range s.lines() {
		if words := strings.Fields(line); len(words) > 2 && words[1] == "runs" {
			ran[words[2]]++
		}
	}
	for _, o := range outcomes {
		if ran[o.ID] != 1 {
			s.Errorf("job %s ran %d times", o.ID, ran[o.ID])
		}
	}
}

// Two jobs of a key whose limit is 1: the second waits for the first, wherever that runs.
func limited(s *jobSite) {
	s.must(s.q.Configure(s.ctx, queue.Limit(queue.EachKey, 1)))
	s.work()
	first, err := stay.Enqueue(s.ctx, s.q, 1, queue.Key("k"))
	s.must(err)
	s.eventually("the first runs", func() bool { return s.stateOf(first.ID()) == queue.Running })
	second, err := stay.Enqueue(s.ctx, s.q, 2, queue.Key("k"))
	s.must(err)
	other, err := stay.Enqueue(s.ctx, s.q, 3, queue.Key("other"))
	s.must(err)
	s.eventually("another key runs", func() bool { return s.stateOf(other.ID()) == queue.Running })
	if state := s.stateOf(second.ID()); state != queue.Pending {
		s.Errorf("the second is %s", state)
	}
	s.must(s.q.Cancel(s.ctx, "enough", first.ID()))
	s.eventually("the second runs", func() bool { return s.stateOf(second.ID()) == queue.Running })
}

func (s *jobSite) stateOf(id string) queue.State {
	s.Helper()
	info, err := s.q.Look(s.ctx, id)
	s.must(err)
	return info.State
}

func killedWorker(s *jobSite) {
	there := s.work()
	job, err := stay.Enqueue(s.ctx, s.q, 1)
	s.must(err)
	s.says(there.who, "stays with "+job.ID())
	there.signal(syscall.SIGKILL)
	there.ends(-1)
	crashes := make(chan int, 1)
	s.here(func(w *queue.Worker) {
		stay.Handle(w, func(_ context.Context, j *queue.Job[int]) (queue.None, error) {
			crashes <- j.Crashes
			return queue.None{}, nil
		})
	})
	_, err = job.Wait(s.ctx)
	s.must(err)
	if n := <-crashes; n != 1 {
		s.Errorf("%d workers are said to have died over it", n)
	}
}

func canceled(s *jobSite) {
	there := s.work()
	job, err := stay.Enqueue(s.ctx, s.q, 1)
	s.must(err)
	s.says(there.who, "stays with "+job.ID())
	s.must(s.q.Cancel(s.ctx, "enough", job.ID()))
	s.says(there.who, "leaves "+job.ID()+": Canceled")
	s.eventually("it is canceled", func() bool { return s.stateOf(job.ID()) == queue.Canceled })
}

// A worker that ends does not wait for its lease: what it gives back runs elsewhere at once, and nobody died over it.
func ended(s *jobSite) {
	there := s.work()
	job, err := sum.Enqueue(s.ctx, s.q, []int{1})
	s.must(err)
	_, err = job.Wait(s.ctx)
	s.must(err)
	there.signal(syscall.SIGTERM)
	s.says(there.who, "has ended")
	there.ends(0)
	workers, err := s.q.Workers(s.ctx)
	s.must(err)
	if len(workers) != 0 {
		s.Errorf("workers were left behind: %+v", workers)
	}
}

// Somebody cuts the connections on which messages come, again and again: jobs are found by heartbeats.
func workerWithoutMessages(s *jobSite) {
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(s.url, "redis://")})
	defer client.Close()
	s.work()
	for i := range 3 {
		s.must(client.Do(s.ctx, "client", "kill", "type", "pubsub").Err())
		job, err := sum.Enqueue(s.ctx, s.q, []int{i})
		s.must(err)
		if got, err := job.Wait(s.ctx); err != nil || got != i {
			s.Errorf("the result is %d, %v", got, err)
		}
	}
}

func drained(s *jobSite) {
	there := s.work()
	var workers []queue.WorkerInfo
	s.eventually("it is there", func() bool {
		var err error
		workers, err = s.q.Workers(s.ctx)
		s.must(err)
		return len(workers) == 1
	})
	s.must(s.q.Drain(s.ctx, workers[0].ID))
	there.ends(0)
}

func ticking(s *jobSite) {
	s.must(s.q.Schedule(s.ctx, "often", queue.Every(time.Second), queue.RunLast, sum.With([]int{1})))
	there := s.work()
	s.says(there.who, "runs often@")
}

// A server without the functions: the client says what to do.
func TestJobsWithoutFunctions(t *testing.T) {
	addr := difftest.Redis(t).Addr
	for _, l := range jobLanguages(t) {
		s := &jobSite{site: newSite(t, addr), l: l}
		started := s.work()
		s.says(started.who, "run signalbox functions install")
		started.ends(1)
	}
}

// A process in Go leads, and is killed: this binary, started once more.
func TestMain(m *testing.M) {
	if url := os.Getenv("SIGNALBOX_TEST_LEADER"); url != "" {
		if err := lead(url, os.Getenv("SIGNALBOX_TEST_ELECTION")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func lead(url, name string) error {
	box, err := signalbox.Open(context.Background(), url)
	if err != nil {
		return err
	}
	term, err := box.Election(name).Campaign(context.Background(), signalbox.TTL(3*time.Second))
	if err != nil {
		return err
	}
	fmt.Printf("go:%d is inside with token %d\n", os.Getpid(), term.Token())
	<-term.Done()
	return box.Close()
}

func TestAnElectionPassesFromGo(t *testing.T) {
	all := languages(t)
	for where, addr := range servers(t) {
		for _, l := range all {
			t.Run(where+", to "+l.name, func(t *testing.T) {
				t.Parallel()
				w := newSite(t, addr)
				leader := w.run(language{name: "go"}, []string{
					"env", "SIGNALBOX_TEST_LEADER=" + w.url, "SIGNALBOX_TEST_ELECTION=" + w.name, os.Args[0],
				})
				w.says(leader.who, "is inside")
				token := w.holder().Token
				next := w.start(l, "--campaign", "--hold", "60")
				w.queue(1)
				leader.signal(syscall.SIGKILL)
				leader.ends(-1)
				w.says(next.who, "is inside")
				if got := w.holder().Token; got <= token {
					t.Errorf("L2: token %d after %d", got, token)
				}
				next.signal(syscall.SIGINT)
				next.ends(130)
				if state := w.inspect(); state.Held != 0 {
					t.Errorf("leases were left behind: %+v", state.Holders)
				}
			})
		}
	}
}

// packageTests run the tests that each package has, with SIGNALBOX_URL for a server.
var packageTests = map[string][]string{
	"python": {"-B", "-m", "unittest", "discover", "-t", ".", "-s", "tests"},
	"node":   {"--test"},
	"php":    {"tests/run.php"},
}

func TestThePackages(t *testing.T) {
	all := languages(t)
	for where, addr := range servers(t) {
		for _, l := range all {
			t.Run(l.name+" on "+where, func(t *testing.T) {
				t.Parallel()
				inPackage(t, l, packageTests[l.name], "SIGNALBOX_URL=redis://"+addr)
			})
		}
	}
}

// The types that are shipped to programs in TypeScript are those that they use.
func TestTheTypesOfNode(t *testing.T) {
	for _, l := range languages(t) {
		if l.name == "node" {
			inPackage(t, l, []string{"node_modules/typescript/bin/tsc"})
		}
	}
}

// inPackage runs a command of a language in the folder of its package.
func inPackage(t *testing.T, l language, argv []string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.argv[0], argv...)
	cmd.Dir, cmd.Env = "../clients/"+l.name, append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}
