package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

// changes is what the commands say that change jobs.
var changes = map[string]struct{ short, long, done string }{
	"retry": {
		"Run jobs again", `Run jobs again that are dead or canceled, as new ones, and at once those that are
delayed or held by others. Those that are done and kept only with --state done.`, "will run again",
	},
	"cancel": {
		"Cancel jobs", `Cancel jobs. One that runs is told to end: a command gets SIGTERM, and SIGKILL if
it does not heed it. The others end at once.`, "canceled, or told to end",
	},
	"delete": {
		"Delete jobs", `Delete jobs that do not run, and what is kept of those that have ended.`, "deleted",
	},
}

type changeFlags struct {
	jobs             jobFlags
	all, dryRun, yes bool
	cause            string
}

func (a *app) queueChangeCommand(verb string) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: verb + " ID... | " + verb + " FLAGS", Short: changes[verb].short,
		Long: changes[verb].long + `

Which jobs is said by their ids, or by the flags: those for which all of them hold.
--dry-run only counts them.

JSON: {verb, jobs, dry_run}; jobs is how many.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter := f.jobs.filter()
			switch given := filter != (queue.Filter{}); {
			case len(args) > 0 && (given || f.all):
				return usage("which jobs: by ids or by flags, not both")
			case len(args) == 0 && !given && !f.all:
				return usage("which jobs? %s ID..., or flags, or --all; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			case len(args) > 0 && f.dryRun:
				return usage("--dry-run counts the jobs that flags mean, and ids are given")
			}
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error { return a.changeJobs(cmd.Context(), q, verb, &f, filter, args) })
		},
	}
	f.jobs.define(cmd.Flags())
	cmd.Flags().BoolVar(&f.all, "all", false, "all jobs that it can be done to")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say how many jobs the flags mean, and do nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	if verb == "cancel" {
		cmd.Flags().StringVar(&f.cause, "cause", "canceled by hand", "why, for those who look at it")
	}
	return cmd
}

func (a *app) changeJobs(ctx context.Context, q *queue.Queue, verb string, f *changeFlags, filter queue.Filter, ids []string) error {
	if q == nil {
		if len(ids) > 0 {
			return fmt.Errorf("job %s of queue %s: %w: the private local engine does not run", printable(ids[0]), printable(a.queue), queue.ErrUnknownJob)
		}
		return a.printChanged(verb, 0, f.dryRun)
	}
	if len(ids) > 0 {
		err := map[string]func() error{
			"retry":  func() error { return q.Retry(ctx, ids...) },
			"cancel": func() error { return q.Cancel(ctx, f.cause, ids...) },
			"delete": func() error { return q.Delete(ctx, ids...) },
		}[verb]()
		if err != nil {
			return err
		}
		return a.printChanged(verb, len(ids), false)
	}
	expected := 0 // so many, if it is known
	if f.dryRun || !f.yes {
		n, err := a.countJobs(ctx, q, verb, filter)
		if err != nil {
			return err
		}
		if f.dryRun {
			return a.printChanged(verb, n, true)
		}
		if expected = n; n > 0 {
			if err := a.consent("queue "+printable(a.queue), fmt.Sprintf("%s %s?", verb, count(n, "job")), ""); err != nil {
				return err
			}
		}
	}
	shown := a.newProgress()
	defer shown.clear()
	tell := func(n int) { shown.say(func() string { return share(verb+":", n, expected) }) }
	n, err := map[string]func() (int, error){
		"retry":  func() (int, error) { return q.RetryAll(ctx, filter, tell) },
		"cancel": func() (int, error) { return q.CancelAll(ctx, f.cause, filter, tell) },
		"delete": func() (int, error) { return q.DeleteAll(ctx, filter, tell) },
	}[verb]()
	shown.clear()
	if err != nil {
		return err
	}
	return a.printChanged(verb, n, false)
}

// countJobs counts the jobs that would be changed: without a state those in the states that the verb is for.
func (a *app) countJobs(ctx context.Context, q *queue.Queue, verb string, filter queue.Filter) (int, error) {
	states := map[string][]queue.State{
		"retry":  {queue.Dead, queue.Canceled, queue.Delayed, queue.Held},
		"cancel": {queue.Pending, queue.Delayed, queue.Held, queue.Running},
		"delete": {queue.Pending, queue.Delayed, queue.Held, queue.Done, queue.Dead, queue.Canceled},
	}[verb]
	if filter.State != "" {
		return q.Count(ctx, filter)
	}
	sum := 0
	for _, state := range states {
		filter.State = state
		n, err := q.Count(ctx, filter)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// share tells how far something is: "delete: 1200 of 5000 jobs, 24 %"; without a whole, how much.
func share(what string, n, whole int) string {
	if whole < n || whole == 0 {
		return what + " " + count(n, "job")
	}
	return fmt.Sprintf("%s %d of %s, %d %%", what, n, count(whole, "job"), 100*n/whole)
}

func (a *app) printChanged(verb string, n int, dry bool) error {
	if a.json {
		return a.printJSON(map[string]any{"verb": verb, "jobs": n, "dry_run": dry})
	}
	text := fmt.Sprintf("%s %s", count(n, "job"), changes[verb].done)
	if dry {
		text = fmt.Sprintf("%s would be %s", count(n, "job"), map[string]string{"retry": "run again", "cancel": "canceled", "delete": "deleted"}[verb])
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}
