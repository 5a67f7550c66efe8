package main

import (
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

// A history is for years, or for as long as somebody wants: its tables, its bases, and how its beginning is removed.

// prunedJSON is the output of `queue history prune --json`.
type prunedJSON struct {
	Entries int    `json:"entries"` // that were removed
	Upto    string `json:"upto"`    // ID of the last of them
}

func (a *app) historySchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the SQL that makes the tables of histories in PostgreSQL", Args: exactly(),
		Long: `Print the SQL that makes the tables in which PostgreSQL keeps the histories of queues, or
finds that they are there. Nothing is connected to.`,
		Example: `  signalbox queue history schema | psql "$DATABASE_URL" --set ON_ERROR_STOP=1`,
		RunE: func(*cobra.Command, []string) error {
			schema, err := sqlsink.Schema(sqlsink.PostgreSQL)
			if err == nil {
				_, err = fmt.Fprint(a.stdout, schema)
			}
			return err
		},
	}
}

func (a *app) historyBaseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "base", Short: "Have the history say all that the queue has, so that what is before can be pruned", Args: exactly(),
		Long: `Have the history of a queue say all that the queue has, while it goes on: an entry for some
fifty jobs. A queue can be made from what follows alone, so what is before is pruned in
the end: see signalbox queue history prune. Call it once a week, say, while record runs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			return a.withQueue(ctx, func(q *queue.Queue) error {
				if err := q.HistoryBase(ctx); err != nil {
					return err
				}
				return a.printDone("the history of queue %s says again all that the queue has", printable(a.queue))
			})
		},
	}
}

func (a *app) historyPruneCommand() *cobra.Command {
	older := time.Duration(0)
	cmd := &cobra.Command{
		Use: "prune PLACE --older-than TIME", Short: "Remove the beginning of a history", Args: exactly("a place"),
		Long: `Remove the beginning of a history, for good: what is not needed to make the queue as it
was at any time of the last --older-than. These are the entries before the newest base
that is at least that old; signalbox queue history base adds one. Without such a base
nothing is removed. The history may be recorded meanwhile. It is read as a whole, no
server is needed.

` + placesHelp + `

Files go when all of their entries do. Copies of a folder need its file pruned, too.

JSON: {entries, upto}: how many were removed, and the ID of the last.`,
		Example: `  signalbox queue history base                                                  # once a week
  signalbox queue history prune /var/lib/app/history --older-than 720h          # once a day`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("older-than") || older < 0 {
				return usage("--older-than says how far back the queue can be made again, such as --older-than 720h")
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), terminationSignals...)
			defer cancel()
			return a.readHistory(ctx, args[0], func(kept *keptHistory) error {
				var out prunedJSON
				var err error
				out.Upto, out.Entries, err = queue.Prunable(ctx, kept, time.Now().Add(-older))
				if err == nil && out.Upto != "" {
					err = kept.prune(ctx, out.Upto)
				}
				if err != nil {
					return err
				}
				return a.printPruned(kept, &out, older)
			})
		},
	}
	cmd.Flags().DurationVar(&older, "older-than", 0, "how far back the queue can be made again, such as 720h")
	return cmd
}

func (a *app) printPruned(kept *keptHistory, out *prunedJSON, older time.Duration) error {
	if a.json {
		return a.printJSON(out)
	}
	if out.Entries == 0 {
		_, err := fmt.Fprintf(a.stdout, "Nothing was removed from %s: it has no base older than %v but its beginning (signalbox queue history base adds one)\n",
			kept.place, older)
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s removed from %s, up to %s\n", entriesText(out.Entries), kept.place, out.Upto)
	return err
}
