package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
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
	warn            func(text string)
}

// serve serves until the context or the process is to end, and closes everything. ready is called once the data is
// loaded.
func (h *house) serve(ctx context.Context, ready func() error) error {
	ctx, cancel := signal.NotifyContext(ctx, terminationSignals...)
	defer cancel()
	closed := make(chan error, len(h.doors))
	for _, d := range h.doors {
		go func() { closed <- d.serve(h.engine) }()
	}
	loaded := make(chan error, 1)
	go func() { loaded <- h.engine.Loaded() }()
	ended := 0
	var err error
	select {
	case err = <-loaded:
		switch {
		case err == nil:
			err = ready()
		case !errors.Is(err, engine.ErrClosed):
			err = notLoaded(err, h.dir)
		}
		if err == nil {
			select {
			case <-ctx.Done():
			case err = <-closed:
				ended++
			}
		}
	case <-ctx.Done():
	case err = <-closed:
		ended++
	}
	cancel() // a second signal ends the process
	err = errors.Join(err, h.end())
	for range len(h.doors) - ended {
		err = errors.Join(err, <-closed)
	}
	return err
}

// end saves and closes the engine. What no snapshot was taken of for want of time is still in the append-only file, if there
// is one.
func (h *house) end() error {
	if h.dir == "" {
		return h.engine.Close()
	}
	logged := parameter(context.Background(), h.engine, "appendonly") == "yes"
	ctx, cancel := context.WithTimeout(context.Background(), h.shutdownTimeout)
	defer cancel()
	err := h.engine.Shutdown(ctx)
	if logged && errors.Is(err, context.DeadlineExceeded) {
		h.warn(fmt.Sprintf("no snapshot was written within --shutdown-timeout %v; the append-only file has everything", h.shutdownTimeout))
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("what changed since the last snapshot is lost, no new one was written within --shutdown-timeout %v: %w", h.shutdownTimeout, err)
	}
	return err
}
