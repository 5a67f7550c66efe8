package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox/queue"
)

const queueHelp = `Push jobs, work them, and see what becomes of them.

A job has a kind and arguments, which are JSON. It waits until a worker that has
registered its kind has room for it, oldest first. A worker that dies is replaced
when its lease is over: then its jobs run again. So a job runs at least once, and
once as long as its worker lives.

Without --url the queue is in the private local engine, in memory; see signalbox help.`

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "queue COMMAND", Short: "Push jobs, work them, and see what becomes of them", Long: queueHelp,
		Example: `  signalbox queue push crawl '"https://example.org"' --key example.org
  signalbox queue limit 2 --each-key
  signalbox queue work crawl --slots 4 -- ./crawl.sh
  signalbox queue ls`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q; see signalbox queue --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := nothingEmpty(cmd); err != nil {
			return err
		}
		return cmd.Root().PersistentPreRunE(cmd, args)
	}
	cmd.PersistentFlags().StringVar(&a.queue, "queue", "default", "name of the queue")
	cmd.AddCommand(a.queuePushCommand(), a.queueWorkCommand(), a.queueListCommand(), a.queueShowCommand(), a.queueWhyCommand(),
		a.queueChangeCommand("retry"), a.queueChangeCommand("cancel"), a.queueChangeCommand("delete"), a.queuePauseCommand(true),
		a.queuePauseCommand(false), a.queueLimitCommand(), a.queueRateCommand(), a.queueStatsCommand(), a.queueWorkersCommand(),
		a.queueDrainCommand(), a.queueSchedulesCommand(), a.queueOutboxCommand(), a.queueHistoryCommand(), a.queueRebuildCommand())
	return cmd
}

// nothingEmpty refuses flags that are given and empty. They are mostly variables of a script that are not set: --key "$TENANT"
// would mean the whole queue.
func nothingEmpty(cmd *cobra.Command) (err error) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = usage("--%s is empty; give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// withQueue opens the queue, calls do, and closes it.
func (a *app) withQueue(ctx context.Context, do func(q *queue.Queue) error, settings ...queue.Setting) error {
	q, err := connect(ctx, a, true, func(url string) (*queue.Queue, error) { return queue.Open(ctx, url, a.queue, settings...) })
	if err != nil {
		return err
	}
	return errors.Join(do(q), q.Close())
}

// lookQueue is withQueue for what only looks: a private engine that does not run has no jobs, and is not started. Then do
// gets nil.
func (a *app) lookQueue(ctx context.Context, do func(q *queue.Queue) error) error {
	q, err := connect(ctx, a, false, func(url string) (*queue.Queue, error) { return queue.Open(ctx, url, a.queue) })
	if errors.Is(err, errNotRunning) {
		return do(nil)
	}
	if err != nil {
		return err
	}
	return errors.Join(do(q), q.Close())
}

// seeJob is lookQueue for a job, which a private engine that does not run has not.
func (a *app) seeJob(ctx context.Context, id string, do func(q *queue.Queue) error) error {
	return a.lookQueue(ctx, func(q *queue.Queue) error {
		if q == nil {
			return fmt.Errorf("job %s of queue %s: %w: the private local engine does not run", printable(id), printable(a.queue), queue.ErrUnknownJob)
		}
		return do(q)
	})
}

// jobFlags are those of commands that mean jobs by a filter.
type jobFlags struct {
	state, kind, key, tag, failure string
	newer, older                   time.Duration
}

func (f *jobFlags) define(flags *pflag.FlagSet) {
	flags.StringVar(&f.state, "state", "", "only those that are waiting, delayed, held, offered, running, done, dead or canceled")
	flags.StringVar(&f.kind, "kind", "", "only those of a kind")
	flags.StringVar(&f.key, "key", "", "only those with a key")
	flags.StringVar(&f.tag, "tag", "", "only those whose worker has to have a tag")
	flags.StringVar(&f.failure, "error", "", "only those with this in their error")
	flags.DurationVar(&f.newer, "newer-than", 0, "only those that were pushed in the last …")
	flags.DurationVar(&f.older, "older-than", 0, "only those that were pushed longer ago than …")
}

func (f *jobFlags) filter() queue.Filter {
	filter := queue.Filter{State: queue.State(f.state), Kind: f.kind, Key: f.key, Tag: f.tag, Error: f.failure}
	if f.newer > 0 {
		filter.Since = time.Now().Add(-f.newer)
	}
	if f.older > 0 {
		filter.Until = time.Now().Add(-f.older)
	}
	return filter
}

// scopeFlags say what a pause, a limit or a rate is about.
type scopeFlags struct {
	kind, key string
	each      bool
}

func (f *scopeFlags) define(flags *pflag.FlagSet, each bool) {
	flags.StringVar(&f.kind, "kind", "", "of a kind, instead of the queue")
	flags.StringVar(&f.key, "key", "", "of a key, instead of the queue")
	if each {
		flags.BoolVar(&f.each, "each-key", false, "of each key that has none of its own, instead of the queue")
	}
}

func (f *scopeFlags) scope() (queue.Scope, error) {
	given, scope := 0, queue.WholeQueue
	if f.kind != "" {
		given, scope = given+1, queue.OfKind(f.kind)
	}
	if f.key != "" {
		given, scope = given+1, queue.OfKey(f.key)
	}
	if f.each {
		given, scope = given+1, queue.EachKey
	}
	if given > 1 {
		return scope, usage("one of --kind, --key and --each-key, not %d", given)
	}
	return scope, nil
}

// about is "queue default" or "kind mail.send of queue default".
func (a *app) about(scope queue.Scope) string {
	name := "queue " + printable(a.queue)
	if scope != queue.WholeQueue {
		name = printable(scope.String()) + " of " + name
	}
	return name
}

// capacities reads call=1,chat=3.
func capacities(texts map[string]int) string {
	var parts []string
	for _, name := range sortedKeys(texts) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, texts[name]))
	}
	return strings.Join(parts, ",")
}
