package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/signalbox-io/signalbox/queue"
)

// pushFlags are the terms of jobs.
type pushFlags struct {
	key, id, worker     string
	tags, after         []string
	cost                map[string]int
	priority, attempts  int
	count               int
	in, timeout, retain time.Duration
	reserved            time.Duration
}

const pushMost = 500 // in one call

func (a *app) queuePushCommand() *cobra.Command {
	var f pushFlags
	cmd := &cobra.Command{
		Use: "push KIND [ARGUMENTS | -]", Short: "Add jobs",
		Long: `Add a job of a kind, with arguments, which are one JSON value; with none they are
null. With - the arguments are read from standard input: one job for each JSON
value there, such as one a line. The ids of the jobs are printed, one a line.

When it ends with status 0, all of the jobs are on the server. While the server is out
of reach, full or read-only, it says so and tries again, without pushing twice.

JSON: {queue, ids, known}; known are those that were there already (--id).`,
		Example: `  signalbox queue push mail.send '{"to": "x@example.org"}' --key tenant:42 --priority 3
  jq -c '.[]' pages.json | signalbox queue push crawl -
  signalbox queue push report --in 10m --count 3
  signalbox queue push call '"+44 …"' --for anna --for-until 5m`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usage("%s takes KIND and perhaps ARGUMENTS, got %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.count < 1 {
				return usage("--count must be at least 1, not %d", f.count)
			}
			if f.id != "" && f.count > 1 {
				return usage("--id and --count exclude each other: an id is that of one job")
			}
			if (f.worker == "") != (f.reserved == 0) || f.reserved < 0 {
				return usage("--for NAME and --for-until D go together: a job is reserved for a worker, and for so long")
			}
			if len(args) == 1 {
				args = append(args, "null")
			}
			if args[1] != "-" && !json.Valid([]byte(args[1])) {
				return usage("the arguments must be JSON, not %s; a text stands in quotes: '\"text\"'", printable(args[1]))
			}
			push := func(q *queue.Queue) error { return a.push(cmd.Context(), q, &f, args[0], args[1]) }
			return a.withQueue(cmd.Context(), push, queue.Observer(a.tellFailing()))
		},
	}
	f.define(cmd.Flags())
	return cmd
}

// define defines all of them.
func (f *pushFlags) define(flags *pflag.FlagSet) {
	f.defineTerms(flags)
	flags.DurationVar(&f.in, "in", 0, "wait so long first")
	flags.StringVar(&f.worker, "for", "", "reserve it for the workers of a name, see --for-until")
	flags.DurationVar(&f.reserved, "for-until", 0, "for how long it is reserved; then anybody may have it")
	flags.StringVar(&f.id, "id", "", "id of its own: pushed again, nothing changes while the job is there")
	flags.StringArrayVar(&f.after, "after", nil, "id of a job that has to be done first; may be repeated")
	flags.IntVar(&f.count, "count", 1, "how many of them")
}

// defineTerms defines those that the jobs of a schedule have, too.
func (f *pushFlags) defineTerms(flags *pflag.FlagSet) {
	flags.StringVar(&f.key, "key", "", "whose job it is (tenant, host, account): see signalbox queue limit --each-key")
	flags.IntVar(&f.priority, "priority", 0, "go before others as if it had been pushed so many minutes earlier; negative: later")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag that the worker has to have; may be repeated")
	flags.StringToIntVar(&f.cost, "cost", nil, "what it takes of capacities while it runs, as call=1,chat=2 (default: one slot)")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long it may run (default: as long as it takes)")
	flags.IntVar(&f.attempts, "attempts", queue.DefaultAttempts, "how often it is tried")
	flags.DurationVar(&f.retain, "retain", queue.DefaultRetain, "for how long its result is kept")
}

func (f *pushFlags) options() []queue.Option {
	options := []queue.Option{
		queue.Priority(f.priority), queue.In(f.in), queue.Require(f.tags...), queue.Timeout(f.timeout), queue.MaxAttempts(f.attempts),
		queue.Retain(f.retain),
	}
	if f.key != "" {
		options = append(options, queue.Key(f.key))
	}
	if f.worker != "" {
		options = append(options, queue.ForWithin(f.worker, f.reserved))
	}
	for _, name := range sortedKeys(f.cost) {
		options = append(options, queue.Cost(name, f.cost[name]))
	}
	if f.id != "" {
		options = append(options, queue.ID(f.id))
	}
	if len(f.after) > 0 {
		options = append(options, queue.After(queue.CancelIt, f.after...))
	}
	return options
}

// pushed is what was pushed so far.
type pushed struct {
	Queue string   `json:"queue"`
	IDs   []string `json:"ids"`
	Known []string `json:"known"`
}

func (a *app) push(ctx context.Context, q *queue.Queue, f *pushFlags, kind, args string) error {
	k := queue.Define[json.RawMessage, json.RawMessage](kind, f.options()...)
	out := pushed{Queue: a.queue, IDs: []string{}, Known: []string{}}
	shown := a.newProgress()
	defer shown.clear()
	var batch []queue.Request
	flush := func() error {
		told, err := q.EnqueueMany(ctx, batch...)
		batch = batch[:0]
		for _, o := range told {
			if o.Err != nil {
				err = errors.Join(err, o.Err)
				continue
			}
			out.IDs = append(out.IDs, o.ID)
			if o.Duplicate {
				out.Known = append(out.Known, o.ID)
			}
		}
		shown.say(func() string {
			if args == "-" { // nobody knows how many come
				return "pushed " + count(len(out.IDs), "job")
			}
			return share("pushed", len(out.IDs), f.count)
		})
		return err
	}
	add := func(text json.RawMessage) (err error) {
		for range f.count {
			if batch = append(batch, k.With(text)); len(batch) == pushMost && err == nil {
				err = flush()
			}
		}
		return err
	}
	err := a.eachArguments(args, f, add)
	if len(batch) > 0 && !errors.Is(err, queue.ErrUnavailable) {
		err = errors.Join(err, flush())
	}
	shown.clear()
	return errors.Join(err, a.printPushed(&out))
}

// eachArguments calls add with the arguments of each job.
func (a *app) eachArguments(args string, f *pushFlags, add func(json.RawMessage) error) error {
	if args != "-" {
		return add(json.RawMessage(args))
	}
	values := json.NewDecoder(a.stdin)
	for n := 1; ; n++ {
		var value json.RawMessage
		err := values.Decode(&value)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &exitError{exitUsage, fmt.Errorf("the %s value on standard input is no JSON: %w; the %d before it were pushed", ordinal(n), err, n-1)}
		case f.id != "" && n > 1:
			return usage("--id is that of one job, and standard input has more")
		}
		if err := add(value); err != nil {
			return err
		}
	}
}

func (a *app) printPushed(out *pushed) error {
	if a.json {
		return a.printJSON(out)
	}
	for _, id := range out.IDs {
		if _, err := fmt.Fprintln(a.stdout, id); err != nil {
			return err
		}
	}
	if len(out.Known) > 0 {
		fmt.Fprintln(a.stderr, "signalbox: nothing was pushed: there is a job with the id", strconv.Quote(out.Known[0]))
	}
	return nil
}
