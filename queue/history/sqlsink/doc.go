// Package sqlsink keeps a queue's history in tables of PostgreSQL or SQLite, by database/sql and whatever driver the program has.
//
//	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
//	sink, err := sqlsink.Open(ctx, db, sqlsink.PostgreSQL, "app")
//	err = sink.Append(ctx, "app", entries)
//
// The tables are made by Schema. They keep the histories of any number of queues, and a Sink is of one. Entries and the position
// change in one transaction, which begins with an update that only works if the position is where the writer believes it to
// be: of two writers one wins, and the other one looks again. Entries have numbers without holes, so that one that was deleted is
// missed when the history is read.
//
// Inside: dialect.go is what differs between the databases, write.go, read.go and prune.go are the statements.
// docs/queue/history-sinks.md says what is promised.
package sqlsink
