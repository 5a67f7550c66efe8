package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

// drainJSON is the output of `queue drain --json`.
type drainJSON struct {
	Workers []queue.WorkerInfo `json:"workers"`
	Gone    bool               `json:"gone"`
}

func (a *app) queueDrainCommand() *cobra.Command {
	all, noWait := false, false
	cmd := &cobra.Command{
		Use: "drain NAME... | drain --all", Short: "Have workers finish what they run, and end",
		Long: `Have workers take nothing new, finish what they run, and end; and wait until they have.
They are given by their names or ids, as signalbox queue workers shows them. What they
have not ended in their time to drain goes back to the queue. Whoever runs them may
start them again: to have nothing begin at all, pause the queue.

JSON: {workers, gone}; workers as in signalbox queue workers --json, gone says whether
all of them have ended.`,
		Example: `  signalbox queue drain --all
  signalbox queue drain mailer --no-wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all != (len(args) == 0) {
				return usage("which workers? %s NAME..., or --all", cmd.CommandPath())
			}
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error { return a.drain(cmd.Context(), q, args, noWait) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all workers")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until they have ended")
	return cmd
}

func (a *app) drain(ctx context.Context, q *queue.Queue, names []string, noWait bool) error {
	workers, err := a.workersNamed(ctx, q, names)
	if err != nil {
		return err
	}
	var ids []string
	for i := range workers {
		ids = append(ids, workers[i].ID)
	}
	if len(ids) > 0 {
		if err := q.Drain(ctx, ids...); err != nil {
			return err
		}
	}
	out := drainJSON{workers, noWait && len(ids) == 0}
	if !noWait {
		if err := a.awaitGone(ctx, q, ids); err != nil {
			return err
		}
		out.Gone = true
	}
	if a.json {
		return a.printJSON(out)
	}
	what := "told to end"
	if out.Gone {
		what = "ended"
	}
	_, err = fmt.Fprintf(a.stdout, "%s of queue %s %s\n", count(len(workers), "worker"), printable(a.queue), what)
	return err
}

// workersNamed returns the workers with these names or ids, or all.
func (a *app) workersNamed(ctx context.Context, q *queue.Queue, names []string) ([]queue.WorkerInfo, error) {
	found := []queue.WorkerInfo{}
	if q != nil {
		workers, err := q.Workers(ctx)
		if err != nil {
			return nil, err
		}
		found = workers
	}
	if len(names) == 0 {
		return found, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(w queue.WorkerInfo) bool { return w.Name == name || w.ID == name }) {
			return nil, &exitError{exitFailure, fmt.Errorf("queue %s has no worker %s; see signalbox queue workers", printable(a.queue), printable(name))}
		}
	}
	return slices.DeleteFunc(found, func(w queue.WorkerInfo) bool {
		return !slices.Contains(names, w.Name) && !slices.Contains(names, w.ID)
	}), nil
}

// awaitGone waits until workers have ended.
func (a *app) awaitGone(ctx context.Context, q *queue.Queue, ids []string) error {
	shown := a.newProgress()
	defer shown.clear()
	for len(ids) > 0 {
		workers, err := q.Workers(ctx)
		if err != nil {
			return err
		}
		left, run := 0, 0
		for i := range workers {
			if slices.Contains(ids, workers[i].ID) {
				left++
				for _, c := range workers[i].Capacities {
					run += c.Used
				}
			}
		}
		if left == 0 {
			return nil
		}
		shown.say(func() string {
			return fmt.Sprintf("%d of %s have ended, %d of their capacity is in use", len(ids)-left, count(len(ids), "worker"), run)
		})
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
