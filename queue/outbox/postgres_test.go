package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/signalbox-io/signalbox/internal/postgrestest"
)

// patience only passes in full when something hangs.
const patience = time.Minute

// connect returns connections to a database.
func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), url)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// outboxIn returns connections to a new database with an outbox.
func outboxIn(t testing.TB, p *postgrestest.Server, settings ...string) *pgxpool.Pool {
	t.Helper()
	pool := connect(t, p.Database(t, settings...))
	exec1(t, pool, Schema())
	return pool
}

func exec1(t testing.TB, pool *pgxpool.Pool, sql string, arguments ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, arguments...)
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
