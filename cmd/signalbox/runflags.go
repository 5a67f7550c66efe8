package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox"
)

// terms are the flags of those that acquire: what is asked for, and on which terms.
type terms struct {
	waitFlags
	limit, weight                int
	ttl, killAfter               time.Duration
	label                        string
	read, write                  bool
	lockDelay, holdAtLeast, pace time.Duration
	replicas                     int
	onWait                       func(signalbox.Waiting) // nil if nothing is to be said
}

// replicasWithin is for how long replicas are waited for.
const replicasWithin = 5 * time.Second

// define has the flags of all that acquire; defineShare, and defineCommand for a command that runs under the lease, the rest.
func (f *terms) define(flags *pflag.FlagSet) {
	f.limit, f.weight = 1, 1
	f.waitFlags.define(flags)
	flags.DurationVar(&f.ttl, "ttl", signalbox.DefaultTTL, "for how long the permits stay taken when signalbox falls silent")
	flags.StringVar(&f.label, "label", "", "shown to others beside host and process id")
	flags.DurationVar(&f.lockDelay, "lock-delay", 0, "keep the permits back for so long after the lease was lost")
	flags.IntVar(&f.replicas, "replicas", 0, fmt.Sprintf("take it only when so many replicas have the grant, within %v", replicasWithin))
}

func (f *terms) defineShare(flags *pflag.FlagSet) {
	f.defineNoWait(flags)
	flags.IntVarP(&f.limit, "limit", "n", 1, "how many permits the resource has")
	flags.IntVar(&f.weight, "weight", 1, "how many permits to hold")
	flags.BoolVar(&f.read, "read", false, "read what the resource guards, beside other readers")
	flags.BoolVar(&f.write, "write", false, "write what the resource guards, alone")
	flags.DurationVar(&f.holdAtLeast, "hold-at-least", 0, "keep the permits back until so long after the grant, however soon it ends")
	flags.DurationVar(&f.pace, "pace", 0, "time between two grants at least")
}

func (f *terms) defineCommand(flags *pflag.FlagSet) {
	flags.SetInterspersed(true)
	flags.Lookup("label").Usage += " (default: the command's name)"
	flags.DurationVar(&f.killAfter, "kill-after", 0, "time between SIGTERM and SIGKILL when the lease is lost (default: ttl/4, at most 5s)")
}

// check looks at the flags, and at the names that they are for.
func (f *terms) check(cmd *cobra.Command, names []string) error {
	changed := cmd.Flags().Changed
	switch {
	case f.read && f.write:
		return usage("--read and --write exclude each other; a writer may read")
	case (f.read || f.write) && (changed("limit") || changed("weight")):
		return usage("--limit and --weight have no meaning with --read and --write")
	case f.limit < 1:
		return usage("--limit must be at least 1, not %d", f.limit)
	case f.weight < 1:
		return usage("--weight must be at least 1, not %d", f.weight)
	case f.weight > f.limit:
		return usage("--weight %d is more than --limit %d, and could never be granted", f.weight, f.limit)
	case changed("replicas") && f.replicas < 1:
		return usage("--replicas must be at least 1, not %d", f.replicas)
	}
	if len(names) > 1 {
		for _, flag := range []string{"read", "write", "lock-delay", "hold-at-least", "pace", "replicas"} {
			if changed(flag) {
				return usage("--%s is for one resource, not %d", flag, len(names))
			}
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return usage("%s is named twice", printable(name))
		}
	}
	if err := f.waitFlags.check(changed); err != nil {
		return err
	}
	return f.checkDurations(changed)
}

func (f *terms) checkDurations(changed func(string) bool) error {
	if f.ttl < signalbox.MinTTL || f.ttl > signalbox.MaxTTL {
		return usage("--ttl must be %v to %v, not %v", signalbox.MinTTL, span(signalbox.MaxTTL), f.ttl)
	}
	for _, term := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"lock-delay", f.lockDelay, time.Millisecond},
		{"hold-at-least", f.holdAtLeast, time.Millisecond},
		{"pace", f.pace, signalbox.MinInterval},
	} {
		if changed(term.name) && (term.value < term.least || term.value > signalbox.MaxTTL) {
			return usage("--%s must be %v to %v, not %v", term.name, term.least, span(signalbox.MaxTTL), term.value)
		}
	}
	if !changed("kill-after") {
		f.killAfter = min(f.ttl/4, 5*time.Second)
	}
	// Renewals come every third of the ttl: with more than half of it as grace, a slow one would look like a loss.
	if f.killAfter < 0 || f.killAfter > f.ttl/2 {
		return usage("--kill-after must be 0 to half the --ttl of %v, not %v", f.ttl, f.killAfter)
	}
	return nil
}

// acquire acquires one resource, or several together, and returns the leases and what is closed when the first of them ends.
func (f *terms) acquire(ctx context.Context, box *signalbox.Box, names []string) ([]*signalbox.Lease, <-chan struct{}, error) {
	if len(names) > 1 {
		return f.acquireAll(ctx, box, names)
	}
	lock := f.lock(box, names[0])
	acquire := lock.Acquire
	if f.noWait {
		acquire = lock.TryAcquire
	}
	lease, err := acquire(ctx, f.options()...)
	if err != nil {
		return nil, nil, err
	}
	return []*signalbox.Lease{lease}, lease.Done(), nil
}

func (f *terms) acquireAll(ctx context.Context, box *signalbox.Box, names []string) ([]*signalbox.Lease, <-chan struct{}, error) {
	requests := make([]signalbox.Request, len(names))
	for i, name := range names {
		requests[i] = box.Semaphore(name, f.limit).Request(f.weight)
	}
	options := []signalbox.AcquireOption{signalbox.TTL(f.ttl), signalbox.Label(f.label)}
	leases, err := box.TryAcquireAll(ctx, requests, options...)
	if errors.Is(err, signalbox.ErrBusy) && !f.noWait {
		if f.onWait != nil {
			f.onWait(signalbox.Waiting{Ahead: -1}) // there is one place in each queue
		}
		leases, err = box.AcquireAll(ctx, requests, options...)
	}
	if err != nil {
		return nil, nil, err
	}
	return leases.All(), leases.Done(), nil
}

// lock is a semaphore, or a side of a read/write lock.
type lock interface {
	Acquire(ctx context.Context, options ...signalbox.AcquireOption) (*signalbox.Lease, error)
	TryAcquire(ctx context.Context, options ...signalbox.AcquireOption) (*signalbox.Lease, error)
}

func (f *terms) lock(box *signalbox.Box, name string) lock {
	switch {
	case f.read:
		return box.RWMutex(name).Read()
	case f.write:
		return box.RWMutex(name).Write()
	}
	return box.Semaphore(name, f.limit)
}

func (f *terms) options() []signalbox.AcquireOption {
	options := []signalbox.AcquireOption{
		signalbox.TTL(f.ttl), signalbox.Label(f.label), signalbox.LockDelay(f.lockDelay), signalbox.HoldAtLeast(f.holdAtLeast),
	}
	if !f.read && !f.write { // a side of a read/write lock has its own weight
		options = append(options, signalbox.Weight(f.weight))
	}
	if f.pace > 0 {
		options = append(options, signalbox.Pace(signalbox.Every(f.pace), 1))
	}
	if f.onWait != nil {
		options = append(options, signalbox.OnWait(f.onWait))
	}
	if f.replicas > 0 {
		options = append(options, signalbox.WithReplicas(f.replicas, replicasWithin))
	}
	return options
}

// replicated refuses a lease that too few replicas have.
func (f *terms) replicated(lease *signalbox.Lease) error {
	if n := lease.Replicas(); n < f.replicas {
		return &exitError{exitUnavailable, fmt.Errorf("%s: %d of %s had the grant within %v; see INFO replication on the server, or give a smaller --replicas",
			printable(lease.Resource()), n, count(f.replicas, "replica"), replicasWithin)}
	}
	return nil
}
