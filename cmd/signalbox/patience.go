package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
)

// retryEvery is how long the server is left alone after it could not be reached.
const retryEvery = time.Second

// acquire connects and acquires, and begins again while the server is away: for as long as --retry-for says, and without it,
// once the server was met, for as long as it may wait. A private engine that was killed is started again meanwhile, which may
// take longer than a Box bears with a silent server; one that was ended stays away.
func (a *app) acquire(ctx context.Context, f runFlags, name string) (*signalbox.Box, *signalbox.Lease, error) {
	if f.wait > 0 {
		f.until = time.Now().Add(f.wait)
	}
	endReviving := func() {}
	defer func() { endReviving() }()
	var away time.Time // since when the server has not been met
	for seen := false; ; {
		box, err := a.open(ctx, true)
		met := err == nil
		var lease *signalbox.Lease
		if met {
			if a.private != nil && !f.noWait && !seen {
				endReviving = a.reviving(ctx)
			}
			lease, err = a.attempt(ctx, f, box, name)
		}
		ended := a.private != nil && a.private.generation() == ""
		if !errors.Is(err, signalbox.ErrUnavailable) || ended || ctx.Err() != nil {
			return box, lease, err
		}
		if met || away.IsZero() {
			away = time.Now()
			seen = seen || met
			if f.goesOn(away, seen) && !f.quiet {
				fmt.Fprintf(a.stderr, "signalbox: %s: the server cannot be reached; trying again\n", printable(name))
			}
		}
		switch {
		case !f.goesOn(away, seen):
			return nil, nil, err
		case !f.until.IsZero() && time.Until(f.until) < retryEvery:
			return nil, nil, f.refused("%s was not granted within %v: the server cannot be reached", printable(name), f.wait)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// goesOn says whether a server is tried again that has been away for a while, and was seen before or not.
func (f *runFlags) goesOn(away time.Time, seen bool) bool {
	if f.retryFor < 0 {
		return seen && !f.noWait
	}
	return time.Since(away) < f.retryFor
}
