package sqlsink_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

func BenchmarkPostgreSQL(b *testing.B) {
	server, err := postgrestest.Start("fsync=on")
	must(b, err)
	b.Cleanup(server.Close)
	benchmark(b, connect(b, "pgx", server.Database(b)), sqlsink.PostgreSQL)
}

func BenchmarkSQLite(b *testing.B) { benchmark(b, connect(b, "sqlite", sqlite(b)), sqlsink.SQLite) }

// Entries of 300 bytes.
func benchmark(b *testing.B, db *sql.DB, dialect sqlsink.Dialect) {
	withSchema(b, db, dialect)
	sink := open(b, db, dialect)
	data, kept := make([]byte, 300), 0
	entries := func(n int) []history.Entry {
		entries := make([]history.Entry, n)
		for i := range entries {
			entries[i] = history.Entry{ID: fmt.Sprintf("%d-0", kept+i+1), Data: data}
		}
		kept += n
		return entries
	}
	for _, batch := range []int{100, 1000} {
		b.Run(fmt.Sprint("append in batches of ", batch), func(b *testing.B) {
			for range b.N {
				must(b, sink.Append(b.Context(), historytest.Queue, entries(batch)))
			}
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "entries/s")
		})
	}
	for range max(0, 100-kept/1000) {
		must(b, sink.Append(b.Context(), historytest.Queue, entries(1000)))
	}
	b.Run("read", func(b *testing.B) {
		read := 0
		for range b.N {
			for _, err := range sink.Read(b.Context(), "") {
				must(b, err)
				read++
			}
		}
		b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "entries/s")
	})
}
