package sqlsink_test

import (
	"context"
	"testing"

	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/internal/queue/historydrill"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

func TestTheServerIsKilledAndTheQueueIsMadeAgain(t *testing.T) {
	t.Parallel()
	db := connect(t, "pgx", postgrestest.Shared(t).Database(t))
	withSchema(t, db, sqlsink.PostgreSQL)
	historydrill.Run(t, func() (history.Sink, error) {
		return sqlsink.Open(t.Context(), db, sqlsink.PostgreSQL, historydrill.Queue)
	})
}

func TestAPrunedHistoryMakesTheSameQueue(t *testing.T) {
	t.Parallel()
	db := connect(t, "pgx", postgrestest.Shared(t).Database(t))
	withSchema(t, db, sqlsink.PostgreSQL)
	sink, err := sqlsink.Open(t.Context(), db, sqlsink.PostgreSQL, historydrill.Queue)
	must(t, err)
	historydrill.Prune(t, sink, func(upto string) error { return sink.Prune(context.Background(), upto) })
}

// The database is gone for a while: the follower waits, and goes on where it was.
func TestADatabaseThatIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	server, err := postgrestest.Start()
	must(t, err)
	t.Cleanup(server.Close)
	db := connect(t, "pgx", server.Database(t))
	withSchema(t, db, sqlsink.PostgreSQL)
	sink, err := sqlsink.Open(t.Context(), db, sqlsink.PostgreSQL, historydrill.Queue)
	must(t, err)
	historydrill.Gone(t, sink, server.Kill, server.Restart)
}
