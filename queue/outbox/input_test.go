package outbox

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"encoding/gob"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // a driver of database/sql

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/outboxschema"
	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/queue"
)

// hostile are texts that a database, JSON or a script may stumble over.
var hostile = []string{
	"", "\x00", "\x00\xff\xfe", `'; drop table signalbox_outbox; --`, `$1 \x41 {a,"b",NULL}`, "\u2028<&>\\u0000", "a\tb\nc\r",
	strings.Repeat("\x00\\\"", 1000), "ünïcödé 🚦",
}

// gobs is a codec whose output is not text.
type gobs struct{}

func (gobs) Name() string { return "gob" }

func (gobs) Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(value)
	return out.Bytes(), err
}

func (gobs) Decode(data []byte, into any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(into)
}

func TestHostileBytes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	// One database speaks UTF-8, one Latin-1, one whatever it is told.
	redis := difftest.Redis(t)
	for _, encoding := range []string{"utf8", "latin1", "sql_ascii"} {
		name := fmt.Sprintf("%s_%d", encoding, time.Now().UnixNano()) // the test may run again on the same server
		admin := connect(t, postgrestest.Shared(t).URL("postgres"))
		exec1(t, admin, "create database "+name+" template template0 locale 'C' encoding '"+encoding+"'")
		pool := connect(t, postgrestest.Shared(t).URL(name))
		exec1(t, pool, Schema())
		w := newWorld(t, pool, redis)
		raw := queue.Define[[]byte, queue.None]("raw "+encoding, queue.Encoding(gobs{}))
		db, err := sql.Open("pgx", postgrestest.Shared(t).URL(name))
		must(t, err)
		t.Cleanup(func() { must(t, db.Close()) })
		ran := make(chan string, 2*len(hostile))
		worker := w.queue.Worker("w")
		raw.Handle(worker, func(_ context.Context, j *queue.Job[[]byte]) (queue.None, error) {
			ran <- string(j.Args)
			return queue.None{}, nil
		})
		stopWorker := during(t, worker.Run)
		stopRelay := w.relay(t, "e")
		want := map[string]int{}
		for _, text := range hostile {
			want[text] = 2
			key := queue.Key("k" + strings.ToValidUTF8(strings.Map(printableOnly, text[:min(len(text), 100)]), ""))
			must(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := Enqueue(ctx, tx, raw, []byte(text), key)
				return err
			}))
			tx, err := db.BeginTx(ctx, nil)
			must(t, err)
			_, err = EnqueueMany(ctx, SQL(tx), raw.With([]byte(text), key))
			must(t, err)
			must(t, tx.Commit())
		}
		for range 2 * len(hostile) {
			want[<-ran]--
		}
		for text, n := range want {
			if n != 0 {
				t.Errorf("%s: %q ran %d times too few", encoding, text, n)
			}
		}
		stopRelay()
		stopWorker()
	}
}

func printableOnly(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

func TestWhatTheQueueWouldRefuseIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := outboxIn(t, postgrestest.Shared(t))
	must(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := Enqueue(ctx, tx, note, strings.Repeat("x", queue.MaxPayload)); !errors.Is(err, queue.ErrInvalid) {
			t.Error("too long:", err)
		}
		if _, err := Enqueue(ctx, tx, note, "", queue.Key("a\x00")); !errors.Is(err, queue.ErrInvalid) {
			t.Error("a key with a NUL:", err)
		}
		if _, err := EnqueueMany(ctx, tx, note.With("good"), note.With("", queue.ID("\xff"))); !errors.Is(err, queue.ErrInvalid) {
			t.Error("a bad one of two:", err)
		}
		_, err := Enqueue(ctx, tx, note, strings.Repeat("x", queue.MaxPayload-2)) // the transaction is as good as before
		return err
	}))
	var n int
	must(t, pool.QueryRow(ctx, "select count(*) from signalbox_outbox").Scan(&n))
	if n != 1 {
		t.Errorf("%d jobs are in the outbox", n)
	}
}

func TestADatabaseWithoutTheTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, connect(t, postgrestest.Shared(t).Database(t)), difftest.Redis(t))
	w.work(t, 10)
	trouble := make(chan error, 100)
	w.relay(t, "e", Trouble(func(err error) { trouble <- err }))
	for _, err := range []error{<-trouble, w.transaction(t.Context(), "never")} {
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "signalbox queue outbox schema") {
			t.Error(err)
		}
	}
	exec1(t, w.pool, Schema())
	exec1(t, w.pool, Schema()) // which changes nothing
	w.commit(t, "a")
	w.settle(t, []string{"a"})
}

func TestAnotherVersionOfTheTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t, connect(t, postgrestest.Shared(t).Database(t)), difftest.Redis(t))
	next := strings.NewReplacer("version <> 2", "version <> 3", "(version) values (2)", "(version) values (3)", "has version 2", "has version 3")
	exec1(t, w.pool, next.Replace(Schema()))
	trouble := make(chan error, 100)
	w.relay(t, "e", Trouble(func(err error) { trouble <- err }))
	for _, err := range []error{<-trouble, w.transaction(t.Context(), "never")} {
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "version 3") {
			t.Error(err)
		}
	}
}

//go:embed testdata/schema1.sql
var schema1 string

// Tables of version 1 have jobs in them, a call that is under way and one that was refused. All goes on.
func TestTablesOfVersion1(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := connect(t, postgrestest.Shared(t).Database(t))
	exec1(t, pool, schema1)
	w := newWorld(t, pool, difftest.Redis(t))
	w.work(t, 10)
	add := func(id string) {
		_, job, err := note.With(id).Encode()
		must(t, err)
		exec1(t, pool, "select signalbox_outbox_add(1, '{0}', array[$1::bytea])", job) // as programs of version 1 do
	}
	add("a")
	add("b")
	exec1(t, pool, "select signalbox_outbox_next(1, 1, 1)")
	exec1(t, pool, "insert into signalbox_outbox_refused (id, enqueued, job, reason) values (17, now(), '', 'as planned')")
	if err := w.transaction(ctx, "never"); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
	exec1(t, pool, Schema())
	add("c")
	w.commit(t, "d")
	if _, err := pool.Exec(ctx, "select signalbox_outbox_next(2, 500, 1000000)"); stateOf(err) != codeUndefinedFunction {
		t.Errorf("a relay of version 1: %v", err)
	}
	w.relay(t, "e")
	w.settle(t, []string{"a", "b", "c", "d"})
	var place int
	must(t, pool.QueryRow(ctx, "select place from signalbox_outbox_refused where id = 17").Scan(&place))
	if place != 1 {
		t.Errorf("what was refused has the place %d", place)
	}
}

// A statement with many jobs makes few rows, and each call takes whole rows.
func TestManyJobsInARow(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	ctx := t.Context()
	ids := append(numbered("short ", 700), strings.Repeat("long ", 1000))
	ids = append(ids, numbered("last ", 3)...)
	requests := make([]queue.Request, len(ids))
	for i, id := range ids {
		requests[i] = note.With(id, queue.Key("k"))
	}
	must(t, pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := EnqueueMany(ctx, tx, requests...)
		return err
	}))
	var rows, jobs int
	must(t, w.pool.QueryRow(ctx, "select count(*), sum(jobs) from signalbox_outbox").Scan(&rows, &jobs))
	if rows > len(ids)/8 || jobs != len(ids) {
		t.Errorf("%d rows say that they have %d jobs of %d", rows, jobs, len(ids))
	}
	stop := w.relay(t, "e", Batch(3)) // fewer than a row has
	w.awaitEmpty(t)
	stop()
	w.work(t, 1)
	w.settle(t, ids)
	for i, id := range ids {
		if w.ran[i] != id {
			t.Fatalf("%.20q ran in the place of %.20q", w.ran[i], id)
		}
	}
}

func TestTheSchemaSaysItsVersion(t *testing.T) {
	if !strings.Contains(Schema(), fmt.Sprintf("(version) values (%d)", outboxschema.Version)) {
		t.Error("it does not")
	}
}

// Jobs that the queue does not take are put aside; what comes with them and after them is enqueued.
func TestRefusedJobs(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	ctx := t.Context()
	trouble := make(chan error, 100)
	failed := queue.Define[string, queue.None]("failed")
	worker := w.queue.Worker("failing")
	failed.Handle(worker, func(context.Context, *queue.Job[string]) (queue.None, error) {
		return queue.None{}, queue.Fail(errors.New("as planned"))
	})
	during(t, worker.Run)
	parent, err := failed.Enqueue(ctx, w.queue, "")
	must(t, err)
	if _, err := parent.Wait(ctx); !errors.Is(err, queue.ErrDead) {
		t.Fatal(err)
	}
	tx, err := w.pool.Begin(ctx)
	must(t, err)
	_, err = EnqueueMany(ctx, tx, note.With("a"), note.With("never", queue.After(queue.CancelIt, parent.ID())), note.With("b"))
	must(t, err)
	_, err = tx.Exec(ctx, `insert into signalbox_outbox (job) values ('\x00ff'), ('{"v":9}')`)
	must(t, err)
	_, job, err := note.With("c").Encode()
	must(t, err)
	_, err = tx.Exec(ctx, "insert into signalbox_outbox (job, jobs) values ($1, 2), ($1, 3)", append(job, "\n{}"...))
	must(t, err)
	must(t, tx.Commit(ctx))
	w.work(t, 10)
	w.relay(t, "e", Trouble(func(err error) { trouble <- err }))
	w.settleBeside(t, []string{"a", "b", "c"}, 1)
	for range 5 {
		var refused *RefusedError
		if err := <-trouble; !errors.As(err, &refused) {
			t.Error(err)
		}
	}
	var places string
	must(t, w.pool.QueryRow(ctx, `select string_agg(place || '/' || octet_length(job), ' ' order by id)
		from signalbox_outbox_refused where reason <> ''`).Scan(&places))
	if want := fmt.Sprintf(`^2/\d+ 1/2 1/7 2/2 1/%d$`, len(job)+3); !regexp.MustCompile(want).MatchString(places) {
		t.Errorf("places and sizes of what is put aside are %q, not %q", places, want)
	}
}

// A database that was restored does not know of calls that the queue has had.
func TestADatabaseThatHasForgotten(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	stop := w.relay(t, "e")
	for _, id := range []string{"a", "b", "c"} {
		w.commit(t, id)
	}
	w.settle(t, []string{"a", "b", "c"})
	stop()
	exec1(t, w.pool, "update signalbox_outbox_state set number = 1")
	w.commit(t, "d")
	trouble := make(chan error, 100)
	w.relay(t, "e", Trouble(func(err error) { trouble <- err }))
	w.settle(t, []string{"a", "b", "c", "d"})
	var forgot *ForgotError
	if err := <-trouble; !errors.As(err, &forgot) {
		t.Error(err)
	}
}

// A job with an id of one's own counts once, however often it is committed, as long as the queue knows it.
func TestOwnIDs(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	ctx := t.Context()
	for range 3 {
		must(t, pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			id, err := Enqueue(ctx, tx, note, "a", queue.ID("invoice 17"))
			if id != "invoice 17" {
				t.Error(id)
			}
			return err
		}))
	}
	stop := w.relay(t, "e", Batch(2))
	w.commit(t, "b")
	w.awaitEmpty(t)
	stop()
	w.work(t, 10)
	w.settle(t, []string{"a", "b"})
}

func TestARelayNeedsSomething(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	for i, make := range []func() (*Relay, error){
		func() (*Relay, error) { return NewRelay(nil, w.queue, w.box.Election("e")) },
		func() (*Relay, error) { return NewRelay(w.pool, nil, w.box.Election("e")) },
		func() (*Relay, error) { return NewRelay(w.pool, w.queue, nil) },
		func() (*Relay, error) { return NewRelay(w.pool, w.queue, w.box.Election("e"), Batch(0)) },
		func() (*Relay, error) { return NewRelay(w.pool, w.queue, w.box.Election("e"), Batch(501)) },
		func() (*Relay, error) { return NewRelay(w.pool, w.queue, w.box.Election("e"), Look(0)) },
	} {
		if _, err := make(); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
	relay, err := NewRelay(w.pool, w.queue, w.box.Election("\xff"))
	must(t, err)
	if err := relay.Run(t.Context()); !errors.Is(err, queue.ErrInvalid) {
		t.Error(err)
	}
}
