package sqlsink_test

import (
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
