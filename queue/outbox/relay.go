package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
)

// Queue is where a relay takes the jobs to: a *queue.Queue, or queue.Partitions.
type Queue interface {
	EnqueueNumbered(ctx context.Context, sequence string, number int64, requests ...queue.Request) ([]queue.ManyOutcome, error)
}

// Relay takes jobs from the outbox to the queue. There may be any number of them, in any number of processes: the one that
// leads works, the others wait.
type Relay struct {
	pool     *pgxpool.Pool
	queue    Queue
	election *signalbox.Election
	batch    int
	look     time.Duration
	trouble  func(error)
}

// Option changes a Relay.
type Option func(*Relay) error

// Batch is how many jobs are relayed at once, at most, or what one row of the outbox has if that is more. It is queue.MaxCall if
// not said otherwise.
func Batch(most int) Option {
	return func(r *Relay) error {
		if most < 1 || most > queue.MaxCall {
			return fmt.Errorf("%w: a batch of %d jobs: it is between 1 and %d", queue.ErrInvalid, most, queue.MaxCall)
		}
		r.batch = most
		return nil
	}
}

// Look is how often a relay that sleeps looks for jobs all the same, in case that a notification was lost: every 15 seconds if
// not said otherwise. A server that is gone without a word is noticed by that, too.
func Look(every time.Duration) Option {
	return func(r *Relay) error {
		if every < 10*time.Millisecond {
			return fmt.Errorf("%w: a look every %v: 10 ms is the least", queue.ErrInvalid, every)
		}
		r.look = every
		return nil
	}
}

// Trouble has a function told of what goes wrong: the database or the queue is out of reach, and tried again; a job is refused
// and put aside (*RefusedError); the database has forgotten what it knew (*ForgotError). It must not wait. Without it slog's
// default logger is told.
func Trouble(tell func(error)) Option {
	return func(r *Relay) error {
		r.trouble = tell
		return nil
	}
}

// NewRelay returns a relay, which does nothing before Run. While it leads it keeps three connections of its own, which it
// makes through the pool. They are sessions: a PgBouncer between has to pool by session. All relays of an outbox have
// to campaign in the same election.
func NewRelay(pool *pgxpool.Pool, q Queue, election *signalbox.Election, options ...Option) (*Relay, error) {
	r := &Relay{pool: pool, queue: q, election: election, batch: queue.MaxCall, look: 15 * time.Second, trouble: func(err error) {
		slog.Warn("the relay of the outbox goes on after this", "error", err)
	}}
	if pool == nil || q == nil || election == nil {
		return nil, fmt.Errorf("relay of the outbox: %w: it needs a pool of connections, a queue and an election", queue.ErrInvalid)
	}
	for _, option := range options {
		if err := option(r); err != nil {
			return nil, fmt.Errorf("relay of the outbox: %w", err)
		}
	}
	return r, nil
}

// RefusedError says that the queue does not take a job, because of what it is. It is in signalbox_outbox_refused now.
type RefusedError struct {
	Row   int64 // its id in the database
	Place int   // which of the row's jobs it is, from 1 on
	Err   error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("job %d of row %d of the outbox is put aside in signalbox_outbox_refused: %v", e.Place, e.Row, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// ForgotError says that the queue has had later calls of the outbox than the database knows of: it was restored from a backup,
// or is a replica that lacks the last commits. The relay goes on. Jobs that had been relayed before and are in the database
// again are enqueued once more, and count once only as long as the queue knows their ids.
type ForgotError struct{ Past *queue.PastError }

func (e *ForgotError) Error() string {
	return fmt.Sprintf("the outbox's database is behind the queue, and has forgotten commits; jobs may be enqueued again: %v", e.Past)
}

func (e *ForgotError) Unwrap() error { return e.Past }

// Run relays whenever it leads, until ctx ends; then it returns nil. While the database or the queue are out of reach, or the
// tables are not there, it lets other relays lead, if there are any, and tries again. An error is for good: the queue
// or the Box was closed, or the election's name is a bad one.
func (r *Relay) Run(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; {
		worked, err := r.term(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, queue.ErrClosed), errors.Is(err, signalbox.ErrClosed), errors.Is(err, signalbox.ErrInvalid):
			return err
		case worked:
			failures = 0
		}
		failures++
		r.trouble(err)
		wait(ctx, min(50*time.Millisecond<<min(failures, 10), 5*time.Second))
	}
	return nil
}

// wait waits for about half of the time to all of it.
func wait(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most/2 + rand.N(most/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// term waits until this relay leads, and relays until something goes wrong. It reports whether anything went right.
func (r *Relay) term(ctx context.Context) (worked bool, err error) {
	term, err := r.election.Campaign(ctx, signalbox.TTL(10*time.Second), signalbox.Label("relay of the outbox"))
	if err != nil {
		return false, err
	}
	leading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(term.Context(), func() { cancel(context.Cause(term.Context())) })
	defer stop()
	l := &leader{Relay: r}
	err = l.lead(leading)
	if leading.Err() != nil && ctx.Err() == nil {
		err = context.Cause(leading) // what else went wrong came of that
	}
	resigning, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer end()
	_ = term.Resign(resigning) // it ends with its ttl all the same
	return l.worked, err
}
