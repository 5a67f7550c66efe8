package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func (a *app) lockCommand() *cobra.Command {
	var f terms
	cmd := &cobra.Command{
		Use: "lock [flags] NAME…", Short: "Hold a permit until a signal comes",
		Long: `Hold permits of a resource, W of N, one of one if nothing else is said, until Ctrl-C
or SIGTERM: for work by hand, or for a script that does its work beside it. A line on
standard output says when it is held. It waits, and takes the flags, as signalbox run
does; with several names it holds all of them or none.

The lease ends with this process. To hold one from one step of a pipeline to a later
one, see signalbox acquire.

JSON: {resource, token, id}, one object a line for each resource.

Exit status: 0 if a signal ended it, or
  64   the command line makes no sense
  69   the server cannot be reached, or too few replicas have the grant
  75   no permit: refused, not granted in time, or sent away by an operator
       (--conflict-exit-code has another)
  76   the lease was lost
  128  plus the number of the signal that came while it waited`,
		Example: `  signalbox lock --label 'upgrading by hand' database
  signalbox lock --write catalog
  coproc signalbox lock --json deploy; read -r held <&"${COPROC[0]}"; ./deploy.sh; kill $COPROC_PID   # bash`,
		DisableFlagsInUseLine: true, ValidArgsFunction: a.completed(0, nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("which resource? %s NAME", cmd.CommandPath())
			}
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return a.lock(cmd.Context(), &f, args)
		},
	}
	f.define(cmd.Flags())
	f.defineShare(cmd.Flags())
	return cmd
}

// lock acquires, and holds until a signal comes or the lease ends.
func (a *app) lock(ctx context.Context, f *terms, names []string) error {
	signals, end := hear()
	defer end()
	g, err := a.obtain(ctx, f, names, signals)
	if err != nil {
		return err
	}
	if err = a.printGrant(g); err == nil {
		err = g.keep(signals)
	}
	g.release(ctx)
	return err
}

// keep holds until a signal comes or a lease ends.
func (g *grant) keep(signals <-chan os.Signal) error {
	for {
		select {
		case s := <-signals:
			if !stops(s) && ends(s) {
				return nil
			}
		case <-g.done:
		}
		if cause := g.Err(); cause != nil {
			return g.lost(cause, "")
		}
	}
}

// grantJSON is what is held of a resource.
type grantJSON struct {
	Resource string `json:"resource"`
	Token    int64  `json:"token"`
	ID       string `json:"id"`
}

// printGrant says what is held.
func (a *app) printGrant(g *grant) error {
	for _, lease := range g.leases {
		var err error
		if a.json {
			encoder := json.NewEncoder(a.stdout)
			encoder.SetEscapeHTML(false)
			err = encoder.Encode(grantJSON{lease.Resource(), lease.Token(), lease.ID()})
		} else {
			_, err = fmt.Fprintf(a.stdout, "%s: held, with token %d\n", printable(lease.Resource()), lease.Token())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
