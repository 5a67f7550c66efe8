package signalbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/internal/ledger"
)

// A waiter is one acquisition from its first request to a lease or an error.
//
// The acquiring goroutine sends the first request (run) and then only listens. Everything later comes from elsewhere:
// answers to heartbeats through the keeper, grants through the inbox. Whoever comes first settles the waiter; all
// others find it settled and are ignored. A caller who gives up settles it too, and takes back what the server may
// have granted: nobody can know which of cancel and grant came first, so cancel releases a grant.

const (
	cancelPatience = 100 * time.Millisecond // a caller who gave up waits so long for the server to know
	expiryStagger  = 5 * time.Millisecond   // the nth waiter asks so much later each for a lease to expire
	maxStagger     = 250 * time.Millisecond
	lateAnswers    = 5 // grants that may come too late to be of use before an acquisition gives up
)

type waiter struct {
	box     *Box
	request ledger.AcquireRequest
	until   time.Time // the caller's deadline, zero if none
	parent  context.Context
	wait    bool
	shared  bool // by Reentrant
	duty    duty
	outcome chan outcome
	news    chan Waiting // nil if nobody asked
	onWait  func(Waiting)
	round   atomic.Int64 // of the inbox when the last request was sent

	mu       sync.Mutex
	settled  bool
	asking   int       // requests under way
	waiting  bool      // an answer said so
	doubtful bool      // a request may still reach the server after its successor
	heard    time.Time // when the last answer came
	sent     time.Time // when the request of the last answer was sent,
	serverMs int64     // and the server's clock in it
	ahead    int
	late     int       // grants that came when the lease was over
	early    *message  // a grant heard of before the answer that it is counted from
	pressing bool      // a grant was heard of and must be asked for
	askAt    time.Time // when it is worth asking, as a message said
	begun    time.Time // when the first place was told,
	from     int       // and how many were ahead then
}

type outcome struct {
	lease *Lease
	err   error
	undo  bool // the server may know of the acquisition
}

func newWaiter(ctx context.Context, s *Semaphore, terms terms, wait bool) *waiter {
	w := &waiter{
		box: s.box, parent: ctx, wait: wait, shared: terms.reentrant, onWait: terms.onWait, outcome: make(chan outcome, 1), heard: time.Now(),
		request: ledger.AcquireRequest{
			Resource: s.resource, ID: s.box.newID(), Weight: terms.weight, Limit: s.limit, TTL: terms.ttl,
			Claim: s.box.claim, Terms: terms.agreed, Owner: s.box.owner, Label: terms.label,
		},
	}
	w.until, _ = ctx.Deadline()
	w.duty.waiter = w
	if w.onWait != nil {
		w.news = make(chan Waiting, 1)
	}
	return w
}

// run sends the first request and waits for the outcome.
func (w *waiter) run(ctx context.Context) (*Lease, error) {
	if !w.box.join(w.request.ID, w) {
		return nil, fmt.Errorf("acquire %q: %w", w.request.Resource.Name, ErrClosed)
	}
	// Asked by this goroutine: another one would cost more than the request itself. So a cancel while the answer is on
	// its way is heard when it has come, or has timed out; a deadline is heard by the client.
	w.ask(ctx)
	for {
		select {
		case result := <-w.outcome:
			return w.finish(ctx, result)
		case news := <-w.news:
			w.tell(news)
		case <-ctx.Done():
			return w.abandon(ctx, ended(ctx, w.request.Resource.Name))
		case <-w.box.closing:
			return w.abandon(ctx, fmt.Errorf("acquire %q: %w", w.request.Resource.Name, ErrClosed))
		}
	}
}

// tell calls the caller's function and waits for it, unless the box closes: it may be what closes the box, and Close
// waits for this acquisition.
func (w *waiter) tell(news Waiting) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		w.onWait(news)
	}()
	select {
	case <-told:
	case <-w.box.closing:
	}
}

func (w *waiter) finish(ctx context.Context, result outcome) (*Lease, error) {
	if result.lease != nil {
		return result.lease, nil
	}
	w.leave()
	if result.undo {
		w.takeBack()
	}
	if over(ctx) != nil {
		return nil, ended(ctx, w.request.Resource.Name)
	}
	return nil, result.err
}

func (w *waiter) ask(ctx context.Context) {
	request, ok := w.prepare()
	if !ok {
		return
	}
	sent := time.Now()
	answer, err := w.box.ledger.Acquire(ctx, request)
	w.answered(sent, answer, err)
}

// prepare returns the request as it is to be sent now, and false if it must not be sent any more.
func (w *waiter) prepare() (*ledger.AcquireRequest, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled {
		return nil, false
	}
	w.asking++
	w.round.Store(w.box.inbox.round.Load())
	request := w.request
	if w.wait {
		request.Wait = w.box.claim
		if !w.until.IsZero() {
			request.Wait = min(request.Wait, max(time.Until(w.until), time.Millisecond))
		}
	}
	return &request, true
}

// answered takes what became of a request.
func (w *waiter) answered(sent time.Time, answer ledger.AcquireAnswer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking--
	if w.settled {
		return
	}
	name := w.request.Resource.Name
	switch {
	case err != nil:
		w.failed(err)
	case answer.Outcome == ledger.Granted:
		w.grant(answer.Token, sent.Add(w.request.TTL), w.request.TTL)
	case answer.Outcome == ledger.Waiting:
		w.queued(sent, answer)
	case answer.Outcome == ledger.Refused:
		w.settle(outcome{err: &BusyError{name, answer.Next, answer.Held, answer.Limit}})
	case answer.Outcome == ledger.Heavy:
		w.settle(outcome{err: tooHeavy(name, w.request.Weight, answer.Limit)})
	default:
		w.settle(outcome{err: fmt.Errorf("acquire %q: %w", name, ErrForced)})
	}
}

func tooHeavy(name string, weight, limit int) error {
	return fmt.Errorf("acquire %q: %w: weight %d of limit %d", name, ErrTooHeavy, weight, limit)
}

// failed asks again soon, unless that is of no use. Called with w.mu held.
func (w *waiter) failed(err error) {
	undone := ledger.Undone(err)
	w.doubtful = w.doubtful || !undone
	if w.box.stopping.Err() != nil { // Close interrupted the request
		err = fmt.Errorf("acquire %q: %w", w.request.Resource.Name, ErrClosed)
	}
	if !w.wait || !ledger.Retryable(err) || time.Since(w.heard) > w.box.claim {
		w.settle(outcome{err: err, undo: w.doubtful || w.waiting})
		return
	}
	w.box.keeper.schedule(&w.duty, time.Now().Add(backoff(w.box.claim)))
}

// backoff is a random time to wait before something that failed is tried again.
func backoff(span time.Duration) time.Duration {
	return span/60 + rand.N(span/30+1)
}

// queued notes the place in the queue and when to ask again: at the next heartbeat, or when a lease can expire if that
// is sooner, or at once if the inbox was not open yet, since a grant may have gone by. Called with w.mu held.
func (w *waiter) queued(sent time.Time, answer ledger.AcquireAnswer) {
	now := time.Now()
	if w.news != nil && (!w.waiting || w.ahead != answer.Ahead) {
		select {
		case <-w.news:
		default:
		}
		w.news <- Waiting{w.request.Resource.Name, answer.Ahead, answer.Next, w.estimate(now, answer.Ahead)}
	}
	w.waiting, w.ahead, w.heard = true, answer.Ahead, now
	w.sent, w.serverMs = sent, answer.NowMs
	if early := w.early; early != nil {
		w.early = nil
		w.handed(*early)
		return
	}
	w.box.inbox.open()

	due := w.box.keeper.align(sent.Add(w.box.claim/3), w.box.claim/3)
	stagger := min(time.Duration(answer.Ahead)*expiryStagger, maxStagger)
	if expiry := now.Add(answer.Next + time.Millisecond + stagger); expiry.Before(due) {
		due = expiry
	}
	if sent.Before(w.askAt) && w.askAt.Before(due) {
		due = w.askAt
	}
	if w.pressing {
		w.pressing, due = false, now
	}
	w.box.keeper.await(w, due)
}

// estimate is how long the waiters ahead and this one will take at the pace seen so far. Called with w.mu held.
func (w *waiter) estimate(now time.Time, ahead int) time.Duration {
	if w.begun.IsZero() {
		w.begun, w.from = now, ahead
	}
	gone := w.from - ahead
	if gone <= 0 {
		return 0
	}
	return now.Sub(w.begun) / time.Duration(gone) * time.Duration(ahead+1)
}

// hear takes a message from the inbox.
func (w *waiter) hear(m message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled {
		return
	}
	switch m.verb {
	case "grant":
		w.handed(m)
	case "ask":
		w.askAt = time.Now().Add(time.Duration(m.number[0]) * time.Millisecond)
		w.box.keeper.advance(&w.duty, w.askAt) // never later than the heartbeat
	case "force":
		w.settle(outcome{err: fmt.Errorf("acquire %q: %w", w.request.Resource.Name, ErrForced)})
	case "heavy":
		// A heartbeat on its way may arrive after the limit has grown again, and queue once more.
		w.settle(outcome{
			err:  tooHeavy(w.request.Resource.Name, w.request.Weight, int(m.number[0])),
			undo: w.asking > 0 || w.doubtful,
		})
	}
}

// handed takes a grant that a message told of: token, server's clock, claim time. How long the message took nobody
// knows, and the server's clock may have been set forward meanwhile. So the grant is counted from the sending of the
// last request that was answered with "waiting", which is never too late. Only a grant that is older than that answer
// is told by the server's clock: it is one that was lost since. Called with w.mu held.
func (w *waiter) handed(m message) {
	now := time.Now()
	// No renewal on its way may leave the server with less than is counted on here, and a renewal gives a ttl.
	claim := min(time.Duration(m.number[2])*time.Millisecond, w.request.TTL)
	if !w.waiting {
		w.early = &m
		return
	}
	granted := w.sent.Add(min(0, time.Duration(m.number[1]-w.serverMs)*time.Millisecond))
	if now.After(granted.Add(claim / 2)) {
		// Too little is left: ask, which confirms the grant with a full ttl.
		w.pressing = true
		w.box.keeper.schedule(&w.duty, now)
		return
	}
	w.grant(m.number[0], granted.Add(claim), claim)
}

// grant makes the lease, which the server ends at `expires`, `span` after it began. An answer that took so long that
// the lease is over for us already is asked for again, but not for ever. Called with w.mu held.
func (w *waiter) grant(token int64, expires time.Time, span time.Duration) {
	if !time.Now().Before(expires.Add(-margin(span))) {
		if w.late++; w.wait && w.late < lateAnswers {
			w.box.keeper.schedule(&w.duty, time.Now())
			return
		}
		err := fmt.Errorf("acquire %q: %w: the answer took longer than the lease lasts; give it a longer ttl than %v",
			w.request.Resource.Name, ErrUnavailable, w.request.TTL)
		w.settle(outcome{err: err, undo: true})
		return
	}
	r := &w.request
	lease, ok := newLease(w.parent, grant{
		w.box, r.Resource, r.ID, r.Label, r.TTL, r.Terms.Cool, time.Now(), w.doubtful || w.asking > 0, w.shared,
		r.Terms.Notice,
	}, r.Weight, token, expires, span)
	if !ok {
		w.settle(outcome{err: fmt.Errorf("acquire %q: %w", w.request.Resource.Name, ErrClosed), undo: true})
		return
	}
	w.settle(outcome{lease: lease})
}

func (w *waiter) settle(result outcome) {
	w.settled = true
	w.box.keeper.cancel(&w.duty)
	w.outcome <- result
}

func (w *waiter) shut() {} // run hears box.closing by itself

func (w *waiter) leave() {
	w.box.keeper.cancel(&w.duty)
	w.box.part(w.request.ID, w)
}

// abandon gives up: nothing of the acquisition may stay behind. A lease that came at the last moment goes back.
func (w *waiter) abandon(ctx context.Context, err error) (*Lease, error) {
	w.mu.Lock()
	settled := w.settled
	w.settled = true
	w.mu.Unlock()
	w.leave()
	if settled {
		if result := <-w.outcome; result.lease != nil {
			result.lease.end(ErrReleased)
		}
	}
	w.takeBack()
	return nil, err
}

// takeBack cancels on the server, in the background, and waits for that a moment.
func (w *waiter) takeBack() {
	w.box.tasks.Add(1) // as spawn: an acquisition is a task
	w.box.patiently(w.cancel)
}

// cancel takes the acquisition back on the server.
func (w *waiter) cancel() {
	w.box.takeBack(w.parent, w.request.Resource, w.request.ID, w.request.TTL)
}

// takeBack tries until it is heard, or until the server has forgotten by itself: a waiter after the claim time, a lease
// that nobody knows of after its ttl. Once the box closes it tries for no longer than the claim time.
func (b *Box) takeBack(ctx context.Context, resource *ledger.Resource, id string, ttl time.Duration) {
	ctx = context.WithoutCancel(ctx)
	giveUp, closing := time.Now().Add(max(b.claim, ttl)), b.closing
	for failed := 0; ; failed++ {
		attempt, done := context.WithTimeout(ctx, b.claim)
		_, err := b.ledger.Cancel(attempt, resource, id, b.claim)
		done()
		pause := backoff(b.claim) << min(failed, 4) // up to half the claim time or a little more: there may be many
		if err == nil || !ledger.Retryable(err) || time.Now().Add(pause).After(giveUp) {
			return
		}
		select {
		case <-time.After(pause):
		case <-closing:
			closing = nil
			if last := time.Now().Add(b.claim); last.Before(giveUp) {
				giveUp = last
			}
		}
	}
}
