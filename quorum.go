package signalbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// How it is built: this file acquires; quorum_ask.go asks several servers at once and remembers those that are silent;
// quorum_lease.go holds, loses, regains and releases.
//
// Why it is safe. A server lets one in (L1), and a lease counts a server only from after its grant there until before its
// end there, by the holder's clock. Two majorities have a server in common, so two leases never count one at the same time.
// That needs no order of queues, no patience and no guess about who is silent: they decide only who comes first, and how
// soon. Tokens: before a server counts, it knows the token of the lease (Raise). Take a lease A and the next one, B. A
// server that A counted at its last moment is among those of B, and granted B after A's end there, since both grants
// cannot be live together; it knew A's token then, so what it granted, and B's token, the largest of all, is larger.

// Quorum locks over several independent servers, of which a minority may fail or forget: the algorithm of Redlock. A lock
// is had when the majority has granted it. Servers must not replicate each other, and one that has lost its memory must
// stay away for as long as the longest ttl; pauses and clocks that run at different rates are its limits, as the limits of
// every lease: check tokens.
//
// All processes must name the servers in the same order. The first that answers is where they queue, in order; on the
// others they find the way free but for races and failures. Who does not get the majority gives everything back and tries
// again after a while. A server that does not answer is passed over, and left alone until it does.
type Quorum struct {
	boxes    []*Box
	err      error
	majority int

	// mu guards the silence of the servers and what the leases of the quorum hold. It is the only mutex of the quorum, and
	// the innermost: nothing is called while it is held but the clock and the end of a context.
	mu      sync.Mutex
	silence []silence
}

// NewQuorum makes a quorum of an odd number of boxes, at least three, each over another server.
func NewQuorum(boxes ...*Box) *Quorum {
	q := &Quorum{boxes: boxes, majority: len(boxes)/2 + 1, silence: make([]silence, len(boxes))}
	if len(boxes) < 3 || len(boxes)%2 == 0 {
		q.err = fmt.Errorf("%w: a quorum of %d boxes, must be an odd number of at least 3", ErrInvalid, len(boxes))
	}
	seen := make(map[*Box]bool)
	for _, box := range boxes {
		if box == nil || seen[box] {
			q.err = fmt.Errorf("%w: a box of the quorum is nil, or named twice", ErrInvalid)
		}
		seen[box] = true
	}
	return q
}

// QuorumMutex lets one holder in at a time, by the majority of the servers.
type QuorumMutex struct {
	quorum *Quorum
	name   string
}

// Mutex returns the mutex of a name. A bad name is reported by the first call.
func (q *Quorum) Mutex(name string) *QuorumMutex { return &QuorumMutex{q, name} }

// Acquire waits for its turn. While fewer than the majority can be reached it goes on trying until ctx ends. Options hold on
// every server; those that have no meaning in a quorum are refused with ErrInvalid.
func (m *QuorumMutex) Acquire(ctx context.Context, options ...AcquireOption) (*QuorumLease, error) {
	for patience := hedge; ; {
		lease, err := m.attempt(ctx, options, patience)
		if err == nil {
			return lease, nil
		}
		if endOf(ctx) != nil {
			return nil, ended(ctx, fmt.Sprintf("acquire %q", m.name))
		}
		if !isBusy(err) && !errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		// Servers that are all slow are given the time they need.
		if patience = min(2*patience, mostPatience); isBusy(err) {
			patience = hedge
		}
		// Those who met each other must not meet again.
		pause := time.NewTimer(m.quorum.boxes[0].backoff(1))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ended(ctx, fmt.Sprintf("acquire %q", m.name))
		}
	}
}

// TryAcquire does not wait for anybody: it is refused with ErrBusy if the majority cannot be had at once, and with
// ErrUnavailable if it cannot be reached.
func (m *QuorumMutex) TryAcquire(ctx context.Context, options ...AcquireOption) (*QuorumLease, error) {
	return m.attempt(ctx, options, 0)
}

// Do runs fn while holding the mutex. See Semaphore.Do.
func (m *QuorumMutex) Do(ctx context.Context, fn func(ctx context.Context) error, options ...AcquireOption) (err error) {
	lease, err := m.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(lease.ctx, func() { cancel(lease.Err()) })
	defer func() {
		unlink()
		cancel(nil)
		err = errors.Join(err, lease.Release(ctx))
	}()
	return fn(inner)
}

// attempt asks every server once. With a patience it queues first.
func (m *QuorumMutex) attempt(ctx context.Context, options []AcquireOption, patience time.Duration) (*QuorumLease, error) {
	q := m.quorum
	if q.err != nil {
		return nil, fmt.Errorf("acquire %q: %w", m.name, q.err)
	}
	t := newTerms(options)
	t.place = inQuorum
	if err := t.check(m.name, 1); err != nil {
		return nil, err
	}
	q.revisit(ctx, m.name)
	granted, errs := m.collect(ctx, options, patience, answerBound(t.ttl))
	if endOf(ctx) != nil {
		q.giveUp(ctx, granted)
		return nil, ended(ctx, fmt.Sprintf("acquire %q", m.name))
	}
	if len(granted) < q.majority {
		q.giveUp(ctx, granted)
		return nil, m.failure(len(granted), errs)
	}
	return m.raise(ctx, granted, options, &t)
}

// answerBound is how long servers may take for their answers: one that gives none must not use up the ttl of those that do.
func answerBound(ttl time.Duration) time.Duration {
	return max(min(ttl/4, 2*time.Second), 5*time.Millisecond)
}

// collect queues at the first server that answers, if it is to queue, and then tries the others at once. Those that are
// known to be silent come last: in the queue, and of the others they are asked only if the majority can be had with them
// and nobody else is after it.
func (m *QuorumMutex) collect(
	ctx context.Context, options []AcquireOption, patience, bound time.Duration,
) (granted []answer, errs []error) {
	q := m.quorum
	heard, silent := q.order()
	for queue := append(heard[:len(heard):len(heard)], silent...); patience > 0 && len(queue) > 0; queue = queue[1:] {
		asked := q.queueAt(ctx, m.name, queue[0], patience, options)
		heard, silent = without(heard, queue[0]), without(silent, queue[0])
		if asked.err == nil {
			granted = append(granted, asked)
			break
		}
		errs = append(errs, asked.err)
		if endOf(ctx) != nil {
			return nil, errs
		}
	}
	busy := false
	try := func(servers []int) {
		for _, a := range q.ask(ctx, servers, q.majority-len(granted), bound, func(ctx context.Context, server int) (*Lease, error) {
			return q.boxes[server].Mutex(m.name).TryAcquire(ctx, options...)
		}) {
			if a.err == nil {
				granted = append(granted, a)
				continue
			}
			errs, busy = append(errs, a.err), busy || isBusy(a.err)
		}
	}
	try(heard)
	if missing := q.majority - len(granted); missing > 0 && missing <= len(silent) && !busy {
		try(silent)
	}
	return granted, errs
}

// failure puts what the servers said into one error: busy, if one was, for others may be behind it; else unavailable, which
// a server is too that did not answer in the time it was given. What will not pass by itself (a closed Box, missing rights)
// counts like a server that is away, and decides only where it leaves no majority to be had. An operator's word does.
func (m *QuorumMutex) failure(granted int, errs []error) error {
	kind, lasting := ErrUnavailable, []error(nil)
	for _, err := range errs {
		switch {
		case errors.Is(err, ErrForced):
			return err
		case isBusy(err):
			kind = ErrBusy
		case !isSilence(err):
			lasting = append(lasting, err)
		}
	}
	if len(m.quorum.boxes)-len(lasting) < m.quorum.majority {
		return lasting[0]
	}
	if len(errs) == 0 {
		errs = []error{errNoAnswer}
	}
	return fmt.Errorf("acquire %q: %w: %d of %d servers, %d are needed: %v", m.name, kind, granted, len(m.quorum.boxes),
		m.quorum.majority, errors.Join(errs...)) //nolint:errorlint // a time limit in there is not the caller's
}

// errNoAnswer is why the others are missing if none of them has refused.
var errNoAnswer = errors.New("the others gave no answer in time")

// raise makes the largest of the tokens that of all, and has the majority know it before anybody uses it: so the next
// majority, which has a server in common with this one, comes to a larger one.
func (m *QuorumMutex) raise(ctx context.Context, granted []answer, options []AcquireOption, t *terms) (*QuorumLease, error) {
	q := m.quorum
	leases, servers := byServer(granted)
	token := int64(0)
	for _, lease := range leases {
		token = max(token, lease.Token())
	}
	var held, lost []answer
	var errs []error
	for _, a := range q.ask(ctx, servers, q.majority, answerBound(t.ttl), func(ctx context.Context, server int) (*Lease, error) {
		return leases[server], raiseAt(ctx, leases[server], token)
	}) {
		if a.err == nil {
			held = append(held, a)
			continue
		}
		lost, errs = append(lost, a), append(errs, a.err)
	}
	q.giveUp(ctx, lost)
	if len(held) < q.majority || endOf(ctx) != nil {
		q.giveUp(ctx, held)
		if endOf(ctx) != nil {
			return nil, ended(ctx, fmt.Sprintf("acquire %q", m.name))
		}
		return nil, m.failure(len(held), errs)
	}
	return newQuorumLease(ctx, m, token, held, options, t), nil
}

// raiseAt has the server of a lease know a token.
func raiseAt(ctx context.Context, lease *Lease, token int64) error {
	hold, err := lease.box.ledger.Raise(ctx, lease.resource, lease.id, token)
	if lost := lease.Err(); err != nil || hold != ledger.Held || lost != nil {
		return fmt.Errorf("%w: raise %q: %v", ErrUnavailable, lease.Resource(), errors.Join(err, lost)) //nolint:errorlint // what counts is that it is not held
	}
	return nil
}
