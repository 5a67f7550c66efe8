package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

func (a *app) releaseCommand() *cobra.Command {
	var all, yes bool
	var token int64
	cmd := &cobra.Command{
		Use: "release NAME ID | release NAME --all | release NAME --token TOKEN", Short: "End leases by hand, or give one back",
		ValidArgsFunction: a.completed(1, idsOf),
		Long: `End the lease of an id, or send the waiter of that id away; with --all, end every
lease of the resource. Ids are shown by signalbox inspect NAME. Whoever held the
lease is told, and may go on until it notices.

With --token it gives back what signalbox acquire --detach has taken, and does not ask;
the exit status is 76 if that lease was over already.

JSON: {resource, ended}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			want, back := []string{"NAME", "ID"}, cmd.Flags().Changed("token")
			switch {
			case all && back:
				return usage("--all and --token exclude each other")
			case !all && !back && len(args) == 1:
				name := printable(args[0])
				return usage("%s: which lease? --token TOKEN gives back what signalbox acquire --detach has taken; signalbox inspect %s shows the ids of others, "+
					"and --all ends every one", name, name)
			case all:
				want = []string{"NAME (with --all)"}
			case back:
				want = []string{"NAME (with --token)"}
			}
			if err := exactly(want...)(cmd, args); err != nil {
				return err
			}
			if back {
				return a.releaseToken(cmd.Context(), args[0], token)
			}
			return a.with(cmd.Context(), func(box *signalbox.Box) error { return a.release(cmd, box, args, all, yes) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end every lease of the resource")
	cmd.Flags().Int64Var(&token, "token", 0, "give back the lease that has this fencing token")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) release(cmd *cobra.Command, box *signalbox.Box, args []string, all, yes bool) error {
	name := args[0]
	state, err := box.Inspect(cmd.Context(), name)
	if err != nil {
		return err
	}
	if !yes && state.Leases > 0 {
		if err := a.consent(printable(name), endOf(state, args, all), ", or the --token that signalbox acquire --detach has printed"); err != nil {
			return err
		}
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
		advice := "see signalbox inspect " + printable(name)
		if token, err := strconv.ParseInt(args[1], 10, 64); err == nil {
			advice = fmt.Sprintf("if that is the token of signalbox acquire --detach: signalbox release %s --token %d", printable(name), token)
		}
		return fmt.Errorf("%s: nobody with the id %q holds it or waits; %s", printable(name), args[1], advice)
	}
	if a.json {
		return a.printJSON(map[string]any{"resource": name, "ended": ended})
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ended %s\n", printable(name), count(ended, "lease"))
	return err
}

// endOf asks whether leases are to end.
func endOf(state signalbox.State, args []string, all bool) (question string) {
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
	return fmt.Sprintf("end %s? %s may still be at work.", whom, whose)
}
