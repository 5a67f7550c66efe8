package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox"
)

// How commands wait: for how long, what they say meanwhile, when they try a server again that is away, and that a signal
// ends it. All commands that wait for a turn share it.

// retryEvery is how long the server is left alone after it could not be reached.
const retryEvery = time.Second

// waitFlags are the flags about waiting.
type waitFlags struct {
	wait           time.Duration
	noWait, quiet  bool
	conflictStatus int
	retryFor       time.Duration // < 0: not said
	until          time.Time     // when the waiting is over, zero if never
	met            bool          // the server has been met
}

func (p *waitFlags) define(flags *pflag.FlagSet) {
	flags.DurationVar(&p.wait, "wait", 0, "wait so long at most (default: as long as it takes)")
	flags.DurationVar(&p.retryFor, "retry-for", -1, "go on for so long while the server cannot be reached\n(default: as long as it waits, once the server was met)")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "say nothing about waiting or being refused")
	flags.IntVar(&p.conflictStatus, "conflict-exit-code", exitBusy, "exit status when its turn has not come")
}

func (p *waitFlags) defineNoWait(flags *pflag.FlagSet) {
	flags.BoolVar(&p.noWait, "no-wait", false, "do not wait at all")
}

func (p *waitFlags) check(changed func(string) bool) error {
	switch {
	case p.noWait && changed("wait"):
		return usage("--wait and --no-wait exclude each other")
	case changed("wait") && p.wait <= 0:
		return usage("--wait must be longer than 0, not %v; --no-wait does not wait at all", p.wait)
	case changed("retry-for") && p.retryFor < 0:
		return usage("--retry-for must be 0 or longer, not %v", p.retryFor)
	case p.conflictStatus < 0 || p.conflictStatus > 255:
		return usage("--conflict-exit-code must be 0 to 255, not %d", p.conflictStatus)
	}
	return nil
}

// refused is that the turn has not come.
func (p *waitFlags) refused(format string, args ...any) error {
	if p.quiet {
		return &exitError{p.conflictStatus, nil}
	}
	return &exitError{p.conflictStatus, fmt.Errorf(format, args...)}
}

// bounded is a context that ends when the waiting is over.
func (p *waitFlags) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.until.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, p.until)
}

// insist opens a box and makes an attempt on it, and begins again while the server is away: for as long as --retry-for says,
// and without it, once the server was met, for as long as it may wait. A private engine that was killed is started again
// meanwhile, which may take longer than a Box bears with a silent server; one that was ended stays away. An attempt that fails
// has closed the box.
func (a *app) insist(ctx context.Context, p *waitFlags, what string, attempt func(*signalbox.Box) error) error {
	if p.wait > 0 {
		p.until = time.Now().Add(p.wait)
	}
	endReviving := func() {}
	defer func() { endReviving() }()
	var away time.Time // since when the server has not been met
	for revived := false; ; {
		box, err := a.open(ctx, true)
		met := err == nil
		if met {
			if a.private != nil && !p.noWait && !revived {
				endReviving, revived = a.reviving(ctx), true
			}
			err = attempt(box)
		}
		ended := a.private != nil && a.private.ended()
		if !errors.Is(err, signalbox.ErrUnavailable) || ended || ctx.Err() != nil {
			return err
		}
		if met || away.IsZero() {
			away = time.Now()
			p.met = p.met || met
			if p.goesOn(away) && !p.quiet {
				a.sayUnreachable(what, err)
			}
		}
		switch {
		case !p.goesOn(away):
			return err
		case !p.until.IsZero() && time.Until(p.until) < retryEvery:
			return p.refused("%s was not granted within %v: the server cannot be reached", what, p.wait)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *app) sayUnreachable(what string, err error) {
	if a.events {
		a.tell(eventJSON{Event: "unreachable", Resource: what, Error: err.Error()})
		return
	}
	fmt.Fprintf(a.stderr, "signalbox: %s: the server cannot be reached; trying again\n", what)
}

// goesOn says whether a server is tried again that has been away for a while.
func (p *waitFlags) goesOn(away time.Time) bool {
	if p.retryFor < 0 {
		return p.met && !p.noWait
	}
	return time.Since(away) < p.retryFor
}

// untilSignal does something that a signal ends: then the error is interrupted's, whatever was done.
func untilSignal(ctx context.Context, signals <-chan os.Signal, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case s := <-signals:
				if !stops(s) && ends(s) {
					cancel(interrupted(s))
					return
				}
			case <-done:
				return
			}
		}
	}()
	err := do(ctx)
	close(done)
	<-watched
	var given *exitError
	if errors.As(context.Cause(ctx), &given) {
		return given
	}
	return err
}

// interrupted is how the program ends on a signal: nothing needs to be said.
func interrupted(s os.Signal) error {
	number, _ := s.(syscall.Signal)
	return &exitError{exitSignal + int(number), nil}
}

// reviving keeps the private engine alive until the function that it returns is called.
func (a *app) reviving(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.private.revive(ctx, a.warn)
	}()
	return func() {
		cancel()
		<-ended
	}
}
