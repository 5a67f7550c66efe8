// Package outbox enqueues jobs in a transaction of PostgreSQL: they are enqueued if it commits, once, and not at all if it does
// not.
//
//	tx, err := pool.Begin(ctx)
//	_, err = tx.Exec(ctx, "insert into orders …")
//	id, err := outbox.Enqueue(ctx, tx, SendMail, Mail{To: "x@y"}, queue.Key("tenant:42"))
//	err = tx.Commit(ctx)
//
// A transaction of database/sql takes part by SQL(tx). Any number of processes relay what was committed; an Election has one
// of them do it at a time:
//
//	relay, err := outbox.NewRelay(pool, q, box.Election("outbox"))
//	err = relay.Run(ctx)
//
// The tables are made by Schema, which `signalbox queue outbox schema` prints. What is promised is in docs/queue/outbox.md.
//
// Inside: enqueue.go is the producer's side. A relay that leads (relay.go, leader.go) takes the rows in batches, each of which
// is a numbered call of the queue (queue.EnqueueNumbered), whose number and rows are in the database before it is made: so it
// counts once, whoever makes it again. When there are no rows it sleeps (sleep.go) until PostgreSQL tells it that there are.
// database.go is the statements; the functions they call are in internal/outboxschema.
package outbox

import "github.com/signalbox-io/signalbox/internal/outboxschema"

// Schema is the SQL that makes the outbox's tables and functions. It may be run again.
func Schema() string { return outboxschema.Text }
