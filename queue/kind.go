package queue

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Kind is a type of job: its name, the types of its arguments and its result, and how its jobs run.
type Kind[A, R any] struct {
	name  string
	terms terms
}

// None is the result of a kind that has none, and the arguments of one that needs none.
type None = struct{}

// Define makes a kind. What is wrong with its name or options is told by the first call that uses it.
func Define[A, R any](name string, options ...Option) Kind[A, R] {
	k := Kind[A, R]{name: name, terms: terms{attempts: DefaultAttempts, backoff: defaultBackoff, codec: JSON}}
	if reflect.TypeFor[R]() != reflect.TypeFor[None]() {
		k.terms.retention = DefaultRetain
	}
	k.terms.check("kind", name, maxNameLen)
	for _, option := range options {
		option(&k.terms)
	}
	return k
}

// Name is what the kind is called on the server.
func (k Kind[A, R]) Name() string { return k.name }

// Request is a job to enqueue, for EnqueueMany.
type Request struct {
	item store.Item
	err  error
}

// With is a job of the kind, to be given to EnqueueMany.
func (k Kind[A, R]) With(args A, options ...Option) Request {
	t := k.terms
	t.backoff, t.codec = nil, nil
	for _, option := range options {
		option(&t)
	}
	if t.backoff != nil {
		t.refuse("Backoff holds where the handler is: give it to Define")
	}
	if t.codec != nil {
		t.refuse("Encoding holds for all jobs of a kind: give it to Define")
	}
	env := envelope{TimeoutMs: t.timeout.Milliseconds()}
	if t.attempts != DefaultAttempts {
		env.Attempts = t.attempts
	}
	encoded, err := k.codec().Encode(args)
	if err != nil {
		t.refuse("the arguments do not encode: %v", err)
	}
	if len(encoded) > MaxPayload {
		t.refuse("the arguments have %d bytes, at most %d are allowed: keep them elsewhere and pass their place", len(encoded),
			MaxPayload)
	}
	env.put(k.codec(), encoded)
	rest, err := env.text(k.codec())
	if err != nil {
		t.refuse("the arguments do not encode: %v", err)
	}
	return t.request(k.name, withMeta(t.meta, rest))
}

// request is a job on these terms. Rest is what workers read.
func (t *terms) request(kind, rest string) Request {
	item := store.Item{
		ID: t.id, Lane: t.lane(kind), Delay: t.delay, At: t.at, Priority: t.priority, Retention: t.retention,
		UniqueIn: t.uniqueIn, UniqueField: t.unique, After: t.after, Rest: rest,
		For: nameOnServer(t.forWorker), ForUntil: t.forUntil, ForWithin: t.forWithin,
	}
	if t.id != "" {
		item.UniqueField = "id"
		if t.unique != "" {
			t.refuse("a job has an id of its own or a fingerprint, not both")
		}
		if slices.Contains(t.after.Parents, t.id) {
			t.refuse("job %q is to wait for itself", t.id)
		}
	}
	if t.err != nil {
		return Request{err: fmt.Errorf("enqueue %.150q: %w", kind, t.err)}
	}
	return Request{item: item}
}

// Enqueue adds a job. When it returns without an error the job is on the server. What it could not do because a server was
// out of reach it tries again until ctx ends; a job is not enqueued twice by that.
func (k Kind[A, R]) Enqueue(ctx context.Context, q *Queue, args A, options ...Option) (Enqueued[R], error) {
	outcomes, err := q.EnqueueMany(ctx, k.With(args, options...))
	if err == nil {
		err = outcomes[0].Err
	}
	if err != nil {
		return Enqueued[R]{}, err
	}
	return Enqueued[R]{outcomes[0].ID, outcomes[0].Duplicate, q, k.codec()}, nil
}

// Job returns the handle of a job that is known by its id.
func (k Kind[A, R]) Job(q *Queue, id string) Enqueued[R] {
	return Enqueued[R]{id, false, q, k.codec()}
}

// Enqueued is a job as its producer sees it.
type Enqueued[R any] struct {
	id        string
	duplicate bool
	queue     *Queue
	codec     Codec
}

// ID is the job's, unique in its queue.
func (e Enqueued[R]) ID() string { return e.id }

// Duplicate says that nothing was enqueued: there was a job with the same fingerprint or id, and this is it.
func (e Enqueued[R]) Duplicate() bool { return e.duplicate }

// Wait waits for the end of the job and returns its result. The error is a *DeadError if it failed for good, ErrCanceled if
// it was canceled, and ErrUnknownJob if the server does not know it: its result may be older than it was to be kept, or
// the server has lost its data. When the queue was made from its history (Rebuild), it can be called again.
func (e Enqueued[R]) Wait(ctx context.Context) (result R, err error) {
	text, err := e.queue.wait(ctx, e.id)
	if err == nil && text != "" {
		if err = decode(e.codec, e.codec.Name(), []byte(text), &result); err != nil {
			err = fmt.Errorf("job %s: its result does not decode: %w", e.id, err)
		}
	}
	return result, err
}
