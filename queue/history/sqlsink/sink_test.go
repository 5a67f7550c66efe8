package sqlsink_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

// patience only passes in full when something hangs.
const patience = time.Minute

func TestMain(m *testing.M) {
	code := m.Run()
	postgrestest.CloseShared()
	os.Exit(code)
}

// onEach runs a test with an empty database of each kind. Of SQLite there are several connections, too.
func onEach(t *testing.T, test func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect)) {
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, connect(t, "pgx", postgrestest.Shared(t).Database(t)), sqlsink.PostgreSQL)
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, connect(t, "sqlite", sqlite(t)), sqlsink.SQLite)
	})
}

func sqlite(t testing.TB) string {
	return "file:" + filepath.Join(t.TempDir(), "history.db") + "?_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)"
}

func connect(t testing.TB, driver, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, address)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func withSchema(t testing.TB, db *sql.DB, dialect sqlsink.Dialect, options ...sqlsink.Option) {
	t.Helper()
	schema, err := sqlsink.Schema(dialect, options...)
	must(t, err)
	for range 2 { // which may be run again
		_, err = db.ExecContext(t.Context(), schema)
		must(t, err)
	}
}

func open(t testing.TB, db *sql.DB, dialect sqlsink.Dialect, options ...sqlsink.Option) *sqlsink.Sink {
	t.Helper()
	sink, err := sqlsink.Open(t.Context(), db, dialect, historytest.Queue, options...)
	must(t, err)
	return sink
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	must(t, err)
}

// count is how many entries are read, which have to be those from the first on.
func count(t *testing.T, sink history.Sink, want []history.Entry) {
	t.Helper()
	n := 0
	for got, err := range sink.Read(t.Context(), "") {
		must(t, err)
		if n == len(want) || got.ID != want[n].ID || string(got.Data) != string(want[n].Data) {
			t.Fatalf("entry %d is %s", n, got.ID)
		}
		n++
	}
	if n != len(want) {
		t.Fatalf("%d entries, want %d", n, len(want))
	}
}

func TestSink(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		names := 0
		var mu sync.Mutex
		historytest.Exercise(t, func(t *testing.T) func() (history.Sink, error) {
			mu.Lock()
			defer mu.Unlock()
			names++
			prefix := sqlsink.Prefix(fmt.Sprint("history_", names))
			withSchema(t, db, dialect, prefix)
			return func() (history.Sink, error) {
				return sqlsink.Open(context.WithoutCancel(t.Context()), db, dialect, historytest.Queue, prefix)
			}
		})
	})
}

// One connection has to be enough: who reads may append.
func TestOneConnection(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		db.SetMaxOpenConns(1)
		withSchema(t, db, dialect)
		sink := open(t, db, dialect)
		must(t, sink.Append(t.Context(), historytest.Queue, historytest.Entries(0, 300)))
		n := 0
		for _, err := range sink.Read(t.Context(), "") {
			must(t, err)
			must(t, sink.Append(t.Context(), historytest.Queue, historytest.Entries(300+n, 1)))
			n++
		}
		if n != 300 {
			t.Errorf("%d entries, and 300 were there when it began", n)
		}
	})
}

// Writers that each think they are the only one: all of it is kept, and once.
func TestWritersAtOnce(t *testing.T) {
	const writers, step, total = 5, 7, 700
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		withSchema(t, db, dialect)
		all := historytest.Entries(0, total)
		index := map[string]int{"": 0}
		for i, entry := range all {
			index[entry.ID] = i + 1
		}
		var group sync.WaitGroup
		for range writers {
			sink := open(t, db, dialect)
			group.Go(func() {
				for {
					position, err := sink.Position(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					from := index[position]
					if from == total {
						return
					}
					if err := sink.Append(t.Context(), historytest.Queue, all[from:min(from+step, total)]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		count(t, open(t, db, dialect), all)
	})
}

// Of two writers with different entries after the same position one wins, and the other one is told.
func TestTwoHistories(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		withSchema(t, db, dialect)
		entry := func(id, data string) []history.Entry { return []history.Entry{{ID: id, Data: []byte(data)}} }
		for round := range 20 {
			sinks := []*sqlsink.Sink{open(t, db, dialect), open(t, db, dialect)}
			errs := make([]error, 2)
			var group sync.WaitGroup
			for i, sink := range sinks {
				group.Go(func() {
					errs[i] = sink.Append(t.Context(), historytest.Queue, entry(fmt.Sprintf("%d-%d", round+1, i), fmt.Sprint(i)))
				})
			}
			group.Wait()
			lost := 0
			for _, err := range errs {
				if errors.Is(err, history.ErrGap) {
					lost++
				} else if err != nil {
					t.Error(err)
				}
			}
			if lost != 1 {
				t.Errorf("%d of two were refused: %v", lost, errs)
			}
		}
	})
}

func TestSeveralQueuesInOneDatabase(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		withSchema(t, db, dialect)
		for i, name := range []string{"a", "b", "c d/é'%"} {
			sink, err := sqlsink.Open(t.Context(), db, dialect, name)
			must(t, err)
			must(t, sink.Append(t.Context(), name, historytest.Entries(i, 10)))
			count(t, sink, historytest.Entries(i, 10))
			if err := sink.Append(t.Context(), "z", historytest.Entries(i+10, 1)); !errors.Is(err, history.ErrOtherQueue) {
				t.Error(err)
			}
		}
	})
}

func TestBadDatabases(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		fails := func(want error, options ...sqlsink.Option) {
			t.Helper()
			_, err := sqlsink.Open(t.Context(), db, dialect, historytest.Queue, options...)
			if !errors.Is(err, want) {
				t.Errorf("the error is %v, want %v", err, want)
			}
		}
		fails(sqlsink.ErrSchema)
		withSchema(t, db, dialect)
		fails(sqlsink.ErrSchema, sqlsink.Prefix("elsewhere"))
		sink := open(t, db, dialect)
		must(t, sink.Append(t.Context(), historytest.Queue, historytest.Entries(0, 3)))
		run(t, db, "update signalbox_history_queues set version = 2")
		fails(history.ErrOtherVersion)
		if err := sink.Append(t.Context(), historytest.Queue, historytest.Entries(3, 3)); !errors.Is(err, history.ErrOtherVersion) {
			t.Errorf("the error is %v", err)
		}
		run(t, db, "update signalbox_history_queues set version = 1")
		must(t, sink.Append(t.Context(), historytest.Queue, historytest.Entries(3, 3)))
		run(t, db, "drop table signalbox_history_entries")
		fails(sqlsink.ErrSchema)
		if err := sink.Append(t.Context(), historytest.Queue, historytest.Entries(6, 3)); !errors.Is(err, sqlsink.ErrSchema) {
			t.Errorf("the error is %v", err)
		}
	})
	for _, prefix := range []string{"", "A", "a b", "a;drop", "a.b.c", strings.Repeat("a", 41), "1a"} {
		if _, err := sqlsink.Schema(sqlsink.SQLite, sqlsink.Prefix(prefix)); err == nil {
			t.Errorf("a table may be called %q", prefix)
		}
	}
	if _, err := sqlsink.Schema(sqlsink.Dialect{}); err == nil {
		t.Error("there is a schema for no database")
	}
}

// What somebody deletes is missed, wherever it was.
func TestMissingEntries(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		withSchema(t, db, dialect)
		all := historytest.Entries(0, 1000)
		must(t, open(t, db, dialect).Append(t.Context(), historytest.Queue, all))
		run(t, db, "delete from signalbox_history_entries where number <= 10 or number between 500 and 504 or number = 1000")
		var failed error
		for _, failed = range open(t, db, dialect).Read(t.Context(), "") {
		}
		if !errors.Is(failed, history.ErrDamaged) {
			t.Errorf("the error is %v", failed)
		}
		var holes []sqlsink.Missing
		var lost, read int64
		salvaged := open(t, db, dialect, sqlsink.Salvage(func(m *sqlsink.Missing) { holes = append(holes, *m); lost += m.Lost }))
		for _, err := range salvaged.Read(t.Context(), "") {
			must(t, err)
			read++
		}
		want := sqlsink.Missing{Queue: historytest.Queue, After: all[498].ID, Before: all[504].ID, Lost: 5}
		if len(holes) != 3 || holes[1] != want || lost != 16 || read != 984 {
			t.Errorf("%d entries were read, holes %+v", read, holes)
		}
	})
}

// A database that went back to an older copy is noticed by who knows better.
func TestDatabaseWentBack(t *testing.T) {
	onEach(t, func(t *testing.T, db *sql.DB, dialect sqlsink.Dialect) {
		withSchema(t, db, dialect)
		sink, all := open(t, db, dialect), historytest.Entries(0, 9)
		must(t, sink.Append(t.Context(), historytest.Queue, all[:6]))
		run(t, db, "delete from signalbox_history_entries where number > 3")
		run(t, db, "update signalbox_history_queues set entries = 3, ms = 1700000000000, seq = 2")
		if err := sink.Append(t.Context(), historytest.Queue, all[6:]); !errors.Is(err, history.ErrGap) {
			t.Errorf("the error is %v", err)
		}
		_, err := sink.Position(t.Context()) // who asks knows
		must(t, err)
		must(t, sink.Append(t.Context(), historytest.Queue, all[3:]))
		count(t, sink, all)
	})
}

// PostgreSQL dies again and again while entries are kept: what was acknowledged is there, and nothing twice.
func TestPostgreSQLDies(t *testing.T) {
	t.Parallel()
	server, err := postgrestest.Start("synchronous_commit=off", "wal_writer_delay=10s") // which the sink does not rely on
	must(t, err)
	t.Cleanup(server.Close)
	db := connect(t, "pgx", server.Database(t))
	withSchema(t, db, sqlsink.PostgreSQL)
	run(t, db, "checkpoint")
	sink, all := open(t, db, sqlsink.PostgreSQL), historytest.Entries(0, 600)
	failures, begun := 0, time.Now()
	for at := 0; at < len(all); {
		batch := all[at : at+3]
		died := make(chan struct{})
		if at%60 == 0 {
			go func() { server.Kill(); close(died) }()
		} else {
			close(died)
		}
		for err := sink.Append(t.Context(), historytest.Queue, batch); err != nil; err = sink.Append(t.Context(), historytest.Queue, batch) {
			if failures++; time.Since(begun) > patience {
				t.Fatal(err)
			}
			if errors.Is(err, history.ErrGap) || errors.Is(err, history.ErrDamaged) {
				t.Fatal(err)
			}
			<-died
			if at%60 == 0 && failed(db) {
				must(t, server.Restart())
			}
		}
		<-died
		if at%60 == 0 && failed(db) {
			must(t, server.Restart())
		}
		at += len(batch)
	}
	if failures == 0 {
		t.Error("it never failed")
	}
	count(t, open(t, db, sqlsink.PostgreSQL), all)
}

func failed(db *sql.DB) bool { return db.PingContext(context.Background()) != nil }
