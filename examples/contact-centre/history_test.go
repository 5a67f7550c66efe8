package main

import (
	"context"
	"database/sql"
	"net/http"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faultproxy"
	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history"
	segments "github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

// queueName is what the queue of a centre is called, if no flag says otherwise.
const queueName = "contact-centre"

// The server loses everything in the middle of the day, and another one is given what its history says. Agents and managers
// stay, and go on with the same tasks; the account, which is kept apart from the queue, finds that none is lost.
func TestTheCentreGoesOnWhenTheServerHasLostEverything(t *testing.T) {
	t.Parallel()
	t.Run("files", func(t *testing.T) {
		t.Parallel()
		sink, err := segments.Open(t.TempDir())
		must(t, err)
		loseEverything(t, sink)
	})
	t.Run("postgresql", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("pgx", postgrestest.Shared(t).Database(t))
		must(t, err)
		t.Cleanup(func() { must(t, db.Close()) })
		schema, err := sqlsink.Schema(sqlsink.PostgreSQL)
		must(t, err)
		_, err = db.ExecContext(t.Context(), schema)
		must(t, err)
		sink, err := sqlsink.Open(t.Context(), db, sqlsink.PostgreSQL, queueName)
		must(t, err)
		loseEverything(t, sink)
	})
}

// loseEverything is the day, with a history in that sink, which it closes.
func loseEverything(t *testing.T, sink history.Sink) {
	t.Helper()
	server := difftest.Redis(t)
	proxy := faultproxy.Start(t, server.Addr) // leads to the other server as soon as that has everything
	url := "redis://" + proxy.Addr()
	flags := []string{"--agents", "0", "--speed", "200", "--offer-for", "2s", "--url", url, "--calls", "0", "--chats", "0", "--emails", "4"}
	o := openCentre(t, flags...)
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool { return counts(page)["waiting"] >= 12 })
	must(t, o.close())

	q := openQueue(t, url)
	must(t, q.Record(t.Context(), sink, queue.UntilCaughtUp())) // nobody comes after that
	recording, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- q.Record(recording, sink) }()

	flags[1] = "8"
	o = openCentre(t, append(flags[:len(flags)-1], "0")...)
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool { return counts(page)["done"] >= 3 })
	server.Kill()
	stop()
	must(t, <-ended)
	spare := difftest.Redis(t)
	made, err := openQueue(t, "redis://"+spare.Addr).Rebuild(t.Context(), sink)
	must(t, err)
	must(t, sink.Close())
	proxy.Retarget(spare.Addr)
	o.until(http.DefaultClient, "/supervisor/live", func(page string) bool {
		now := counts(page)
		return now["arrived"] >= 12 && now["done"] == now["arrived"]
	})
	if err := o.close(); err != nil {
		t.Fatalf("%v\n%s", err, o.said())
	}
	t.Logf("%+v\n%s", made, o.said())
}

func openQueue(t *testing.T, url string) *queue.Queue {
	t.Helper()
	q, err := queue.Open(t.Context(), url, queueName)
	must(t, err)
	t.Cleanup(func() { must(t, q.Close()) })
	return q
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
