package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// completeWithin is for how long a shell's completion waits for the server.
const completeWithin = 2 * time.Second

type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completed offers names of resources for the first arguments, any number if most is 0, and what second says for the one
// behind the first. A server that does not answer offers nothing.
func (a *app) completed(most int, second func(signalbox.State) []string) completion {
	return func(cmd *cobra.Command, args []string, _ string) (offers []string, _ cobra.ShellCompDirective) {
		ctx, done := context.WithTimeout(cmd.Context(), completeWithin)
		defer done()
		_ = a.look(ctx, func(box *signalbox.Box) error { // nobody reads errors here
			switch {
			case box == nil:
			case most == 0 || len(args) < most:
				states, err := box.List(ctx)
				if err != nil && !errors.Is(err, signalbox.ErrWrongType) {
					return err
				}
				for _, s := range states {
					if !slices.Contains(args, s.Resource) {
						offers = append(offers, s.Resource)
					}
				}
			case second != nil && len(args) == 1:
				state, err := box.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				offers = second(state)
			}
			return nil
		})
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
}

// idsOf are the ids that `release` takes, with who they are.
func idsOf(state signalbox.State) (ids []string) {
	for _, h := range state.Holders {
		ids = append(ids, h.ID+"\tholds: "+who(h.Owner, h.Label))
	}
	for _, w := range state.Queue {
		ids = append(ids, w.ID+"\twaits: "+who(w.Owner, w.Label))
	}
	return ids
}
