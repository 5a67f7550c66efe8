package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/outbox"
)

// The outbox beside River, whose jobs are in PostgreSQL anyhow: both enqueue in transactions of the same server. Ours are
// relayed meanwhile, by the process that enqueues; what that costs is in our figure, while nobody runs River's jobs.

const (
	outboxTestName = "outbox"
	outboxQueue    = "outbox"
	riverTxQueue   = "River, in a transaction"
)

// outboxQueuer has its address in two: that of Redis, a space, and that of PostgreSQL.
type outboxQueuer struct {
	*signalboxQueuer
	pool  *pgxpool.Pool
	box   *signalbox.Box
	stop  context.CancelFunc
	ended chan error
}

func openOutbox(ctx context.Context, addr string) (*outboxQueuer, error) {
	redis, postgres, _ := strings.Cut(addr, " ")
	pool, err := pgxpool.New(ctx, postgres)
	if err != nil {
		return nil, err
	}
	q := &outboxQueuer{pool: pool, ended: make(chan error, 1)}
	if _, err := pool.Exec(ctx, outbox.Schema()); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	if q.signalboxQueuer, err = openSignalboxQueue(redis); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	box := signalbox.New(q.client)
	relay, err := outbox.NewRelay(pool, q.Queue, box.Election("outbox"), outbox.Trouble(func(err error) { slog.Error("relay", "error", err) }))
	if err != nil {
		return nil, errors.Join(err, box.Close(), q.Close())
	}
	q.box = box
	ctx, q.stop = context.WithCancel(ctx)
	go func() { q.ended <- relay.Run(ctx) }()
	return q, nil
}

func (q *outboxQueuer) enqueue(ctx context.Context, _, n, _ int) error {
	requests := make([]queue.Request, n)
	for i := range requests {
		requests[i] = nothing.With("")
	}
	return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		_, err := outbox.EnqueueMany(ctx, tx, requests...)
		return err
	})
}

func (q *outboxQueuer) Close() (err error) {
	if q.box != nil {
		q.stop()
		err = errors.Join(<-q.ended, q.box.Close())
	}
	if q.signalboxQueuer != nil {
		err = errors.Join(err, q.signalboxQueuer.Close())
	}
	q.pool.Close()
	return err
}

// riverTx enqueues with River in transactions.
type riverTx struct {
	*riverQueuer
	one *river.Client[pgx.Tx]
}

func openRiverTx(ctx context.Context, addr string) (*riverTx, error) {
	q, err := openRiver(ctx, addr)
	if err != nil {
		return nil, err
	}
	one, err := q.client(0, nil)
	return &riverTx{q, one}, err
}

func (q *riverTx) enqueue(ctx context.Context, _, n, _ int) error {
	return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
		if n == 1 {
			_, err := q.one.InsertTx(ctx, tx, riverArgs{}, nil)
			return err
		}
		jobs := make([]river.InsertManyParams, n)
		for i := range jobs {
			jobs[i].Args = riverArgs{}
		}
		_, err := q.one.InsertManyFastTx(ctx, tx, jobs)
		return err
	})
}

func outboxTest(b *queueBench) *queueTest {
	t := &queueTest{name: outboxTestName}
	single := t.row("outbox, a transaction a job, ten goroutines", "jobs/s", "River, InsertTx", 0, ratioAtLeast(1))
	many := t.row("outbox, transactions of 100 jobs, one producer", "jobs/s", "River, InsertManyFastTx", 0, ratioAtLeast(1))
	half := t.row("outbox, commit to start, idle worker, p50", "ms", "the transaction itself", 2, ownAtMost(10, "ms"))
	most := t.row("outbox, commit to start, idle worker, p99", "ms", "the transaction itself", 2, justKnow)
	t.measure = func(ctx context.Context, reversed bool) error {
		if why := b.missing[riverQueue]; why != "" {
			return errors.New(why)
		}
		for _, c := range []struct {
			row               *queueRow
			goroutines, batch int
		}{{single, 10, 1}, {many, 1, 100}} {
			if err := b.postgres.emptyOutbox(ctx); err != nil {
				return err
			}
			ours, theirs, err := pair(reversed, b.produce(ctx, outboxQueue, c.goroutines, c.batch),
				b.produce(ctx, riverTxQueue, c.goroutines, c.batch))
			if err != nil {
				return err
			}
			c.row.add(ours.rate(), theirs.rate())
		}
		if err := errors.Join(b.postgres.emptyOutbox(ctx), b.flush(ctx)); err != nil {
			return err
		}
		p, err := b.play(ctx, queueTask{Do: "commit", Kind: outboxQueue, Count: b.plan.Begins}, 1)
		if err != nil {
			return err
		}
		half.add(quantileOf(p.found[0].Latencies, 0.5), quantileOf(p.found[0].Ping, 0.5))
		most.add(quantileOf(p.found[0].Latencies, 0.99), quantileOf(p.found[0].Ping, 0.99))
		return nil
	}
	return t
}

// emptyOutbox takes away what earlier rounds have left, of the outbox and of River.
func (p *postgres) emptyOutbox(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.addr)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `do $$ declare t text; begin
		foreach t in array array['signalbox_outbox', 'river_job'] loop
			if to_regclass(t) is not null then execute 'truncate ' || t; end if;
		end loop;
	end $$`)
	return errors.Join(err, conn.Close(ctx))
}

// commitTask measures from the return of a commit to the begin of the job, on a worker that is idle, and, in place of a PING,
// how long the transaction takes.
func commitTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun, ended := make(chan time.Time, 1), make(chan error, 1)
	go func() { ended <- q.work(ctx, 10, func() { begun <- time.Now() }) }()
	for i := range t.Count {
		time.Sleep(5 * time.Millisecond) // until the relay and the worker are idle again
		sent := time.Now()
		if err := q.enqueue(ctx, i, 1, 0); err != nil {
			return found, err
		}
		committed := time.Now()
		found.Ping = append(found.Ping, committed.Sub(sent).Seconds()*1e3)
		select {
		case at := <-begun:
			if i >= 3 { // by then all know each other
				found.Latencies = append(found.Latencies, max(at.Sub(committed).Seconds()*1e3, 0))
			}
		case err := <-ended:
			return found, fmt.Errorf("the worker has ended: %w", err)
		case <-time.After(20 * time.Second):
			return found, errors.New("a job did not begin within 20 s")
		}
	}
	cancel()
	return found, <-ended
}
