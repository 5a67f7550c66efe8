package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
)

// historyJSON is the output of `queue history record --json`.
type historyJSON struct {
	Entries int    `json:"entries"` // that were copied
	Last    string `json:"last"`    // ID of the last one
}

func (a *app) queueHistoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history", Short: "Keep what happens to a queue, to make it again from that", Args: exactly(),
		Long: `Show what the server has of a queue's history: the entries that are not copied yet,
and how far each sink is. A queue has a history from when somebody records it:
see signalbox queue history record. signalbox queue rebuild makes a queue from it.

JSON: {on, entries, keep, sinks}; sinks has by name the ID of the last entry of each.`,
		Example: `  signalbox queue history record /var/lib/app/history
  signalbox queue history record postgres://db/app
  signalbox queue history`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.lookQueue(cmd.Context(), func(q *queue.Queue) error {
				info := &queue.HistoryInfo{Sinks: map[string]string{}}
				if q != nil {
					var err error
					if info, err = q.History(cmd.Context()); err != nil {
						return err
					}
				}
				return a.printHistory(info)
			})
		},
	}
	cmd.AddCommand(a.historyRecordCommand(), a.historyShowCommand(), a.historyForgetCommand(), a.historyEndCommand(),
		a.historySchemaCommand(), a.historyBaseCommand(), a.historyPruneCommand())
	return cmd
}

func (a *app) printHistory(info *queue.HistoryInfo) error {
	if a.json {
		return a.printJSON(info)
	}
	if !info.On {
		_, err := fmt.Fprintf(a.stdout, "Queue %s has no history. To have one: signalbox queue history record PLACE\n", printable(a.queue))
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "%s on the server, which keeps at most %d\n", entriesText(info.Entries), info.Keep); err != nil {
		return err
	}
	t := newTable("SINK", "HAS IT UP TO", ">AGO")
	for _, name := range sortedKeys(info.Sinks) {
		var ms int64
		if _, err := fmt.Sscanf(info.Sinks[name], "%d-", &ms); err != nil {
			return fmt.Errorf("an ID that no server gives: %q", info.Sinks[name])
		}
		t.add(printable(name), info.Sinks[name], span(max(time.Since(time.UnixMilli(ms)), 0)))
	}
	return t.print(a.stdout)
}

func entriesText(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func (a *app) historyRecordCommand() *cobra.Command {
	name, keep, once := "sink", queue.DefaultHistoryKeep, false
	cmd := &cobra.Command{
		Use: "record PLACE", Short: "Copy the history to files or to PostgreSQL, until it is ended", Args: exactly("a place"),
		Long: `Copy the history of a queue to another place, until it is ended. It may be ended and
begun again at any time, and killed: each entry is kept once. Each step is on the disk
there before the server forgets it. The first record of a queue has the queue begin to
keep a history, and begins with what the queue has then.

` + placesHelp + `

It waits while the server or the database is out of reach, and says so. It ends with
status 1 when the server has lost what the place ends with: then see signalbox queue
rebuild. What it has copied grows: see signalbox queue history prune.

JSON: {entries, last}, at the end.`,
		Example: `  signalbox queue history record /var/lib/app/history
  signalbox queue history record postgres://db/app
  signalbox queue history record backup --once`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options := []queue.RecordOption{queue.SinkName(name), queue.HistoryKeep(keep)}
			if once {
				options = append(options, queue.UntilCaughtUp())
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			return a.withQueue(ctx, func(q *queue.Queue) error { return a.recordHistory(ctx, q, args[0], options) })
		},
	}
	cmd.Flags().StringVar(&name, "sink", name, "name of this place, if there are other sinks of the queue")
	cmd.Flags().IntVar(&keep, "keep", keep, "how many entries the server keeps at most, for a sink that stands still")
	cmd.Flags().BoolVar(&once, "once", false, "end when all is copied that there is")
	return cmd
}

func (a *app) recordHistory(ctx context.Context, q *queue.Queue, text string, options []queue.RecordOption) error {
	kept, err := a.openHistory(ctx, text)
	if err != nil {
		return err
	}
	var out historyJSON
	shown := a.newProgress()
	defer shown.clear()
	waits := false
	err = q.Record(ctx, kept, append(options, queue.OnRecorded(func(id string, entries int) {
		waits, out.Entries, out.Last = false, out.Entries+entries, id
		shown.say(func() string { return entriesText(out.Entries) + " copied" })
	}), queue.OnRecordTrouble(func(err error) {
		if !waits {
			shown.clear()
			fmt.Fprintf(a.stderr, "signalbox: it goes on when this is over: %v\n", err)
		}
		waits = true
	}))...)
	shown.clear()
	if err = errors.Join(err, kept.Close()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	_, err = fmt.Fprintf(a.stdout, "%s of queue %s copied to %s\n", entriesText(out.Entries), printable(a.queue), kept.place)
	return err
}

func (a *app) historyForgetCommand() *cobra.Command {
	return &cobra.Command{
		Use: "forget SINK", Short: "Keep nothing any more for a sink that is given up", Args: exactly("a sink"),
		Long: `Have the server keep nothing any more for a sink that is given up. The server keeps each
entry until all sinks have it. What a sink has stays.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withQueue(cmd.Context(), func(q *queue.Queue) error {
				if err := q.ForgetSink(cmd.Context(), args[0]); err != nil {
					return err
				}
				return a.printDone("nothing is kept for sink %s any more", printable(args[0]))
			})
		},
	}
}

func (a *app) historyEndCommand() *cobra.Command {
	return &cobra.Command{
		Use: "end", Short: "Keep no history any more", Args: exactly(),
		Long: `Have a queue keep no history any more. What sinks have stays, and nothing can be added to
it: whoever records again begins a new folder.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withQueue(cmd.Context(), func(q *queue.Queue) error {
				if err := q.EndHistory(cmd.Context()); err != nil {
					return err
				}
				return a.printDone("queue %s keeps no history", printable(a.queue))
			})
		},
	}
}

// printDone says what was done, unless the output is JSON.
func (a *app) printDone(format string, args ...any) error {
	if a.json {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, format+"\n", args...)
	return err
}

func (a *app) queueRebuildCommand() *cobra.Command {
	until, asCopy := "", false
	cmd := &cobra.Command{
		Use: "rebuild PLACE", Short: "Make a queue again from its history", Args: exactly("a place"),
		Long: `Make a queue from its history on a server that has none of its jobs, after the old one has
lost its data: every job in the state that it was in, those that ran waiting again;
settings, schedules, results. What the queue did after the last entry of its history is
lost.

` + placesHelp + `

Nobody should push jobs meanwhile, or wait for some: let the new server be reached by
this command alone, as by --url unix:///run/new.sock. Workers may stay, and go on when
it is done; a record that runs does, too, behind what was there. A rebuild that was
stopped on its way leaves a queue that answers nobody: call it again.

With --until the queue is made as it was at a time: 2006-01-02T15:04:05Z07:00, or in local
time 2006-01-02 15:04:05. With --copy it keeps no history, and what is kept stays that
of the queue that is alive on another server: it is to look at.

JSON: {entries, events, last, jobs, again}: entries that were read, what was written in
them, when the last was; jobs on the server, and how many of those ran.`,
		Example: `  signalbox queue rebuild /var/lib/app/history
  signalbox queue rebuild postgres://db/app --url redis://spare:6379 --copy --until '2026-03-01 09:30:00'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var options []queue.RebuildOption
			if until != "" {
				at, err := timeOf(until)
				if err != nil {
					return err
				}
				options = append(options, queue.Until(at))
			}
			if asCopy {
				options = append(options, queue.AsCopy())
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			return a.readHistory(ctx, args[0], func(kept *keptHistory) error {
				return a.withQueue(ctx, func(q *queue.Queue) error { return a.rebuild(ctx, q, kept, options) })
			})
		},
	}
	cmd.Flags().StringVar(&until, "until", "", "make it as it was at this time")
	cmd.Flags().BoolVar(&asCopy, "copy", false, "make a copy to look at")
	return cmd
}

// timeOf reads a time.
func timeOf(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.ParseInLocation(time.DateTime, strings.TrimSpace(text), time.Local)
	}
	if err != nil {
		return at, usage("%q is no time such as 2006-01-02T15:04:05Z or '2006-01-02 15:04:05'", text)
	}
	return at, nil
}

func (a *app) rebuild(ctx context.Context, q *queue.Queue, kept *keptHistory, options []queue.RebuildOption) error {
	shown := a.newProgress()
	defer shown.clear()
	made, err := q.Rebuild(ctx, kept, append(options, queue.OnRebuilding(func(r queue.Rebuilt) {
		shown.say(func() string { return fmt.Sprintf("%s read, %s made", entriesText(r.Entries), count(r.Jobs, "job")) })
	}))...)
	shown.clear()
	if err != nil {
		return fmt.Errorf("%s: %w", kept.place, err)
	}
	if a.json {
		return a.printJSON(made)
	}
	_, err = fmt.Fprintf(a.stdout, "queue %s is as it was at %s: %s, of which %d ran and wait again\n", printable(a.queue),
		made.Last.Local().Format("2006-01-02 15:04:05.000"), count(made.Jobs, "job"), made.Again)
	return err
}
