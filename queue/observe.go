package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// What a process does with a queue can be followed: every happening is told to those who observe, and something of the
// context of who enqueues can come with the job to the context of its handler. Packages logging, metrics and tracing stand
// on this.

// observers are what the settings of a Queue say of it. They do not change after New.
type observers struct {
	tell    []func(Event)
	wrap    []Middleware
	enqueue []EnqueueMiddleware
	inject  []func(ctx context.Context, meta map[string]string)
	extract []func(ctx context.Context, meta map[string]string) context.Context
}

// Happening is what an Event tells.
type Happening string

// What happens to jobs, and to a worker. Jobs of schedules and of plain lists are not told of as Added.
const (
	Added        Happening = "added"         // a producer's call is over: Verb is new, duplicate, refused or unknown; Err, Took
	Started      Happening = "started"       // a handler is to be called: Attempt, Waited
	Ended        Happening = "ended"         // it has returned: Verb, Err, Took, Attempt
	ReportedLate Happening = "reported late" // what came of a job does not count: it was another worker's by then
	Failing      Happening = "failing"       // the server could not be reached, or is full, and will be tried again: Err
	LeaseLost    Happening = "lease lost"    // the server does not believe in the worker any more; it begins anew
	Ignoring     Happening = "ignoring"      // a handler goes on, seconds after its context has ended: Err says why, Took for how long it runs
	Draining     Happening = "draining"
	BadLine      Happening = "bad line" // a plain list has one that is no job: Err

	OfferMade  Happening = "offered"     // a worker may accept a job: Attempt, Waited
	OfferEnded Happening = "offer ended" // Verb: accepted, declined, missed, or withdrawn with Err; Took for how long it stood
)

// Event is something that happened to a job or to a worker.
type Event struct {
	What    Happening
	Queue   string
	Worker  string // "" of a producer
	Job     string
	Kind    string
	Key     string
	Verb    string // of Ended: done, retry, dead, snooze, back, cancelled; see Added and OfferEnded
	Err     error
	Took    time.Duration
	Attempt int           // 1 for the first
	Waited  time.Duration // of a first attempt, by the server's clock, from when it was ready; else 0
	Context context.Context
}

// Observer has a function told of what happens to the queue's jobs in this process, to all of its workers and to producers. It
// must not wait.
func Observer(tell func(Event)) Setting {
	return func(q *Queue) error {
		if tell == nil {
			return fmt.Errorf("%w: Observer without a function", ErrInvalid)
		}
		q.observers.tell = append(q.observers.tell, tell)
		return nil
	}
}

// Wrap wraps every handler of every worker, around what the workers Use, the first one outermost.
func Wrap(middleware ...Middleware) Setting {
	return func(q *Queue) error {
		if slices.ContainsFunc(middleware, func(m Middleware) bool { return m == nil }) {
			return fmt.Errorf("%w: Wrap with a middleware that is nil", ErrInvalid)
		}
		q.observers.wrap = append(q.observers.wrap, middleware...)
		return nil
	}
}

// Enqueuer is a call of a producer. It returns an outcome for each request, in their order; with an error, of the first ones.
type Enqueuer func(ctx context.Context, requests []Request) ([]ManyOutcome, error)

// EnqueueMiddleware wraps an Enqueuer. It may give it another context, from which Propagate takes what comes with the jobs,
// and refuse requests: then it calls next with the others, or not at all, and returns outcomes of its own.
type EnqueueMiddleware func(next Enqueuer) Enqueuer

// WrapEnqueue wraps every call by which this process enqueues (Enqueue, EnqueueMany, EnqueueNumbered), the first one outermost.
// Jobs of schedules and of plain lists do not come by it.
func WrapEnqueue(middleware ...EnqueueMiddleware) Setting {
	return func(q *Queue) error {
		if slices.ContainsFunc(middleware, func(m EnqueueMiddleware) bool { return m == nil }) {
			return fmt.Errorf("%w: WrapEnqueue with a middleware that is nil", ErrInvalid)
		}
		q.observers.enqueue = append(q.observers.enqueue, middleware...)
		return nil
	}
}

// Propagate has something of the context of who enqueues come with the job: inject writes it into the job's metadata, extract
// reads it into the context of the handler, of every attempt. Either may be nil. Names are best short: they are stored with
// each job.
func Propagate(
	inject func(ctx context.Context, meta map[string]string), extract func(ctx context.Context, meta map[string]string) context.Context,
) Setting {
	return func(q *Queue) error {
		if inject != nil {
			q.observers.inject = append(q.observers.inject, inject)
		}
		if extract != nil {
			q.observers.extract = append(q.observers.extract, extract)
		}
		return nil
	}
}

// Metadata is the first field of what the client writes of a job, and in it only if there is any.
const metaField = `{"meta":`

// Meta has metadata come with a job, for jobs that are enqueued where there is no Queue to Propagate it: in a transaction, see
// queue/outbox. A job that has some is given none by the Queue that takes it in. tracing.Carry is it for traces.
func Meta(meta map[string]string) Option {
	return func(t *terms) {
		t.meta = metaText(meta)
		if len(t.meta) > maxMetaBytes {
			t.refuse("its metadata has %d bytes, at most %d are allowed", len(t.meta), maxMetaBytes)
		}
	}
}

const maxMetaBytes = 8192

// meta is what goes before the other fields of a job that is enqueued in ctx.
func (o *observers) meta(ctx context.Context) string {
	meta := map[string]string{}
	for _, inject := range o.inject {
		inject(ctx, meta)
	}
	return metaText(meta)
}

func metaText(meta map[string]string) string {
	if len(meta) == 0 {
		return ""
	}
	encoded, err := json.Marshal(meta)
	if err != nil {
		return "" // it cannot be: these are texts
	}
	return metaField + string(encoded) + ","
}

// withMeta puts metadata into what the client has written, unless there is some.
func withMeta(meta, rest string) string {
	if meta == "" || rest == "{}" || strings.HasPrefix(rest, metaField) {
		return rest
	}
	return meta + strings.TrimPrefix(rest, "{")
}

func metaOf(rest string) map[string]string {
	rest, found := strings.CutPrefix(strings.TrimPrefix(rest, "\n"), metaField)
	if !found {
		return nil
	}
	var meta map[string]string
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&meta); err != nil {
		return nil // a job runs without
	}
	return meta
}

// context is what a handler is given of who enqueued.
func (o *observers) context(ctx context.Context, rest string) context.Context {
	if len(o.extract) == 0 {
		return ctx
	}
	meta := metaOf(rest)
	for _, extract := range o.extract {
		ctx = extract(ctx, maps.Clone(meta))
	}
	return ctx
}

// enqueueWrapped makes a call of a producer with its middleware around it, and tells of it.
func (q *Queue) enqueueWrapped(ctx context.Context, requests []Request, call Enqueuer) ([]ManyOutcome, error) {
	begun := time.Now()
	for _, wrap := range slices.Backward(q.observers.enqueue) {
		call = wrap(call)
	}
	outcomes, err := call(ctx, requests)
	if n := len(outcomes); n > len(requests) || n < len(requests) && err == nil {
		outcomes = nil
		err = errors.Join(err, fmt.Errorf("enqueue on %q: %w: its middleware has returned %d outcomes for %d jobs: it is one for each",
			q.name, ErrInvalid, n, len(requests)))
	}
	q.tellEnqueued(ctx, begun, requests, outcomes, err)
	return outcomes, err
}

// tellEnqueued tells of each request of a call.
func (q *Queue) tellEnqueued(ctx context.Context, begun time.Time, requests []Request, outcomes []ManyOutcome, err error) {
	if len(q.observers.tell) == 0 {
		return
	}
	took := time.Since(begun)
	for i := range requests {
		var o ManyOutcome
		if i < len(outcomes) { // else nobody knows
			o = outcomes[i]
		}
		e := Event{
			What: Added, Queue: q.name, Job: o.ID, Kind: requests[i].item.Lane.Kind, Key: requests[i].item.Lane.Key,
			Verb: "new", Err: o.Err, Took: took, Context: ctx,
		}
		switch {
		case o.Err != nil:
			e.Verb = "refused"
		case o.ID == "":
			e.Verb, e.Err = "unknown", err
		case o.Duplicate:
			e.Verb = "duplicate"
		}
		for _, tell := range q.observers.tell {
			tell(e)
		}
	}
}

// tellFailing tells that a producer's call has failed, and will be made again.
func (q *Queue) tellFailing(err error) {
	for _, tell := range q.observers.tell {
		tell(Event{What: Failing, Queue: q.name, Err: err, Context: context.Background()})
	}
}

// observed gives a worker what its queue was told of observers.
func (w *Worker) observed() {
	w.observe, w.wrap = slices.Clone(w.queue.observers.tell), slices.Clone(w.queue.observers.wrap)
}

func (w *Worker) tell(e Event) {
	e.Worker, e.Queue = w.name, w.queue.name
	if e.Context == nil {
		e.Context = context.Background()
	}
	for _, tell := range w.observe {
		tell(e)
	}
}

// noteOffer keeps what is to be told of an offer until the worker's lock is free: see tellOffers. The caller holds mu.
func (w *Worker) noteOffer(event Event) {
	if len(w.observe) > 0 {
		w.untold = append(w.untold, event)
	}
}

// tellOffers tells what noteOffer has kept, in its order.
func (w *Worker) tellOffers() {
	if len(w.observe) == 0 {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	events := w.untold
	w.untold = nil
	w.mu.Unlock()
	for _, event := range events {
		w.tell(event)
	}
}

// event is one of a job that runs, or is offered.
func (e *execution) event(what Happening) Event {
	r := &e.claim.Record
	return Event{What: what, Job: e.claim.ID, Kind: r.Lane.Kind, Key: r.Lane.Key, Attempt: r.Attempts + 1, Context: e.ctx}
}

// begin gives the job what it has of its producer, and tells that it is to run.
func (e *execution) begin() {
	ctx := e.worker.queue.observers.context(e.ctx, e.claim.Record.Rest)
	e.worker.mu.Lock()
	e.ctx = ctx // tellIgnoring looks at it
	e.worker.mu.Unlock()
	if e.offer != nil {
		e.worker.tellOffers() // that it was accepted comes first
	}
	event := e.event(Started)
	event.Waited = waited(&e.claim)
	e.worker.tell(event)
}

// waited is for how long a job was ready before its first claim. A token is the time of its claim in µs, by the server's clock.
func waited(c *store.Claim) time.Duration {
	us, err := strconv.ParseInt(c.Token, 10, 64)
	if err != nil || c.Record.Attempts+c.Record.Crashes > 0 {
		return 0
	}
	return max(time.UnixMicro(us).Sub(c.Record.Ready), 0)
}

// over tells what became of it.
func (e *execution) over(verb string, err error) {
	event := e.event(Ended)
	event.Verb, event.Err, event.Took = verb, err, time.Since(e.begun)
	e.worker.tell(event)
}
