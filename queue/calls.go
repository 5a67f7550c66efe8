package queue

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// The calls of a Queue's workers. As long as few are under way each worker makes its own. Where thousands log in at the same
// moment, the others wait here (they would wait for a connection of the client, and take it for a failure if it took long), and
// whoever ends a call has a goroutine make theirs: those that report nothing go together, since most of what such a call costs
// is the call itself. What a worker says is written down before it waits. It may have changed by the
// time it is sent, as it may while a call is on its way.
const (
	callsMost    = 16 // under way at once
	togetherMost = 32 // workers in a call
)

// caller is a worker that waits for its call.
type caller struct {
	ctx    context.Context //nolint:containedctx // a call is under way as long as one of its callers waits for it
	report *store.Report
	sent   acquisition.Instant
	answer *store.Answer
	err    error
	done   chan struct{}
}

// call makes a worker's call, or has it made. Sent is when it left.
func (q *Queue) call(ctx context.Context, r *store.Report) (answer *store.Answer, sent acquisition.Instant, err error) {
	q.mu.Lock()
	if q.calling < callsMost {
		q.calling++
		q.mu.Unlock()
		defer q.passOn()
		sent = q.now()
		answer, err = q.store.Work(ctx, r)
		return answer, sent, err
	}
	c := &caller{ctx: ctx, report: r, done: make(chan struct{})}
	q.callers = append(q.callers, c)
	q.mu.Unlock()
	select {
	case <-c.done:
		return c.answer, c.sent, c.err
	case <-ctx.Done():
		return nil, sent, fmt.Errorf("work %q: %w: %d calls of other workers were not answered", q.name, context.Cause(ctx), callsMost)
	}
}

// passOn ends a call, and has those be made that wait.
func (q *Queue) passOn() {
	callers := q.nextCallers()
	if len(callers) == 0 {
		return
	}
	q.tasks.Go(func() {
		for ; len(callers) > 0; callers = q.nextCallers() {
			q.callFor(callers)
		}
	})
}

// nextCallers takes those that go into one call. If there are none, one call less is under way.
func (q *Queue) nextCallers() (taken []*caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.callers) > 0 && len(taken) < togetherMost {
		c := q.callers[0]
		alone := len(c.report.Done) > 0
		if alone && len(taken) > 0 {
			break
		}
		q.callers = q.callers[1:]
		if c.ctx.Err() != nil {
			continue
		}
		if taken = append(taken, c); alone {
			break
		}
	}
	if len(taken) == 0 {
		q.callers = nil
		q.calling--
	}
	return taken
}

// callFor makes one call for some workers. It goes on as long as one of them waits.
func (q *Queue) callFor(callers []*caller) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left atomic.Int64
	left.Store(int64(len(callers)))
	reports := make([]*store.Report, len(callers))
	for i, c := range callers {
		stop := context.AfterFunc(c.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
		defer stop()
		reports[i] = c.report
		c.report.Want = min(c.report.Want, store.MostClaims/len(callers))
	}
	sent := q.now()
	var answers []*store.Answer
	var err error
	if len(reports) == 1 {
		answers = make([]*store.Answer, 1)
		answers[0], err = q.store.Work(ctx, reports[0])
	} else {
		answers, err = q.store.WorkTogether(ctx, reports)
	}
	for i, c := range callers {
		c.sent, c.err = sent, err
		if err == nil {
			c.answer = answers[i]
		}
		if err == nil && c.answer == nil {
			c.err = fmt.Errorf("work %q: %w: a later call of this worker was answered", q.name, ledger.ErrServer)
		}
		close(c.done)
	}
}
