package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) electCommand() *cobra.Command {
	var f terms
	cmd := &cobra.Command{
		Use: "elect [flags] NAME -- COMMAND [ARGUMENT…]", Short: "Run a command while being the leader, and again when it is so anew",
		Long: `Stand for election, and run a command while this is the leader: of all that stand
under one name, one at a time. When the lease is lost (no renewal, or an operator ended
it), the command is ended before another can lead, as under signalbox run, and this one
stands again: then the command is started anew. When the command itself ends, so does
the term, and signalbox with the command's exit status; who restarts services restarts
this one, behind those that stand already.

The command gets SIGNALBOX_RESOURCE and SIGNALBOX_TOKEN, the fencing token, which is
larger in each term. Who leads is shown by signalbox inspect NAME; the leader is the
holder of a lock of that name, for signalbox run and for Election in the library too.
All that is said of the command, of signals and of what is ended holds as for
signalbox run.

Exit status: the command's, or 128 plus the number of the signal that ended it, or
  64   the command line makes no sense
  69   the server cannot be reached; once it was met, it is tried again
  75   not the leader within --wait, or sent away by an operator while it waited
       (--conflict-exit-code has another)
  126  the command cannot be run
  127  the command was not found
` + eventsHelp,
		Example: `  signalbox elect scheduler -- ./scheduler
  signalbox elect --ttl 10s --label web1:8080 scheduler -- ./scheduler   # another leads after 10 s at most
  signalbox inspect scheduler                                            # who leads, who stands behind`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, argv, err := runArguments(cmd, args)
			if err == nil && len(names) > 1 {
				err = usage("one name before --, not %d: %s NAME -- COMMAND", len(names), cmd.CommandPath())
			}
			if err == nil {
				err = f.check(cmd, names)
			}
			if err != nil {
				return err
			}
			a.events = a.json
			return a.toldFailed(a.elect(cmd.Context(), &f, names, argv))
		},
	}
	f.define(cmd.Flags())
	f.defineCommand(cmd.Flags())
	return cmd
}

// elect runs the command term by term, until it ends by itself.
func (a *app) elect(ctx context.Context, f *terms, names, argv []string) error {
	path, err := f.prepare(argv)
	if err != nil {
		return err
	}
	signals, end := hear()
	defer end()
	for {
		g, err := a.obtain(ctx, f, names, signals)
		if err != nil {
			return err
		}
		asked, err := g.run(f, path, argv, signals)
		g.release(ctx)
		var exit *exitError
		deposed := errors.As(err, &exit) && exit.status == exitLost && exit.err != nil // a command's own status comes without
		if !deposed || asked {
			return err
		}
		f.met = true
		if !a.events { // which have told that it was lost
			fmt.Fprintf(a.stderr, "signalbox: %v; it stands for election again\n", err)
		}
	}
}
