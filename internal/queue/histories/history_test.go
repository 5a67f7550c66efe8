package histories

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// Histories of a queue that many clients use at the same time. porcupine looks for an order in which enqueues, claims, acks
// and retries, each at one moment between its call and its return, give the answers that were given: the queue is strictly
// first come, first served, a job that comes back has its old place, and an idle worker is handed what comes in.

// queued is the queue in the model. Jobs are letters; it is comparable, and never changed in place.
type queued struct {
	born    string // all jobs, in order
	waiting string // those that wait, in no order
	held    string // by worker, '-' for none
	idle    string // by worker, 'i' or '-'
}

// queueCall is a call with its answer. An enqueue has no worker.
type queueCall struct {
	worker int // -1
	job    string
	verb   string // of what the worker has done with job: done, retry, back; "" if nothing
	got    string // what it holds afterwards, "" for nothing
}

func (s queued) with(worker int, job byte, idle bool) queued {
	held, idles := []byte(s.held), []byte(s.idle)
	held[worker], idles[worker] = job, '-'
	if idle {
		idles[worker] = 'i'
	}
	s.held, s.idle = string(held), string(idles)
	return s
}

// first takes out the oldest job that waits.
func (s queued) first() (queued, byte) {
	for i := range len(s.born) {
		if at := strings.IndexByte(s.waiting, s.born[i]); at >= 0 {
			s.waiting = s.waiting[:at] + s.waiting[at+1:]
			return s, s.born[i]
		}
	}
	return s, '-'
}

// handOver returns what may be after the idle workers were handed what waits: which of them is first is open.
func (s queued) handOver() (all []any) {
	if s.waiting == "" || !strings.Contains(s.idle, "i") {
		s.waiting = sorted(s.waiting)
		return []any{s}
	}
	rest, job := s.first()
	for w := range len(s.idle) {
		if s.idle[w] == 'i' {
			all = append(all, rest.with(w, job, false).handOver()...)
		}
	}
	return all
}

func sorted(letters string) string {
	b := []byte(letters)
	slices.Sort(b)
	return string(b)
}

func stepQueued(state, input, _ any) []any {
	s, c := state.(queued), input.(queueCall)
	if c.worker < 0 {
		s.born, s.waiting = s.born+c.job, s.waiting+c.job
		return s.handOver()
	}
	holds := s.held[c.worker]
	if c.verb != "" {
		if holds != c.job[0] {
			return nil
		}
		if holds = '-'; c.verb != "done" {
			s.waiting += c.job
		}
	}
	if holds == '-' {
		s, holds = s.first()
	}
	if got := strings.Trim(string(holds), "-"); got != c.got {
		return nil
	}
	return s.with(c.worker, holds, holds == '-').handOver()
}

func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	for name, options := range map[string]*redis.Options{
		"redis":  {Addr: difftest.Redis(t).Addr},
		"engine": {Dialer: func(context.Context, string, string) (net.Conn, error) { return e.Dial() }},
	} {
		t.Run(name, func(t *testing.T) {
			options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
			client := redis.NewClient(options)
			t.Cleanup(func() { must(t, client.Close()) })
			for run := range cases.Count(10) {
				h := &queueHistory{t: t, client: client, name: fmt.Sprint("history ", run), begun: time.Now()}
				h.record()
				h.judge()
			}
		})
	}
}

const (
	historyWorkers   = 3
	historyProducers = 2
	historyJobs      = 12 // of each producer
)

type queueHistory struct {
	t      *testing.T
	client *redis.Client
	name   string
	begun  time.Time
	ended  atomic.Int64

	mu    sync.Mutex
	calls []porcupine.Operation
}

// record has all clients do their work.
func (h *queueHistory) record() {
	var clients sync.WaitGroup
	workers := make([]*store.Store, historyWorkers)
	for w := range workers {
		workers[w] = h.open(fmt.Sprint("worker", w))
		h.work(workers[w], w, &queueCall{worker: w}, 1) // the first call claims nothing
	}
	for w, s := range workers {
		clients.Go(func() { h.workOn(s, w) })
	}
	for p := range historyProducers {
		clients.Go(func() { h.produce(h.open(fmt.Sprint("producer", p)), p) })
	}
	clients.Wait()
}

func (h *queueHistory) open(process string) *store.Store {
	s, err := store.New(goredis.New(h.client), h.name, process, time.Minute)
	must(h.t, err)
	return s
}

func (h *queueHistory) add(client int, called time.Duration, c *queueCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, porcupine.Operation{
		ClientId: client, Input: *c, Call: called.Nanoseconds(), Return: time.Since(h.begun).Nanoseconds(),
	})
}

func (h *queueHistory) produce(s *store.Store, producer int) {
	for n := range historyJobs {
		job := string(rune('A' + producer*historyJobs + n))
		called := time.Since(h.begun)
		_, err := s.Enqueue(context.Background(), int64(n+1), []store.Item{{ID: job, Lane: store.Lane{Kind: "note"}, Rest: "{}"}})
		if err != nil {
			h.t.Error(err)
			h.ended.Store(historyProducers * historyJobs)
			return
		}
		h.add(historyWorkers+producer, called, &queueCall{worker: -1, job: job})
	}
}

// workOn takes one job after the other: each second one comes back once.
func (h *queueHistory) workOn(s *store.Store, worker int) {
	token, back := "", 0
	c := queueCall{worker: worker}
	for call := int64(2); h.ended.Load() < historyProducers*historyJobs; call++ {
		c = queueCall{worker: worker, job: c.got}
		if c.job != "" {
			back++
			c.verb = []string{"done", "retry", "done", "back"}[back%4]
		}
		done := []store.Done(nil)
		if c.verb != "" {
			done = []store.Done{{ID: c.job, Token: token, Verb: c.verb}}
		}
		token = h.work(s, worker, &c, call, done...)
		if c.verb == "done" {
			h.ended.Add(1)
		}
	}
}

// work makes a call and writes it down, if it can have an effect.
func (h *queueHistory) work(s *store.Store, worker int, c *queueCall, call int64, done ...store.Done) (token string) {
	called := time.Since(h.begun)
	answer, err := s.Work(context.Background(), &store.Report{
		Worker: fmt.Sprintf("w%d/1", worker), Call: call, Lease: time.Minute, State: "online", Room: "slot:1", Kinds: "note", Info: "{}",
		Want: 1, Register: call == 1, Inventory: []string{}, Done: done,
	})
	if err != nil || len(answer.Late) > 0 {
		h.t.Errorf("call %d of worker %d: %v, %+v", call, worker, err, answer)
		h.ended.Store(historyProducers * historyJobs)
		return ""
	}
	for _, claim := range append(answer.Missing, answer.Claims...) {
		c.got, token = claim.ID, claim.Token
	}
	if call > 1 {
		h.add(worker, called, c)
	}
	return token
}

func (h *queueHistory) judge() {
	none := strings.Repeat("-", historyWorkers)
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{queued{held: none, idle: none}} }, Step: stepQueued,
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
	converted := model.ToModel()
	if got := porcupine.CheckOperationsTimeout(converted, h.calls, time.Minute); got != porcupine.Ok {
		h.t.Errorf("%d calls of %s: %v", len(h.calls), h.name, got)
	}
}

// The model refuses what must not be.
func TestHistoriesThatCannotBe(t *testing.T) {
	none := queued{held: "--", idle: "--"}
	for name, calls := range map[string][]queueCall{
		"a job is claimed twice": {{-1, "A", "", ""}, {0, "", "", "A"}, {1, "", "", "A"}},
		"the second comes first": {{-1, "A", "", ""}, {-1, "B", "", ""}, {0, "", "", "B"}},
		"it runs after its end":  {{-1, "A", "", ""}, {0, "", "", "A"}, {0, "A", "done", "A"}},
		"nobody is handed it":    {{0, "", "", ""}, {-1, "A", "", ""}, {1, "", "", "A"}},
	} {
		states := []any{none}
		for _, c := range calls {
			var next []any
			for _, s := range states {
				next = append(next, stepQueued(s, c, nil)...)
			}
			states = next
		}
		if len(states) > 0 {
			t.Errorf("%s: this can be", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
