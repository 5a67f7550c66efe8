package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox"
)

// runFlags are the flags of `run`: what is asked for, and on which terms.
type runFlags struct {
	limit, weight                int
	ttl, wait, killAfter         time.Duration
	noWait, quiet                bool
	conflictStatus               int
	retryFor                     time.Duration // < 0: not said
	until                        time.Time     // when the waiting is over, zero if never
	label                        string
	read, write                  bool
	lockDelay, holdAtLeast, pace time.Duration
	replicas                     int
}

// replicasWithin is for how long replicas are waited for.
const replicasWithin = 5 * time.Second

func (f *runFlags) define(flags *pflag.FlagSet) {
	flags.SetInterspersed(true)
	flags.IntVarP(&f.limit, "limit", "n", 1, "how many permits the resource has")
	flags.IntVar(&f.weight, "weight", 1, "how many permits to hold")
	flags.BoolVar(&f.read, "read", false, "read what the resource guards, beside other readers")
	flags.BoolVar(&f.write, "write", false, "write what the resource guards, alone")
	flags.DurationVar(&f.ttl, "ttl", signalbox.DefaultTTL, "for how long the permits stay taken when signalbox falls silent")
	flags.DurationVar(&f.wait, "wait", 0, "wait so long at most (default: as long as it takes)")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait at all")
	flags.DurationVar(&f.retryFor, "retry-for", -1, "go on for so long while the server cannot be reached\n(default: as long as it waits, once the server was met)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing about waiting or being refused")
	flags.IntVar(&f.conflictStatus, "conflict-exit-code", exitBusy, "exit status when there is no permit")
	flags.StringVar(&f.label, "label", "", "shown to others beside host and process id (default: the command's name)")
	flags.DurationVar(&f.killAfter, "kill-after", 0, "time between SIGTERM and SIGKILL when the lease is lost (default: ttl/4, at most 5s)")
	flags.DurationVar(&f.lockDelay, "lock-delay", 0, "keep the permits back for so long after the lease was lost")
	flags.DurationVar(&f.holdAtLeast, "hold-at-least", 0, "keep the permits back until so long after the grant, however soon the command ends")
	flags.DurationVar(&f.pace, "pace", 0, "time between two grants at least")
	flags.IntVar(&f.replicas, "replicas", 0, fmt.Sprintf("run the command only when so many replicas have the grant, within %v", replicasWithin))
}

func (f *runFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case f.noWait && changed("wait"):
		return usage("--wait and --no-wait exclude each other")
	case changed("wait") && f.wait <= 0:
		return usage("--wait must be longer than 0, not %v; --no-wait does not wait at all", f.wait)
	case changed("retry-for") && f.retryFor < 0:
		return usage("--retry-for must be 0 or longer, not %v", f.retryFor)
	case f.conflictStatus < 0 || f.conflictStatus > 255:
		return usage("--conflict-exit-code must be 0 to 255, not %d", f.conflictStatus)
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
	return f.checkDurations(changed)
}

func (f *runFlags) checkDurations(changed func(string) bool) error {
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

// refused is that there is no permit.
func (f *runFlags) refused(format string, args ...any) error {
	if f.quiet {
		return &exitError{f.conflictStatus, nil}
	}
	return &exitError{f.conflictStatus, fmt.Errorf(format, args...)}
}

// lock is what `run` acquires: a semaphore, or a side of a read/write lock.
type lock interface {
	Acquire(ctx context.Context, options ...signalbox.AcquireOption) (*signalbox.Lease, error)
	TryAcquire(ctx context.Context, options ...signalbox.AcquireOption) (*signalbox.Lease, error)
}

func (f *runFlags) lock(box *signalbox.Box, name string) lock {
	switch {
	case f.read:
		return box.RWMutex(name).Read()
	case f.write:
		return box.RWMutex(name).Write()
	}
	return box.Semaphore(name, f.limit)
}

func (f *runFlags) options() []signalbox.AcquireOption {
	options := []signalbox.AcquireOption{
		signalbox.TTL(f.ttl), signalbox.Label(f.label), signalbox.LockDelay(f.lockDelay), signalbox.HoldAtLeast(f.holdAtLeast),
	}
	if !f.read && !f.write { // a side of a read/write lock has its own weight
		options = append(options, signalbox.Weight(f.weight))
	}
	if f.pace > 0 {
		options = append(options, signalbox.Pace(signalbox.Every(f.pace), 1))
	}
	if f.replicas > 0 {
		options = append(options, signalbox.WithReplicas(f.replicas, replicasWithin))
	}
	return options
}

// replicated refuses a lease that too few replicas have.
func (f *runFlags) replicated(lease *signalbox.Lease) error {
	if n := lease.Replicas(); n < f.replicas {
		return &exitError{exitUnavailable, fmt.Errorf("%s: %d of %s had the grant within %v; see INFO replication on the server, or give a smaller --replicas",
			printable(lease.Resource()), n, count(f.replicas, "replica"), replicasWithin)}
	}
	return nil
}
