package signalbox

import (
	"context"
	"fmt"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/ledger"
)

// Barrier lets parties through when enough of them have come, all at once, and begins anew for the next: for workers that
// go from step to step together. One that dies while it waits is not counted after the claim time. A Barrier holds no
// state: any number of goroutines may use one value.
type Barrier struct {
	box      *Box
	resource *ledger.Resource
	name     string
	parties  int
	err      error
}

// Barrier returns the barrier of a name for so many parties: 1 to MaxParties. What is wrong with it is reported by the
// first call.
func (b *Box) Barrier(name string, parties int) *Barrier {
	resource, err := ledger.NewResource(name)
	if err == nil && (parties < 1 || parties > MaxParties) {
		err = fmt.Errorf("%w: barrier %q: %d parties, must be 1 to %d", ErrInvalid, name, parties, MaxParties)
	}
	return &Barrier{b, resource, name, parties, err}
}

// Wait arrives and returns when all parties of this round have, with the number of the round: the same for all of them,
// and larger than those before. A party whose ctx ends is not counted any more, unless the round was complete at that
// moment: then Wait succeeds.
func (b *Barrier) Wait(ctx context.Context) (round int64, err error) {
	if b.err != nil {
		return 0, fmt.Errorf("barrier: %w", b.err)
	}
	box := b.box
	if err := box.enter(); err != nil {
		return 0, fmt.Errorf("barrier %q: %w", b.name, err)
	}
	defer box.tasks.Done()
	w := &barrierWait{passage: passage{"barrier", b.name}, barrier: b, id: ledger.PartyID(box.newID(), b.parties, box.owner)}
	l := box.newLife(ctx, w, acquisition.Terms{Wait: true, Passing: true}, w.id)
	err = box.await(ctx, l, nil).err
	if err != nil {
		// The round may be complete: then this party is through, whatever ended the wait.
		box.patiently(l, box.claim)
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if w.round != 0 {
		return w.round, nil
	}
	return 0, err
}

// barrierWait is the errand of one party.
type barrierWait struct {
	passage
	barrier *Barrier
	id      string
	round   int64 // that it passed with; under the box's mu
}

func (w *barrierWait) request(ctx context.Context, box *Box, s sending) reply {
	if err := box.checkServer(ctx); err != nil {
		return reply{err: fmt.Errorf("%s: %w", w.doing(), err), undone: true}
	}
	verb := box.asking.Arrive
	if s.call == acquisition.CallCancel {
		verb = box.background.Depart
	}
	answer, err := verb(ctx, w.barrier.resource, w.id, w.barrier.parties, box.claim)
	if answer.Passed {
		box.mu.Lock()
		w.round = answer.Round
		box.mu.Unlock()
	}
	if answer.Barred && s.call == acquisition.CallAcquire {
		return reply{answer: acquisition.Answer{Outcome: acquisition.Barred}}
	}
	return passing(answer.Passed, err)
}
