package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

func (a *app) releaseCommand() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use: "release NAME ID | release NAME --all", Short: "End leases by hand",
		Long: `End the lease of an id, or send the waiter of that id away; with --all, end every
lease of the resource. Ids are shown by signalbox inspect NAME. Whoever held the
lease is told, and may go on until it notices.

JSON: {resource, ended}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			want := []string{"NAME", "ID"}
			if all {
				want = []string{"NAME (with --all)"}
			}
			if err := exactly(want...)(cmd, args); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(box *signalbox.Box) error { return a.release(cmd, box, args, all, yes) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end every lease of the resource")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) release(cmd *cobra.Command, box *signalbox.Box, args []string, all, yes bool) error {
	name := args[0]
	state, err := box.Inspect(cmd.Context(), name)
	if err != nil {
		return err
	}
	if !yes && isTerminal(a.stdin) && state.Leases > 0 && !a.confirmed(state, args, all) {
		return &exitError{exitFailure, fmt.Errorf("%s: nothing was released", printable(name))}
	}
	ended := 0
	if all {
		ended, err = box.ForceAll(cmd.Context(), name)
	} else {
		var found bool
		if found, err = box.Force(cmd.Context(), name, args[1]); found {
			ended = 1
		}
	}
	if err != nil {
		return err
	}
	if ended == 0 && !all {
		return fmt.Errorf("%s: nobody with the id %q holds it or waits; see signalbox inspect %s", printable(name), args[1], printable(name))
	}
	if a.json {
		return a.printJSON(map[string]any{"resource": name, "ended": ended})
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ended %s\n", printable(name), count(ended, "lease"))
	return err
}

// confirmed asks the person at the terminal.
func (a *app) confirmed(state signalbox.State, args []string, all bool) bool {
	whom, whose := count(state.Leases, "lease"), "Their holders"
	if state.Leases == 1 || !all {
		whose = "Its holder"
	}
	if !all {
		whom = args[1]
		for _, h := range state.Holders {
			if h.ID == args[1] {
				whom = fmt.Sprintf("the lease of %s, held for %s", who(h.Owner, h.Label), span(state.Now.Sub(h.Since)))
			}
		}
	}
	fmt.Fprintf(a.stderr, "%s: end %s? %s may still be at work. [y/N] ", printable(state.Resource), whom, whose)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	return err == nil && strings.EqualFold(strings.TrimSpace(answer), "y")
}
