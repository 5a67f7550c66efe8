package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox"
)

// A grant is what `run`, `lock`, `elect` and `acquire` hold: the leases of one acquisition, of one resource, or of several
// that were acquired together, on the box that renews them.
type grant struct {
	app    *app
	box    *signalbox.Box
	leases []*signalbox.Lease
	done   <-chan struct{} // closed when the first of the leases ends, or a mark is gone
	marks  []*mark         // on the private engine

	unmarked   atomic.Bool // a mark is gone
	endMinding func()      // nil without marks
}

// errUnmarked: nothing keeps others out any more.
var errUnmarked = errors.New("the folder of the private local engine was removed")

// Deadline is when the first of the leases ends that is not renewed until then.
func (g *grant) Deadline() time.Time {
	first := g.leases[0].Deadline()
	for _, lease := range g.leases[1:] {
		if at := lease.Deadline(); at.Before(first) {
			first = at
		}
	}
	return first
}

// Err is nil while everything is held; then it is why a lease has ended.
func (g *grant) Err() error {
	if g.unmarked.Load() {
		return errUnmarked
	}
	for _, lease := range g.leases {
		if err := lease.Err(); err != nil {
			return err
		}
	}
	return nil
}

// names are the resources, in the order of the command line.
func (g *grant) names() (names []string) {
	for _, lease := range g.leases {
		names = append(names, lease.Resource())
	}
	return names
}

// environment tells a command what it holds; of several resources in a line each.
func (g *grant) environment() []string {
	tokens := make([]string, len(g.leases))
	for i, lease := range g.leases {
		tokens[i] = fmt.Sprint(lease.Token())
	}
	return append([]string{
		"SIGNALBOX_RESOURCE=" + strings.Join(g.names(), "\n"), "SIGNALBOX_TOKEN=" + strings.Join(tokens, "\n"),
	}, g.app.whereabouts()...)
}

// lost says what became of the command under a lease that is over.
func (g *grant) lost(cause error, outcome string) error {
	resource, _, text := g.loss(cause)
	return &exitError{exitLost, fmt.Errorf("%s: the lease %s%s", printable(resource), text, outcome)}
}

// loss is which lease is over, and why, for programs and for people.
func (g *grant) loss(cause error) (resource, reason, text string) {
	of := g.leases[0]
	for _, lease := range g.leases {
		if lease.Err() != nil {
			of = lease
			break
		}
	}
	switch {
	case errors.Is(cause, signalbox.ErrForced):
		return of.Resource(), "forced", "was ended by an operator"
	case errors.Is(cause, errUnmarked):
		return of.Resource(), "folder removed", "is void: " + errUnmarked.Error()
	}
	return of.Resource(), "not renewed", "could not be renewed in time"
}

// mind closes done when a mark is gone, as at the end of a lease, until endMinding is called.
func (g *grant) mind() {
	leases, done := g.done, make(chan struct{})
	g.done = done
	ctx, cancel := context.WithCancel(context.Background())
	var minding sync.WaitGroup
	g.endMinding = func() {
		cancel()
		minding.Wait()
	}
	minding.Go(func() {
		tick := time.NewTicker(reachEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				g.unmarked.Store(slices.ContainsFunc(g.marks, (*mark).isGone))
			case <-leases:
			case <-ctx.Done():
				return
			}
			if g.Err() != nil {
				close(done)
				return
			}
		}
	})
}

func (g *grant) unmark() {
	if g.endMinding != nil {
		g.endMinding()
	}
	for _, m := range g.marks {
		m.remove()
	}
}

// release gives the permits back, and closes the box.
func (g *grant) release(ctx context.Context) {
	g.unmark()
	// Close releases as Release does, but gives up on a server that has gone after the claim time, not after the ttl:
	// whoever waits for the command's exit status shall have it.
	closed := g.box.Close()
	var trouble []error
	for _, lease := range slices.Backward(g.leases) {
		// A lease that is lost was so before it was known, or what ran under it has been ended: then that is said.
		switch err := lease.Release(ctx); {
		case err == nil:
			g.app.tell(eventJSON{Event: "released", Resource: lease.Resource()})
		case !errors.Is(err, signalbox.ErrLeaseLost) && !errors.Is(err, signalbox.ErrForced):
			trouble = append(trouble, err)
		}
	}
	if err := errors.Join(append(trouble, closed)...); err != nil {
		g.app.warn(err.Error())
	}
}

// listed is names for people: "a", "a and b", "a, b and c".
func listed(names []string) string {
	text := make([]string, len(names))
	for i, name := range names {
		text[i] = printable(name)
	}
	if last := len(text) - 1; last > 0 {
		return strings.Join(text[:last], ", ") + " and " + text[last]
	}
	return text[0]
}

// obtain connects and acquires. A signal meanwhile gives up the place in the queue.
func (a *app) obtain(ctx context.Context, f *terms, names []string, signals <-chan os.Signal) (*grant, error) {
	var g *grant
	err := untilSignal(ctx, signals, func(ctx context.Context) error {
		return a.insist(ctx, &f.waitFlags, listed(names), func(box *signalbox.Box) (err error) {
			g, err = a.attempt(ctx, f, box, names)
			return err
		})
	})
	if err != nil && g != nil { // the grant and the signal have met
		g.release(ctx)
		g = nil
	}
	return g, err
}

// attempt acquires once, and closes the box if that fails.
func (a *app) attempt(ctx context.Context, f *terms, box *signalbox.Box, names []string) (*grant, error) {
	g, err := a.await(ctx, f, box, names)
	if err != nil {
		err = a.explain(ctx, box, f, names, err)
	} else if err = f.replicated(g.leases[0]); err == nil {
		return g, nil
	} else {
		g.unmark()
		err = errors.Join(err, g.leases[0].Release(ctx))
	}
	a.closeAfter(box, err)
	return nil, err
}

// closeAfter closes a box that was of no use. That a server which is away was not told of the end is nothing new.
func (a *app) closeAfter(box *signalbox.Box, err error) {
	if closed := box.Close(); closed != nil && !errors.Is(err, signalbox.ErrUnavailable) {
		a.warn(closed.Error())
	}
}

// await waits for the grant, as long as it may.
func (a *app) await(ctx context.Context, f *terms, box *signalbox.Box, names []string) (*grant, error) {
	if f.noWait {
		return a.markHeld(ctx, f, box, names)
	}
	if !f.quiet {
		display := a.newWaitingDisplay(ctx, box, names, f.weight)
		defer display.close()
		f.onWait = display.changed
	}
	ctx, done := f.bounded(ctx)
	defer done()
	return a.markHeld(ctx, f, box, names)
}

// markHeld acquires, and makes sure that nobody holds what an earlier private engine has granted.
func (a *app) markHeld(ctx context.Context, f *terms, box *signalbox.Box, names []string) (*grant, error) {
	leases, done, err := f.acquire(ctx, box, names)
	if err != nil {
		return nil, err
	}
	g := &grant{app: a, box: box, leases: leases, done: done}
	if a.private == nil {
		return g, nil
	}
	for _, name := range names {
		var m *mark
		if m, err = a.private.markHeld(ctx, name, !f.noWait, done); err != nil {
			if errors.Is(err, errFormer) || errors.Is(err, context.DeadlineExceeded) {
				err = f.refused("%s is busy: %w", printable(name), errFormer)
			}
			g.unmark()
			for _, lease := range leases {
				err = errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
			}
			return nil, err
		}
		g.marks = append(g.marks, m)
	}
	g.mind()
	return g, nil
}

// explain turns the refusals into what a person wants to know.
func (a *app) explain(ctx context.Context, box *signalbox.Box, f *terms, names []string, err error) error {
	what, is, was := listed(names), "is", "was"
	if len(names) > 1 {
		is, was = "are", "were"
	}
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, signalbox.ErrBusy):
		return f.refused("%s %s busy: %s; leave out --no-wait to wait in the queue", what, is, heldBy(ctx, box, names, f.weight))
	case errors.Is(err, context.DeadlineExceeded):
		return f.refused("%s %s not granted within %v: %s; give more time with --wait, or see signalbox inspect %s",
			what, was, f.wait, heldBy(ctx, box, names, f.weight), printable(names[0]))
	case errors.Is(err, signalbox.ErrForced):
		return f.refused("%s: an operator took this waiter out of the queue", what)
	case errors.Is(err, signalbox.ErrTooHeavy):
		return &exitError{exitUsage, fmt.Errorf("%s: --weight %d is more than the limit that an operator has set; see signalbox inspect %s",
			what, f.weight, printable(names[0]))}
	}
	return err
}
