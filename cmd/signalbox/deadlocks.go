package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

func (a *app) deadlocksCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deadlocks", Short: "Show who waits for each other in a circle", Args: exactly(),
		Long: `Show the circles of parties of which each waits for what the next holds, from one
look at every resource: look twice before you break one. A party is an owner with
its label; a program that acquires in several places independently of each other
should give each of them a label of its own.

JSON: a list of {waits: [{owner, label, resource, id, held_by}]}; id is that of the
place in the queue, held_by that of the lease it waits for.

A resource in whose place is a key of another program is left out, and named on
standard error, with the keys to look at.

Exit status: 1 if there is one, 0 if there is none.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.look(cmd.Context(), func(box *signalbox.Box) error {
				found := []signalbox.Deadlock{}
				if box != nil {
					circles, err := box.Deadlocks(cmd.Context())
					switch {
					case errors.Is(err, signalbox.ErrWrongType):
						a.warn(err.Error())
					case err != nil:
						return err
					}
					found = append(found, circles...)
				}
				return a.printDeadlocks(found)
			})
		},
	}
}

func (a *app) printDeadlocks(found []signalbox.Deadlock) error {
	var err error
	switch {
	case a.json:
		err = a.printJSON(found)
	case len(found) == 0:
		_, err = fmt.Fprintln(a.stdout, "Nobody waits in a circle.")
	default:
		for _, circle := range found {
			if err = a.printCircle(circle); err != nil {
				return err
			}
		}
		first := found[0].Waits[0]
		_, err = fmt.Fprintf(a.stdout, "To break a circle, send one of its waiters away: signalbox release %s %s\n",
			printable(first.Resource), printable(first.ID))
	}
	if err == nil && len(found) > 0 {
		return &exitError{exitFailure, nil}
	}
	return err
}

func (a *app) printCircle(circle signalbox.Deadlock) error {
	t := newTable("PARTY", "WAITS FOR", "WITH ID", "HELD BY ID")
	for _, w := range circle.Waits {
		t.add(who(w.Owner, w.Label), printable(w.Resource), printable(w.ID), printable(w.HeldBy))
	}
	if err := t.print(a.stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stdout)
	return err
}
