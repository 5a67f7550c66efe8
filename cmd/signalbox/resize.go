package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

func (a *app) resizeCommand() *cobra.Command {
	var clearLimit bool
	cmd := &cobra.Command{
		Use: "resize NAME N | resize NAME --clear", Short: "Set a limit that overrides what callers state",
		ValidArgsFunction: a.completed(1, nil),
		Long: `Set the limit of a resource, stronger than what callers state, until it is
cleared. A larger limit lets waiters in at once. A smaller one takes nothing
away: nobody is let in until what is held fits. Waiters heavier than the limit
are sent away.

JSON: {resource, limit, before}; 0 means that callers decide.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			limit, err := parseResize(cmd, args, clearLimit)
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(box *signalbox.Box) error {
				before, err := box.Resize(cmd.Context(), args[0], limit)
				if err != nil {
					return err
				}
				return a.printResize(args[0], limit, before)
			})
		},
	}
	cmd.Flags().BoolVar(&clearLimit, "clear", false, "let callers decide again")
	return cmd
}

func parseResize(cmd *cobra.Command, args []string, clearLimit bool) (int, error) {
	if clearLimit {
		return 0, exactly("NAME (with --clear)")(cmd, args)
	}
	if err := exactly("NAME", "N")(cmd, args); err != nil {
		return 0, err
	}
	limit, err := strconv.Atoi(args[1])
	if err != nil || limit < 1 {
		return 0, usage("the limit of %s must be a number of at least 1, not %q; --clear lets callers decide", args[0], args[1])
	}
	return limit, nil
}

func (a *app) printResize(name string, limit, before int) error {
	if a.json {
		return a.printJSON(map[string]any{"resource": name, "limit": limit, "before": before})
	}
	text := fmt.Sprintf("%s: limit is %d now", printable(name), limit)
	if limit == 0 {
		text = printable(name) + ": callers decide the limit again"
	}
	if before > 0 {
		text += fmt.Sprintf(" (was set to %d)", before)
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}
