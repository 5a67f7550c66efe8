package outbox_test

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/outbox"
)

type Mail struct{ To, Text string }

var SendMail = queue.Define[Mail, queue.None]("mail.send")

func ExampleEnqueue() {
	order := func(ctx context.Context, pool *pgxpool.Pool, customer, address string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "insert into orders (customer) values ($1)", customer); err != nil {
				return err
			}
			// The mail is sent if the order is committed. Last, because of one customer only one transaction goes on from here.
			_, err := outbox.Enqueue(ctx, tx, SendMail, Mail{address, "Thank you."}, queue.Key(customer))
			return err
		})
	}
	_ = order
}

func ExampleSQL() {
	order := func(ctx context.Context, db *sql.DB, customer, address string) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // it is committed then, or the error is told already
		if _, err := tx.ExecContext(ctx, "insert into orders (customer) values ($1)", customer); err != nil {
			return err
		}
		if _, err := outbox.Enqueue(ctx, outbox.SQL(tx), SendMail, Mail{address, "Thank you."}); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = order
}

func ExampleRelay() {
	// Each process may run one. They relay in turns, as one stops or dies.
	run := func(ctx context.Context, pool *pgxpool.Pool) error {
		box, err := signalbox.Open(ctx, "redis://localhost:6379")
		if err != nil {
			return err
		}
		defer box.Close()
		q, err := queue.Open(ctx, "redis://localhost:6379", "app")
		if err != nil {
			return err
		}
		defer q.Close()
		relay, err := outbox.NewRelay(pool, q, box.Election("outbox of app"))
		if err != nil {
			return err
		}
		return relay.Run(ctx)
	}
	_ = run
}
