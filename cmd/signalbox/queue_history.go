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
	"github.com/signalbox-io/signalbox/queue/history/files"
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
	cmd.AddCommand(a.historyRecordCommand(), a.historyShowCommand(), a.historyForgetCommand(), a.historyEndCommand())
	return cmd
}

func (a *app) printHistory(info *queue.HistoryInfo) error {
	if a.json {
		return a.printJSON(info)
	}
	if !info.On {
		_, err := fmt.Fprintf(a.stdout, "Queue %s has no history. To have one: signalbox queue history record FOLDER\n", printable(a.queue))
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
		Use: "record FOLDER", Short: "Copy the history to files, until it is ended", Args: exactly("a folder"),
		Long: `Copy the history of a queue to files in a folder, until it is ended. It may be ended and
begun again at any time, and killed: each entry is kept once. Each step is on the disk
before the server forgets it. The first record of a queue has the queue begin to keep a
history, and begins with what the queue has then.

It waits while the server is out of reach. It ends with status 1 when the server has lost
what the files end with: then see signalbox queue rebuild.

JSON: {entries, last}, at the end.`,
		Example: `  signalbox queue history record /var/lib/app/history
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
	cmd.Flags().StringVar(&name, "sink", name, "name of these files, if there are other sinks of the queue")
	cmd.Flags().IntVar(&keep, "keep", keep, "how many entries the server keeps at most, for a sink that stands still")
	cmd.Flags().BoolVar(&once, "once", false, "end when all is copied that there is")
	return cmd
}

func (a *app) recordHistory(ctx context.Context, q *queue.Queue, folder string, options []queue.RecordOption) error {
	sink, err := files.Open(folder)
	if err != nil {
		return err
	}
	if torn := sink.Repaired(); torn != nil {
		fmt.Fprintln(a.stderr, "signalbox:", torn)
	}
	var out historyJSON
	shown := a.newProgress()
	defer shown.clear()
	err = q.Record(ctx, sink, append(options, queue.OnRecorded(func(id string, entries int) {
		out.Entries, out.Last = out.Entries+entries, id
		shown.say(func() string { return entriesText(out.Entries) + " copied" })
	}))...)
	shown.clear()
	if err = errors.Join(err, sink.Close()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	_, err = fmt.Fprintf(a.stdout, "%s of queue %s copied to %s\n", entriesText(out.Entries), printable(a.queue), printable(folder))
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
		Use: "rebuild FOLDER", Short: "Make a queue again from its history", Args: exactly("a folder"),
		Long: `Make a queue from its history on a server that has none of its jobs, after the old one has
lost its data: every job in the state that it was in, those that ran waiting again;
settings, schedules, results. What the queue did after the last entry that the files have is lost.

Stop what pushes jobs; workers may stay, and go on when it is done. Then record again,
into the same folder. A rebuild that was stopped on its way leaves a queue that answers
nobody: call it again.

With --until the queue is made as it was at a time: 2006-01-02T15:04:05Z07:00, or in local
time 2006-01-02 15:04:05. With --copy it keeps no history, and the files stay those of
the queue that is alive on another server: it is to look at.

JSON: {entries, events, last, jobs, again}: entries that were read, what was written in
them, when the last was; jobs on the server, and how many of those ran.`,
		Example: `  signalbox queue rebuild /var/lib/app/history
  signalbox queue rebuild history --url redis://spare:6379 --copy --until '2026-03-01 09:30:00'`,
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
			return a.withQueue(ctx, func(q *queue.Queue) error { return a.rebuild(ctx, q, args[0], options) })
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

func (a *app) rebuild(ctx context.Context, q *queue.Queue, folder string, options []queue.RebuildOption) error {
	const instead = "the folder into which signalbox queue history record copies"
	sink, err := files.Open(folder, files.ReadOnly())
	if err != nil {
		return absent(err, folder, instead)
	}
	shown := a.newProgress()
	defer shown.clear()
	made, err := q.Rebuild(ctx, sink, append(options, queue.OnRebuilding(func(r queue.Rebuilt) {
		shown.say(func() string { return fmt.Sprintf("%s read, %s made", entriesText(r.Entries), count(r.Jobs, "job")) })
	}))...)
	shown.clear()
	if errors.Is(err, queue.ErrInvalid) {
		err = fmt.Errorf("%s: %w; give %s", printable(folder), err, instead)
	}
	if err = errors.Join(err, sink.Close()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(made)
	}
	_, err = fmt.Fprintf(a.stdout, "queue %s is as it was at %s: %s, of which %d ran and wait again\n", printable(a.queue),
		made.Last.Local().Format("2006-01-02 15:04:05.000"), count(made.Jobs, "job"), made.Again)
	return err
}
