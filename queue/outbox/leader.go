package outbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-io/signalbox/queue"
)

// leader is a relay for one term. Its goroutine has the connection that works; the goroutines of the other two (sleep.go) have
// ended when lead returns.
type leader struct {
	*Relay
	database
	at     position
	worked bool
}

// afterEnqueue is called between the queue's answer and the database's commit, by tests.
var afterEnqueue = func() {}

// lead relays until ctx ends or something goes wrong.
func (l *leader) lead(ctx context.Context) (err error) {
	conn, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	l.database = database{conn}
	if l.at, err = l.position(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := l.startSleeper(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	defer cancel()
	for err == nil {
		if _, err = l.drain(ctx, math.MaxInt); err == nil {
			err = s.sleep(ctx, l.drain)
		}
	}
	return err
}

// gather is for how long a relay that is awake lets jobs gather, half of that at least, when its last call was a small one. Each
// call is a commit of the database and a script of the queue, and both weigh on those who enqueue.
const gather = 10 * time.Millisecond

// drain relays until there is nothing left, or so many calls were made: then it reports that there is more. With calls without
// end it lets jobs gather.
func (l *leader) drain(ctx context.Context, calls int) (more bool, err error) {
	for ; ; calls-- {
		if len(l.at.jobs) > 0 {
			if err := l.enqueue(ctx); err != nil {
				return false, err
			}
			afterEnqueue()
			if calls > halfAsleep && l.at.small(l.batch) {
				wait(ctx, gather)
			}
		}
		jobs, err := l.next(ctx, l.at.number, l.batch)
		if err != nil {
			return false, err
		}
		if len(l.at.jobs) > 0 || len(jobs) > 0 {
			l.at.number++ // and not when nothing was done
		}
		l.at.jobs, l.worked = jobs, true
		if len(jobs) == 0 || calls == 0 {
			return len(jobs) > 0, nil
		}
	}
}

// refusal is a job that the queue does not take.
type refusal struct {
	job
	reason error
}

// enqueue makes the call of the jobs, until it is known to count.
func (l *leader) enqueue(ctx context.Context) error {
	var requests []queue.Request
	var asked []job
	var refused []refusal
	for _, j := range l.at.jobs {
		r, err := queue.DecodeRequest(j.text, j.age)
		if err != nil {
			refused = append(refused, refusal{j, err})
			continue
		}
		requests, asked = append(requests, r), append(asked, j)
	}
	if len(requests) > 0 {
		outcomes, err := l.call(ctx, requests)
		if err != nil {
			return err
		}
		for i, o := range outcomes {
			if o.Err != nil {
				refused = append(refused, refusal{asked[i], o.Err})
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	if err := l.refuse(ctx, refused); err != nil {
		return err
	}
	for _, r := range refused {
		l.trouble(&RefusedError{Row: r.row, Place: int(r.line), Err: r.reason})
	}
	return nil
}

// call makes the call under its number. A queue that has had later ones says that this relay does not lead any more, or that
// the database has forgotten them: that shows in whether the database still has this number.
func (l *leader) call(ctx context.Context, requests []queue.Request) ([]queue.ManyOutcome, error) {
	for {
		outcomes, err := l.queue.EnqueueNumbered(ctx, l.at.sequence, l.at.number, requests...)
		var past *queue.PastError
		if !errors.As(err, &past) {
			return outcomes, err
		}
		mine, err := l.renumber(ctx, l.at.number, past.Last)
		if err != nil {
			return nil, err
		}
		if !mine {
			return nil, fmt.Errorf("relay the outbox: %w", errDeposed)
		}
		l.trouble(&ForgotError{past})
		l.at.number = past.Last + 1
	}
}

// patient has a connection wait for as long as it takes, whatever the database's settings are: for transactions to end, and for
// something to happen.
const patient = `select set_config(name, '0', false) from pg_settings
	where name in ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')`

// connect makes a connection that is the relay's own.
func (r *Relay) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("relay the outbox: connect: %w", err)
	}
	own := conn.Hijack()
	if _, err := own.Exec(ctx, patient); err != nil {
		hangUp(own)
		return nil, fmt.Errorf("relay the outbox: connect: %w", err)
	}
	return own, nil
}

// hangUp closes a connection.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is of no use any more, whatever it says
}
