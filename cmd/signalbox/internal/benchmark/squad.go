package benchmark

import (
	"context"
	"errors"
	"sync"
	"time"
)

// worker is one client of a squad.
type worker struct {
	// turn does the thing that is counted, once. It may return early when ctx ends, with any error.
	turn func(ctx context.Context) error
	// close gives back what the client has.
	close func() error
}

// squad makes n clients and lets all of them take turns from the same moment on, until the time is up. It returns how
// long that was, the last turns included. The first error of a turn while there was time ends it.
func squad(ctx context.Context, n int, during time.Duration, recruit func(ctx context.Context, i int) (worker, error)) (time.Duration, error) {
	workers := make([]worker, 0, n)
	for i := range n {
		w, err := recruit(ctx, i)
		if err != nil {
			return 0, errors.Join(err, dismiss(workers))
		}
		workers = append(workers, w)
	}
	// No deadline: it would reach the sockets, and break replies that are on their way.
	working, cancel := context.WithCancelCause(ctx)
	begun := time.Now()
	timer := time.AfterFunc(during, func() { cancel(errTimeIsUp) })
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			for working.Err() == nil {
				if err := w.turn(working); err != nil && working.Err() == nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	timer.Stop()
	err := context.Cause(working)
	if errors.Is(err, errTimeIsUp) {
		err = nil
	}
	cancel(nil)
	return took, errors.Join(err, dismiss(workers))
}

var errTimeIsUp = errors.New("the time is up")

func dismiss(workers []worker) error {
	errs := make([]error, len(workers))
	for i, w := range workers {
		errs[i] = w.close()
	}
	return errors.Join(errs...)
}
