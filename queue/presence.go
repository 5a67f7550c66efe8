package queue

import (
	"context"
	"fmt"
)

// Presence is what a worker says of itself: online, away, draining. It says so with each of its calls, and the server acts on
// it in the same transition. Who is away or draining is given nothing, and what it was offered goes to others.

// Away has a worker take nothing new, and go on with what it runs, until Online. It returns when the server knows; before Run
// it has the worker begin so. An offer that was not accepted by then is over.
func (w *Worker) Away(ctx context.Context) error {
	return w.present(ctx, "away", func() {
		if w.state == "online" {
			w.state = "away"
			w.endOffers("the worker is away")
		}
	})
}

// Online ends Away. It returns when the server knows.
func (w *Worker) Online(ctx context.Context) error {
	return w.present(ctx, "online", func() {
		if w.state == "away" {
			w.state = "online"
		}
	})
}

// Drain has a worker take nothing new, finish what it runs, and end, as if the context of its Run had ended. It returns when
// Run has returned.
func (w *Worker) Drain(ctx context.Context) error {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over == nil {
		return fmt.Errorf("drain worker %.150q of queue %q: %w: it does not run", w.name, w.queue.name, ErrInvalid)
	}
	w.cancel("", "")
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain worker %.150q of queue %q: %w", w.name, w.queue.name, context.Cause(ctx))
	}
}

// State is what the worker is at, as far as it knows: Online, Away or Leaving.
func (w *Worker) State() WorkerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WorkerState(w.state)
}

// present changes the worker's state, and waits until the server was told of it.
func (w *Worker) present(ctx context.Context, state string, change func()) error {
	doing := fmt.Sprintf("worker %.150q of queue %q: %s", w.name, w.queue.name, state)
	w.mu.Lock()
	change()
	over := w.over
	w.mu.Unlock()
	w.tellOffers()
	if over == nil {
		return nil // it says so with its first call
	}
	w.ring()
	for {
		w.mu.Lock()
		known, now, told := w.known, w.state, w.told
		w.mu.Unlock()
		switch {
		case now != state:
			return fmt.Errorf("%s: %w: it is %s by now", doing, ErrStopped, now)
		case known == state:
			return nil
		}
		select {
		case <-told:
		case <-over:
			return fmt.Errorf("%s: %w", doing, ErrStopped)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
		}
	}
}

// hasTold notes which state the server knows. The caller holds mu.
func (w *Worker) hasTold(state string) {
	if w.known != state {
		w.known = state
		close(w.told)
		w.told = make(chan struct{})
	}
}
