package queue

import (
	"fmt"
	"slices"
	"time"
)

// WorkerOption says how a worker works.
type WorkerOption func(*Worker)

// Capacity is how much a worker can do at once of each thing: {"call": 1, "chat": 3}. Jobs take of it what their Cost says.
type Capacity map[string]int

// Slots is the capacity for jobs without a cost: so many at once.
func Slots(n int) WorkerOption { return With(Capacity{"slot": n}) }

// With gives a worker capacities, beside those it has.
func With(capacity Capacity) WorkerOption {
	return func(w *Worker) {
		for name, n := range capacity {
			t := terms{}
			if checkCapacity(&t, name, n); t.err != nil && w.err == nil {
				w.err = t.err
			}
			w.capacity[name] = n
		}
	}
}

// Tags are what a worker has, for jobs that Require them.
func Tags(tags ...string) WorkerOption {
	return func(w *Worker) {
		for _, tag := range tags {
			t := terms{}
			if t.check("tag", tag, maxNameLen); t.err != nil && w.err == nil {
				w.err = t.err
			}
		}
		w.tags = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(w.tags), tags...))))
	}
}

// DrainTimeout is for how long a worker that is told to end waits for the jobs that it runs, before their contexts end with
// ErrStopped. Without it, 30 seconds.
func DrainTimeout(d time.Duration) WorkerOption { return func(w *Worker) { w.drain = max(d, 0) } }

// Use wraps every handler, the first one outermost.
func Use(middleware ...Middleware) WorkerOption {
	return func(w *Worker) {
		if slices.ContainsFunc(middleware, func(m Middleware) bool { return m == nil }) {
			w.refuse("Use of a middleware that is nil")
			return
		}
		w.wrap = append(w.wrap, middleware...)
	}
}

// Observe has a function told of what happens. It must not wait.
func Observe(tell func(Event)) WorkerOption {
	return func(w *Worker) {
		if tell == nil {
			w.refuse("Observe without a function")
			return
		}
		w.observe = append(w.observe, tell)
	}
}

// refuse has Run say what is wrong with an option or a handler. The first one counts.
func (w *Worker) refuse(what string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrInvalid, what)
	}
}
