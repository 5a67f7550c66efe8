package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/internal/outboxschema"
)

func (a *app) queueOutboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "outbox", Short: "Enqueue in transactions of PostgreSQL: the tables for that",
		Long: `A Go program can enqueue in a transaction of PostgreSQL: the jobs are kept in tables
of its database, and relayed to the queue when it commits. See docs/queue/outbox.md.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "schema", Short: "Print the SQL that makes the tables", Args: exactly(),
		Long: `Print the SQL that makes the tables and functions of an outbox, or finds that they are
there. Nothing is connected to.`,
		Example: `  signalbox queue outbox schema | psql "$DATABASE_URL" --set ON_ERROR_STOP=1`,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.stdout, outboxschema.Text)
			return err
		},
	})
	return cmd
}
