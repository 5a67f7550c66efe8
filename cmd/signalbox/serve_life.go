package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine"
)

// The life of a served engine: its doors open at once, and clients are answered LOADING until the data is loaded; it serves
// until a signal, SHUTDOWN, or a door that fails; and it saves before it is gone.

// house is an engine and what belongs to it while it is served.
type house struct {
	engine          *engine.Engine
	doors           []door
	dir             string        // "" if the data is in memory only
	shutdownTimeout time.Duration // for the last snapshot
	progress        *progress     // of the loading: used by nobody else until that has ended
}

// loading is told how far the loading is.
func (h *house) loading(p engine.LoadProgress) {
	h.progress.say(func() string { return loadingText(p) })
}

// serve serves until the context or the process is to end, and closes everything. ready is called once the data is
// loaded.
func (h *house) serve(ctx context.Context, ready func() error) error {
	ctx, cancel := signal.NotifyContext(ctx, terminationSignals...)
	defer cancel()
	adjusting, rest := context.WithCancel(context.WithoutCancel(ctx))
	var adjuster sync.WaitGroup
	adjuster.Go(func() { engine.AdjustCollector(adjusting) })
	defer adjuster.Wait()
	defer rest()
	closed := make(chan error, len(h.doors))
	for _, d := range h.doors {
		go func() { closed <- d.serve(h.engine) }()
	}
	ended, err := h.live(ctx, closed, ready)
	cancel() // a second signal ends the process
	err = errors.Join(err, h.end())
	for range len(h.doors) - ended {
		err = errors.Join(err, <-closed)
	}
	return err
}

// live waits until it is time to end, and returns how many doors have been closed by then.
func (h *house) live(ctx context.Context, closed <-chan error, ready func() error) (ended int, err error) {
	loaded := make(chan error, 1)
	go func() { loaded <- h.engine.Loaded() }() // ends with the engine at the latest
	for {
		select {
		case err := <-loaded:
			if err = h.loaded(ctx, err); err == nil {
				err = ready()
			}
			if errors.Is(err, engine.ErrClosed) {
				err = nil // SHUTDOWN was quicker: the doors are closed
			}
			if err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, nil
		case err := <-closed:
			return 1, err
		}
	}
}

// loaded ends what is shown of the loading, and says what to do if it has failed.
func (h *house) loaded(ctx context.Context, err error) error {
	if err != nil {
		h.progress.clear()
		if errors.Is(err, engine.ErrClosed) {
			return err
		}
		return notLoaded(err, keptIn(ctx, h.engine, h.dir))
	}
	h.progress.done(fmt.Sprintf("loaded in %s", span(time.Since(h.progress.began))))
	return nil
}

// end saves and closes the engine.
func (h *house) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), h.shutdownTimeout)
	defer cancel()
	err := h.engine.Shutdown(ctx)
	h.progress.clear() // it may have ended in the middle of loading
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("what has changed since the last snapshot is lost: %w (--shutdown-timeout %v)", err, h.shutdownTimeout)
	}
	return err
}
