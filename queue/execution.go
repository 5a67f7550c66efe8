package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Job is one attempt of a job, as its handler sees it.
type Job[A any] struct {
	Args     A
	ID       string
	Kind     string
	Key      string
	Token    int64 // larger with every claim of any job of the queue: a guarded store can refuse who comes late
	Attempt  int   // 1 for the first
	Crashes  int   // how many workers died over it
	Enqueued time.Time

	ctx  context.Context //nolint:containedctx // it is the job's, which one of a batch has beside that of the batch
	book *notebook
}

// Context is the context of the job. Of a job that is not in a batch it is what its handler was given.
func (j *Job[A]) Context() context.Context {
	if j.ctx == nil { // a test of the handler made it
		return context.Background()
	}
	return j.ctx
}

// Task is a job without its types, for middleware.
type Task struct {
	ID       string
	Kind     string
	Key      string
	Token    int64
	Attempt  int
	Attempts int // after which it is dead
	Crashes  int
	Enqueued time.Time
	Args     []byte // as Codec wrote them
	Codec    string // json unless the kind has another

	book *notebook
}

// Runner runs a task and returns its encoded result.
type Runner func(ctx context.Context, t *Task) (result []byte, err error)

// Middleware wraps a Runner.
type Middleware func(next Runner) Runner

type handler struct {
	run     Runner
	terms   terms
	backoff func(attempt int) time.Duration
	fit     func(capacity map[string]int) // of a batch handler: what the worker can hold
}

// Handle has a worker run the jobs of a kind. It is called before Run; a later call for the same kind takes the place of an
// earlier one.
func (k Kind[A, R]) Handle(w *Worker, handle func(ctx context.Context, j *Job[A]) (R, error)) {
	if handle == nil {
		w.refuse(fmt.Sprintf("Handle of kind %q without a function", k.name))
	}
	w.handle(k.name, func(ctx context.Context, t *Task) ([]byte, error) {
		j, err := k.open(ctx, t)
		if err != nil {
			return nil, err
		}
		result, err := handle(ctx, j)
		if err != nil {
			return nil, err
		}
		return k.seal(result)
	}, k.terms)
}

// open gives a task its types.
func (k Kind[A, R]) open(ctx context.Context, t *Task) (*Job[A], error) {
	j := &Job[A]{
		ID: t.ID, Kind: t.Kind, Key: t.Key, Token: t.Token, Attempt: t.Attempt, Crashes: t.Crashes, Enqueued: t.Enqueued, ctx: ctx, book: t.book,
	}
	if err := decode(k.codec(), t.Codec, t.Args, &j.Args); err != nil {
		return nil, Fail(fmt.Errorf("the arguments of %q do not decode: %w", k.name, err))
	}
	return j, nil
}

// seal encodes a result.
func (k Kind[A, R]) seal(result R) ([]byte, error) {
	if _, none := any(result).(None); none {
		return nil, nil
	}
	encoded, err := k.codec().Encode(result)
	if err != nil {
		return nil, Fail(fmt.Errorf("the result does not encode: %w", err))
	}
	if len(encoded) > MaxPayload {
		return nil, Fail(fmt.Errorf("the result has %d bytes, at most %d are allowed: keep it elsewhere and return its place",
			len(encoded), MaxPayload))
	}
	return encoded, nil
}

func (w *Worker) handle(kind string, run Runner, t terms) *handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.err != nil && w.err == nil {
		w.err = t.err
	}
	for i := len(w.wrap) - 1; i >= 0; i-- {
		run = w.wrap[i](run)
	}
	h := &handler{run: run, terms: t, backoff: t.backoff}
	w.handlers[kind] = h
	return h
}

// execution is a job that runs.
type execution struct {
	worker  *Worker
	handler *handler
	claim   store.Claim
	book    *notebook
	offer   *Offer // nil if it was not offered first
	ctx     context.Context
	end     context.CancelCauseFunc
	begun   time.Time

	// Under the worker's mu:
	disowned bool      // others may run it: what comes of it is not reported
	deadline time.Time // its Timeout; zero without one
	endSeen  time.Time // see tellIgnoring
	ignores  bool      // and that was told
}

func newExecution(w *Worker, h *handler, c store.Claim) *execution {
	e := &execution{worker: w, handler: h, claim: c, begun: time.Now()}
	e.ctx, e.end = context.WithCancelCause(context.Background())
	e.book = newNotebook(c.Record.Note, c.Record.Attempts+1, func() { w.note(e) })
	return e
}

// handed starts what the worker was given, by an answer or a message. It reports false, and starts nothing, if the worker has no
// lease: its process was stopped perhaps, and others may run what it was given meanwhile. The next call tells what is still its own.
func (w *Worker) handed(claims []store.Claim) bool {
	defer w.tellOffers()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue.now() >= w.deadline {
		w.full = true
		w.ring()
		return false
	}
	for _, c := range claims {
		if w.seen[c.Token] || w.seenBefore[c.Token] {
			continue
		}
		h := w.handlers[c.Record.Lane.Kind]
		if h == nil || w.state != "online" {
			w.reports = append(w.reports, store.Done{ID: c.ID, Token: c.Token, Verb: "back"})
			w.ring()
			continue
		}
		if w.offerFor > 0 {
			w.offer(h, c)
			continue
		}
		e := newExecution(w, h, c)
		w.jobs[c.ID] = e
		w.start(e)
	}
	return true
}

// start has a goroutine run a job: one that has run another, or a new one. The caller holds mu.
func (w *Worker) start(e *execution) {
	select {
	case w.next <- e:
	default:
		next, over := w.next, w.over
		w.queue.tasks.Go(func() { runAll(e, next, over) })
	}
}

// runAll runs a job, and then others, until the worker has ended.
func runAll(e *execution, next <-chan *execution, over <-chan struct{}) {
	for {
		e.run()
		select {
		case e = <-next:
		case <-over:
			return
		}
	}
}

func (e *execution) run() {
	defer e.end(nil)
	over := false
	defer func() {
		if !over { // the handler has ended its goroutine
			done := store.Done{ID: e.claim.ID, Token: e.claim.Token, Verb: "dead", After: DeadRetain, Text: errGoexit.Error()}
			e.worker.finished(e, done)
		}
	}()
	e.begin()
	result, err, t := e.attempt()
	over = true
	done := e.verdict(t, result, err)
	e.worker.finished(e, done)
	e.over(done.Verb, err)
}

// attempt calls the handler.
func (e *execution) attempt() (result []byte, err error, t *Task) { //nolint:revive,staticcheck // the task is what is known beside the error
	record := &e.claim.Record
	env, err := parseEnvelope(record.Rest)
	if err != nil {
		return nil, Fail(err), &Task{Attempt: record.Attempts + 1}
	}
	t = &Task{
		ID: e.claim.ID, Kind: record.Lane.Kind, Key: record.Lane.Key, Attempt: record.Attempts + 1,
		Attempts: env.attempts(), Crashes: record.Crashes, Enqueued: record.Enqueued, book: e.book,
	}
	t.Args, t.Codec = env.arguments()
	if t.Token, err = parseToken(e.claim.Token); err != nil {
		return nil, Fail(err), t
	}
	ctx := e.ctx
	if env.TimeoutMs > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, time.Duration(env.TimeoutMs)*time.Millisecond, ErrTimeout)
		defer cancel()
		ctx = limited
		e.worker.mu.Lock()
		e.deadline, _ = limited.Deadline()
		e.worker.mu.Unlock()
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v\n%s", fault, debug.Stack())
		}
	}()
	result, err = e.handler.run(ctx, t)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return result, err, t
}

// verdict says what becomes of a job.
func (e *execution) verdict(t *Task, result []byte, err error) store.Done {
	d := store.Done{ID: e.claim.ID, Token: e.claim.Token, Verb: "done", After: e.claim.Record.Retention, Text: string(result)}
	var said *verdict
	cause := context.Cause(e.ctx)
	switch {
	case err == nil:
	case errors.As(err, &said) && said.verb != "retry":
		d.Verb, d.After, d.Text = said.verb, said.after, plain(err)
		if said.verb == "dead" {
			d.After = DeadRetain
		}
	case errors.Is(cause, ErrCanceled):
		d.Verb, d.After, d.Text = "cancelled", max(e.claim.Record.Retention, DefaultRetain), plain(cause)
	case errors.Is(cause, ErrStopped):
		d.Verb, d.After, d.Text = "back", 0, ""
	case t.Attempt >= max(t.Attempts, 1):
		d.Verb, d.After, d.Text = "dead", DeadRetain, plain(err)
	default:
		d.Verb, d.Text = "retry", plain(err)
		if said != nil {
			d.After = said.after
		} else {
			d.After, d.Text = e.handler.pause(t.Attempt, d.Text)
		}
	}
	return d
}

// pause is how long to wait after an attempt, and the reason, to which a Backoff that panics adds that it does.
func (h *handler) pause(attempt int, reason string) (d time.Duration, text string) {
	defer func() {
		if fault := recover(); fault != nil {
			d, text = defaultBackoff(attempt), plain(fmt.Errorf("%s; and Backoff: panic: %v", reason, fault))
		}
	}()
	return max(h.backoff(attempt), 0), reason
}

// plain is an error as one line, not too long.
func plain(err error) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, err.Error())
	return text[:min(len(text), 1000)]
}

// finished takes note of the end of a job.
func (w *Worker) finished(e *execution, done store.Done) {
	w.mu.Lock()
	if w.jobs[e.claim.ID] == e {
		delete(w.jobs, e.claim.ID)
	}
	delete(w.disowned, e)
	if !e.disowned {
		if text, fresh := e.book.lastPage(); fresh {
			w.reports = append(w.reports, e.noteOf(text))
		}
		w.reports = append(w.reports, done)
	}
	w.mu.Unlock()
	w.ring()
}

func slotsByDefault() int { return runtime.GOMAXPROCS(0) }

func parseToken(text string) (int64, error) {
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the token %q is no number", text)
	}
	return token, nil
}
