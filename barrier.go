package signalbox

import (
	"context"
	"fmt"
	"time"

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
	id := box.newID()
	a, err := box.attend(fmt.Sprintf("barrier %q", b.name), id)
	if err != nil {
		return 0, err
	}
	defer a.leave()
	err = a.run(ctx, func() (time.Duration, bool, error) {
		if err := box.checkServer(ctx); err != nil {
			return 0, false, err
		}
		answer, err := box.ledger.Arrive(ctx, b.resource, id, b.parties, box.claim)
		round = answer.Round
		return 0, answer.Passed, err
	})
	if err == nil {
		return round, nil
	}
	// The round may be complete: then this party is through, whatever ended the wait.
	leaving, done := context.WithTimeout(context.WithoutCancel(ctx), box.claim)
	defer done()
	if answer, gone := box.ledger.Depart(leaving, b.resource, id, b.parties, box.claim); gone == nil && answer.Passed {
		return answer.Round, nil
	}
	return 0, err
}
