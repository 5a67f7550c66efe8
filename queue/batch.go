package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A batch handler is given several jobs of its kind at once. Each of them is a job of its own all the same: it has its own
// goroutine, context, middleware and end. Where another one would call its handler, it joins those that wait for company.
// Who makes them enough, or has waited long enough, takes all of them and calls the handler; the others are told.

// Outcome is what became of one job of a batch: its result, or an error as a handler returns it (see Retry, Fail, Snooze).
type Outcome[R any] struct {
	Result R
	Err    error
}

// HandleBatch has a worker run the jobs of a kind together: as soon as there are most of them, or when one of them has waited
// for linger. The handler returns an outcome for each job, in their order: one that fails is tried again by itself. Each job
// takes of the worker's capacities what it costs, so a batch is no larger than what the worker can hold.
//
// The context ends when those of all the jobs have ended. That of one of them is Job.Context: it ends, for instance, when this
// job is canceled.
func (k Kind[A, R]) HandleBatch(w *Worker, most int, linger time.Duration,
	handle func(ctx context.Context, jobs []*Job[A]) []Outcome[R],
) {
	terms := k.terms
	if most < 1 || linger < 0 {
		terms.refuse("a batch of %q of %d jobs after %v: it is at least one, and no time below 0", k.name, most, linger)
	}
	if handle == nil {
		terms.refuse("HandleBatch of kind %q without a function", k.name)
	}
	c := &company[A, R]{leaving: w.leaving, most: most, linger: linger, handle: handle}
	h := w.handle(k.name, func(ctx context.Context, t *Task) ([]byte, error) {
		j, err := k.open(ctx, t)
		if err != nil {
			return nil, err
		}
		result, err := c.join(j)
		if err != nil {
			return nil, err
		}
		return k.seal(result)
	}, terms)
	h.fit = func(capacity map[string]int) { c.fit(terms.lane(k.name).Cost, capacity) }
}

// company is the jobs of a kind that wait for a batch.
type company[A, R any] struct {
	leaving <-chan struct{} // closed when no more jobs come
	most    int
	linger  time.Duration
	handle  func(ctx context.Context, jobs []*Job[A]) []Outcome[R]

	mu      sync.Mutex
	waiting []*member[A, R]
}

// member is a job in company.
type member[A, R any] struct {
	job  *Job[A]
	told chan Outcome[R] // holds one
}

// fit has a batch be full with as many jobs as a worker can hold.
func (c *company[A, R]) fit(cost string, capacity map[string]int) {
	for name, n := range costOf(cost) {
		if n > 0 {
			c.most = max(min(c.most, capacity[name]/n), 1)
		}
	}
}

// join waits for company, and for the handler to have its say.
func (c *company[A, R]) join(j *Job[A]) (R, error) {
	m := &member[A, R]{j, make(chan Outcome[R], 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, m)
	full := len(c.waiting) >= c.most
	var batch []*member[A, R]
	if full {
		batch, c.waiting = c.waiting, nil
	}
	c.mu.Unlock()
	if !full {
		timer := time.NewTimer(c.linger)
		defer timer.Stop()
		select {
		case o := <-m.told:
			return o.Result, o.Err
		case <-timer.C:
			batch = c.take(m)
		case <-c.leaving:
			batch = c.take(m)
		case <-j.ctx.Done():
			if c.leave(m) {
				return *new(R), j.ctx.Err()
			}
		}
	}
	if batch != nil {
		c.run(batch)
	}
	o := <-m.told
	return o.Result, o.Err
}

// take returns all that wait, unless somebody else has taken m.
func (c *company[A, R]) take(m *member[A, R]) (batch []*member[A, R]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.waiting, m) {
		batch, c.waiting = c.waiting, nil
	}
	return batch
}

// leave reports whether m was still waiting.
func (c *company[A, R]) leave(m *member[A, R]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiting, m)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	return i >= 0
}

// run calls the handler, and tells the members.
func (c *company[A, R]) run(batch []*member[A, R]) {
	ctx, end := together(batch)
	defer end()
	err := Fail(errGoexit)
	var outcomes []Outcome[R]
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		}
		for i, m := range batch {
			if err != nil {
				m.told <- Outcome[R]{Err: err}
			} else {
				m.told <- outcomes[i]
			}
		}
	}()
	jobs := make([]*Job[A], len(batch))
	for i, m := range batch {
		jobs[i] = m.job
	}
	outcomes = c.handle(ctx, jobs)
	if err = nil; len(outcomes) != len(jobs) {
		err = Fail(fmt.Errorf("the handler of the batch has returned %d outcomes for %d jobs: it is one for each", len(outcomes), len(jobs)))
	}
}

var errGoexit = errors.New("the handler called runtime.Goexit")

// together is a context that ends when those of all members have ended.
func together[A, R any](batch []*member[A, R]) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var left atomic.Int64
	left.Store(int64(len(batch)))
	var stops []func() bool
	for _, m := range batch {
		stops = append(stops, context.AfterFunc(m.job.ctx, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(m.job.ctx))
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// costOf reads what a lane says of the cost of its jobs: "call=1,chat=2"; "" is one slot.
func costOf(text string) map[string]int {
	if text == "" {
		return map[string]int{"slot": 1}
	}
	cost := map[string]int{}
	for _, part := range strings.Split(text, ",") {
		name, n, _ := strings.Cut(part, "=")
		if amount, err := strconv.Atoi(n); err == nil { // else somebody else wrote it
			cost[name] = amount
		}
	}
	return cost
}
