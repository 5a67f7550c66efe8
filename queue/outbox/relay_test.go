package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/postgrestest"
	"github.com/signalbox-io/signalbox/queue"
)

func TestWhatIsRolledBackIsNotEnqueued(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	w.relay(t, "e")
	ctx := t.Context()
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := Enqueue(ctx, tx, note, "never")
		return errors.Join(err, errRollback)
	})
	if !errors.Is(err, errRollback) {
		t.Fatal(err)
	}
	must(t, pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := Enqueue(ctx, tx, note, "a")
		inner := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			_, err := Enqueue(ctx, savepoint, note, "never, too")
			return errors.Join(err, errRollback)
		})
		if !errors.Is(inner, errRollback) {
			t.Error(inner)
		}
		return err
	}))
	w.commit(t, "b")
	w.settle(t, []string{"a", "b"})
}

// What the transaction says of itself comes to the handler.
func TestMetadataComesWithTheJob(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	said := make(chan string, 1)
	q, err := queue.Open(t.Context(), w.server, "app", queue.Propagate(nil, func(ctx context.Context, meta map[string]string) context.Context {
		said <- meta["trace"]
		return ctx
	}))
	must(t, err)
	worker := q.Worker("w")
	note.Handle(worker, func(context.Context, *queue.Job[string]) (queue.None, error) { return queue.None{}, nil })
	stop := during(t, worker.Run)
	w.relay(t, "e")
	must(t, pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := Enqueue(t.Context(), tx, note, "a", queue.Meta(map[string]string{"trace": "1"}))
		return err
	}))
	select {
	case got := <-said:
		if got != "1" {
			t.Errorf("the handler is told %q", got)
		}
	case <-time.After(patience):
		t.Error("the job does not run")
	}
	stop()
	must(t, q.Close())
}

// Each relay is killed after the queue has answered and before the database knows. The jobs of its call have ended, and are
// forgotten, when the next one makes the same call again.
func TestRelaysThatAreKilled(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	var want []string
	for round := range 5 {
		relay := startChild(t, w, fmt.Sprint("election ", round))
		ids := numbered(fmt.Sprint("round ", round, " "), 7)
		want = append(want, ids...)
		w.commit(t, ids...)
		relay.await(t)
		if round > 0 { // that was the call of the one before
			_, err := relay.proceed.Write([]byte("\n"))
			must(t, err)
			relay.await(t)
		}
		relay.kill()
		w.await(t, want)
		w.awaitJobs(t, 0)
	}
	w.relay(t, "the last")
	w.settle(t, want)
}

// Both lead, which no election allows: what is enqueued does not hang on it.
func TestTwoRelaysThatBothLead(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 50)
	var want []string
	for i := range 4 {
		want = append(want, numbered(fmt.Sprint("producer ", i, " "), 10)...)
	}
	w.relay(t, "one", Batch(5), quiet)
	w.relay(t, "two", Batch(5), quiet)
	severally(4, func(i int) {
		for _, id := range numbered(fmt.Sprint("producer ", i, " "), 10) {
			if err := w.transaction(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
	})
	w.settle(t, want)
}

func TestTheNextRelayLeadsWhenOneStops(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	stop := w.relay(t, "e")
	w.commit(t, "a")
	w.await(t, []string{"a"})
	w.relay(t, "e")
	stop()
	w.commit(t, "b")
	w.settle(t, []string{"a", "b"})
}

// commitUntilKnown commits one job and, where nobody knows whether it was, looks.
func (w *world) commitUntilKnown(ctx context.Context, id string) error {
	for ctx.Err() == nil {
		var known bool
		err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "select exists (select from sent where id = $1)", id).Scan(&known); err != nil || known {
				return err
			}
			if _, err := tx.Exec(ctx, "insert into sent values ($1)", id); err != nil {
				return err
			}
			_, err := Enqueue(ctx, tx, note, id)
			return err
		})
		if err == nil {
			return nil
		}
	}
	return ctx.Err()
}

func TestPostgreSQLRestarts(t *testing.T) {
	t.Parallel()
	p, err := postgrestest.Start()
	must(t, err)
	t.Cleanup(p.Close)
	w := newWorld(t, outboxIn(t, p), difftest.Redis(t))
	exec1(t, w.pool, "create table sent (id text primary key)")
	w.work(t, 20)
	w.relay(t, "e", quiet)
	var want []string
	for i := range 4 {
		want = append(want, numbered(fmt.Sprint("producer ", i, " "), 40)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for n := range 3 {
			w.mu.Lock()
			for len(w.ran) < 30*(n+1) && ctx.Err() == nil {
				w.changed.Wait()
			}
			w.mu.Unlock()
			p.Kill()
			if err := p.Restart(); err != nil {
				t.Error(err)
			}
		}
	}()
	severally(4, func(i int) {
		for _, id := range numbered(fmt.Sprint("producer ", i, " "), 40) {
			if err := w.commitUntilKnown(ctx, id); err != nil {
				t.Error(err)
			}
		}
	})
	<-restarted
	w.settle(t, want)
}

func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	redis := difftest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	w := newWorld(t, outboxIn(t, postgrestest.Shared(t)), redis)
	w.work(t, 20)
	w.relay(t, "e", quiet)
	want := numbered("", 150)
	for i, id := range want {
		w.commit(t, id)
		if i%50 == 25 {
			redis.Kill()
			redis.Restart()
		}
	}
	w.awaitAtLeastOnce(t, want)
}

// A worker whose server is killed may have run a job and not said so. So here what runs twice is no mistake of the outbox; what is
// enqueued is counted by the queue.
func (w *world) awaitAtLeastOnce(t *testing.T, want []string) {
	t.Helper()
	begun := time.Now()
	for {
		stats, err := w.queue.Stats(t.Context())
		must(t, err)
		if kinds := stats.Kinds; len(kinds) == 1 && kinds[0].Enqueued >= len(want) && kinds[0].Waiting+kinds[0].Running == 0 {
			if kinds[0].Enqueued != len(want) {
				t.Errorf("%d jobs were enqueued, %d committed", kinds[0].Enqueued, len(want))
			}
			break
		}
		if time.Since(begun) > patience {
			t.Fatalf("%+v", stats)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ran := map[string]bool{}
	for _, id := range w.ran {
		ran[id] = true
	}
	if len(ran) != len(want) {
		t.Errorf("%d jobs ran, %d committed", len(ran), len(want))
	}
}

func TestALostNotification(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	w.relay(t, "e", Look(20*time.Millisecond))
	_, job, err := note.With("a").Encode()
	must(t, err)
	exec1(t, w.pool, "insert into signalbox_outbox (job) values ($1)", job) // which tells nobody
	w.settle(t, []string{"a"})
}

func TestTheConnectionThatHearsIsCut(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	trouble := make(chan error, 10)
	w.relay(t, "e", Trouble(func(err error) { trouble <- err }))
	w.commit(t, "a")
	w.await(t, []string{"a"})
	exec1(t, w.pool, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'listen%'")
	if err := <-trouble; err == nil {
		t.Error("no trouble")
	}
	w.commit(t, "b")
	w.settle(t, []string{"a", "b"})
}

// A transaction that finds nobody asleep tells nobody. Who falls asleep waits for its end.
func TestATransactionFromBeforeTheRelayFellAsleep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, outboxIn(t, postgrestest.Shared(t), "lock_timeout = '1ms'"), difftest.Redis(t))
	w.work(t, 10)
	tx := w.begin(t, "a")
	w.relay(t, "e")
	w.commit(t, "b")
	w.await(t, []string{"b"})
	w.commit(t, "c")
	w.await(t, []string{"b", "c"})
	w.awaitSleepy(t)
	must(t, tx.Commit(t.Context()))
	w.await(t, []string{"a", "b", "c"})
	w.commit(t, "d")
	w.settle(t, []string{"a", "b", "c", "d"})
}

// Two transactions find nobody asleep, and tell nobody. The one that ends is relayed though the relay waits for the other.
func TestATransactionBesideOneThatGoesOn(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.work(t, 10)
	short, long := w.begin(t, "a"), w.begin(t, "b")
	w.relay(t, "e")
	w.awaitSleepy(t)
	must(t, short.Commit(t.Context()))
	w.await(t, []string{"a"})
	must(t, long.Commit(t.Context()))
	w.settle(t, []string{"a", "b"})
}

// begin enqueues in a transaction that goes on.
func (w *world) begin(t *testing.T, id string) pgx.Tx {
	t.Helper()
	tx, err := w.pool.Begin(t.Context())
	must(t, err)
	_, err = Enqueue(t.Context(), tx, note, id)
	must(t, err)
	return tx
}

// awaitSleepy waits until the relay waits for the lock of sleep, or has it and has looked since.
func (w *world) awaitSleepy(t *testing.T) {
	t.Helper()
	for begun, sleepy := time.Now(), false; !sleepy; {
		must(t, w.pool.QueryRow(t.Context(), `select exists (
			select from pg_locks l join pg_stat_activity asked using (pid)
			where l.locktype = 'advisory' and l.objid = 0 and l.mode = 'ExclusiveLock' and asked.datname = current_database()
			and (not l.granted or exists (
				select from pg_stat_activity looked where looked.datname = current_database() and looked.state = 'idle'
				and looked.query like '%signalbox_outbox_next%' and looked.query_start > asked.state_change)))`).Scan(&sleepy))
		if time.Since(begun) > patience {
			t.Fatal("the relay does not fall asleep")
		}
	}
}

func TestOrderOfAKeyIsThatOfItsCommits(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	keys := []string{"a", "b", "c"}
	committed := map[string][]string{}
	total := 0
	ctx := t.Context()
	w.relay(t, "e", Batch(7))
	severally(6, func(i int) {
		for n := range 12 {
			key, id := keys[(i+n)%len(keys)], fmt.Sprintf("%d/%d", i, n)
			err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				if _, err := Enqueue(ctx, tx, note, key+" "+id, queue.Key(key)); err != nil {
					return err
				}
				// Time for others to come between, if they could.
				if _, err := tx.Exec(ctx, "select pg_sleep(0.004 * random())"); err != nil {
					return err
				}
				if n%5 == 4 {
					return errRollback
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				committed[key] = append(committed[key], key+" "+id)
				total++
				return nil
			})
			if err != nil && !errors.Is(err, errRollback) {
				t.Error(err)
			}
		}
	})
	w.work(t, 1)
	var want []string
	for _, ids := range committed {
		want = append(want, ids...)
	}
	w.settle(t, want)
	ran := map[string][]string{}
	for _, id := range w.ran {
		ran[id[:1]] = append(ran[id[:1]], id)
	}
	for _, key := range keys {
		if fmt.Sprint(ran[key]) != fmt.Sprint(committed[key]) {
			t.Errorf("key %s:\ncommitted %v\nran       %v", key, committed[key], ran[key])
		}
	}
}
