package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// limitFlags are those of `limit`.
type limitFlags struct {
	waitFlags
	rate        string
	every       time.Duration // what rate says
	burst, cost int
}

func (a *app) limitCommand() *cobra.Command {
	var f limitFlags
	cmd := &cobra.Command{
		Use: "limit --rate N/TIME [flags] NAME [-- COMMAND [ARGUMENT…]]", Short: "Wait for a turn of a rate, and run a command",
		Long: `Wait until one more may pass under a rate that all share who use the name, in the
order of asking, on whatever machine: then run the command, or without one, end. The
rate is a number in a time: 10/s, 100/m, 5/2s. Turns come at equal distances; after a
quiet time up to --burst of them come at once. --cost takes several units in one turn.

The command takes the place of signalbox: same process id, its own exit status. Nothing
is held while it runs; for how many run at once there is signalbox run --limit.

Those who state different rates under one name are each held to their own. A signal,
or --wait, gives the turn back.

Exit status: the command's, or 0, or
  64   the command line makes no sense
  69   the server cannot be reached
  75   its turn would not come in time, or with --no-wait not now
       (--conflict-exit-code has another)
  126  the command cannot be run
  127  the command was not found
  128  plus the number of the signal that came while it waited`,
		Example: `  for page in $(cat pages); do signalbox limit --rate 2/s host:example.org -- wget "$page"; done
  signalbox limit --rate 100/m --burst 10 api && ./call.sh
  signalbox limit --rate 1/h --no-wait --quiet alert -- ./page-the-operator.sh`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			argv, err := f.check(cmd, args)
			if err != nil {
				return err
			}
			return a.limit(cmd.Context(), &f, args[0], argv)
		},
	}
	flags := cmd.Flags()
	f.define(flags)
	f.defineNoWait(flags)
	flags.StringVar(&f.rate, "rate", "", "how many may pass in a time: 10/s, 100/m, 5/2s")
	flags.IntVar(&f.burst, "burst", 1, "how many may pass at once after a quiet time")
	flags.IntVar(&f.cost, "cost", 1, "how many units this turn takes")
	return cmd
}

// check looks at the flags, and returns the command, nil if there is none.
func (f *limitFlags) check(cmd *cobra.Command, args []string) (argv []string, err error) {
	names := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		names, argv = dash, args[dash:]
		if len(argv) == 0 {
			return nil, usage("the command is missing behind --")
		}
	}
	switch {
	case names != 1:
		return nil, usage("one name, not %d: %s --rate 10/s NAME -- COMMAND", names, cmd.CommandPath())
	case f.rate == "":
		return nil, usage("--rate says how many may pass in a time, such as --rate 10/s")
	case f.burst < 1:
		return nil, usage("--burst must be at least 1, not %d", f.burst)
	case f.noWait && f.cost > f.burst:
		return nil, usage("--cost %d is more than --burst %d, and could never pass without waiting", f.cost, f.burst)
	case f.cost < 1:
		return nil, usage("--cost must be at least 1, not %d", f.cost)
	}
	if f.every, err = parseRate(f.rate); err != nil {
		return nil, err
	}
	return argv, f.waitFlags.check(cmd.Flags().Changed)
}

// limit waits for the turn, and becomes the command.
func (a *app) limit(ctx context.Context, f *limitFlags, name string, argv []string) error {
	path := ""
	if argv != nil {
		var err error
		if path, err = findCommand(argv[0]); err != nil {
			return err
		}
	}
	err := a.inTurn(ctx, &f.waitFlags, name, func(ctx context.Context, box *signalbox.Box) error {
		limiter := box.Limiter(name, signalbox.Every(f.every), signalbox.Burst(f.burst))
		return f.pass(ctx, a, limiter, name)
	})
	if err != nil || argv == nil {
		return err
	}
	return become(path, argv, append(os.Environ(), a.whereabouts()...))
}

// inTurn opens a box, and waits on it for something that is not held: a turn, or others. A signal ends it.
func (a *app) inTurn(ctx context.Context, p *waitFlags, name string, wait func(context.Context, *signalbox.Box) error) error {
	signals, end := hear()
	defer end()
	return untilSignal(ctx, signals, func(ctx context.Context) error {
		return a.insist(ctx, p, printable(name), func(box *signalbox.Box) error {
			bounded, done := p.bounded(ctx)
			defer done()
			err := wait(bounded, box)
			a.closeAfter(box, err)
			return err
		})
	})
}

// saidFrom is how long a turn is away for which somebody is told to wait.
const saidFrom = time.Second

const notInTime = "its turn would not come"

// pass takes a turn of the limiter.
func (f *limitFlags) pass(ctx context.Context, a *app, limiter *signalbox.Limiter, name string) error {
	err := limiter.Allow(ctx, f.cost)
	var late *signalbox.RateError
	switch {
	case err == nil:
		return nil
	case f.noWait && errors.As(err, &late):
		return f.refused("%s: its turn would come in %s; leave out --no-wait to wait", printable(name), span(late.RetryAfter))
	case f.noWait || !errors.As(err, &late) && !errors.Is(err, signalbox.ErrTooHeavy):
		return f.overdue(err, name, notInTime)
	}
	// More than the burst can wait, though it can never pass at once.
	if late != nil && late.RetryAfter >= saidFrom {
		a.say(&f.waitFlags, "waiting for %s: its turn comes in %s", printable(name), span(late.RetryAfter))
	}
	return f.overdue(limiter.Wait(ctx, f.cost), name, notInTime)
}
