package queue

import (
	"context"
	"fmt"
	"time"
)

// A handler that goes on although its context has ended keeps its slot, and nobody else's: as long as the server believes that
// the worker runs the job because it is among its jobs, and afterwards, when the job is others', because the worker declares
// so much less room (room). Who looks after the program is told (Ignoring).

// disown ends a job that others may run now. The caller holds mu.
func (w *Worker) disown(id string, e *execution) {
	if e.offer != nil && !e.offer.isOver() {
		w.endOffer(e, "withdrawn", fmt.Errorf("%w: the job went elsewhere", ErrOfferOver))
		return
	}
	e.end(ErrLeaseLost)
	e.disowned = true
	delete(w.jobs, id)
	w.disowned[e] = true
}

// disownAll is the end of the worker's lease. The caller holds mu.
func (w *Worker) disownAll() {
	for id, e := range w.jobs {
		w.disown(id, e)
	}
}

// left is how many handlers have not returned. The caller holds mu.
func (w *Worker) left() int { return len(w.jobs) + len(w.disowned) }

// taken is how much of each capacity is used by handlers whose jobs are others'. The caller holds mu.
func (w *Worker) taken() map[string]int {
	used := map[string]int{}
	for e := range w.disowned {
		for name, n := range costOf(e.claim.Record.Lane.Cost) {
			used[name] += n
		}
	}
	return used
}

// tellIgnoring tells of handlers that have not returned for a while since their contexts have ended.
func (w *Worker) tellIgnoring() {
	var events []Event
	now := time.Now()
	look := func(e *execution) {
		cause := context.Cause(e.ctx)
		if cause == nil && !e.deadline.IsZero() && now.After(e.deadline) {
			cause = ErrTimeout
		}
		switch {
		case cause == nil || e.ignores:
		case e.endSeen.IsZero():
			e.endSeen = now
		case now.Sub(e.endSeen) >= stopPatience:
			e.ignores = true
			event := e.event(Ignoring)
			event.Err, event.Took = cause, now.Sub(e.begun)
			events = append(events, event)
		}
	}
	w.mu.Lock()
	for _, e := range w.jobs {
		look(e)
	}
	for e := range w.disowned {
		look(e)
	}
	w.mu.Unlock()
	for _, event := range events {
		w.tell(event)
	}
}
