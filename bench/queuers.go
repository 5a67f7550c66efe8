package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/signalbox-io/signalbox/queue"
)

// The queues that are compared, behind one face. Their jobs do nothing, and have no arguments worth mentioning.
const (
	signalboxQueue = "signalbox"
	asynqQueue     = "asynq"
	riverQueue     = "River"
	bullQueue      = "BullMQ" // in a program of its own, see bullmq.go
	bareQueue      = "bare EVALSHA"
)

type queuer interface {
	// enqueue adds a batch of n jobs, the first being the from-th. With keys, they are of so many.
	enqueue(ctx context.Context, from, n, keys int) error
	// work runs jobs until ctx ends.
	work(ctx context.Context, slots int, ran func()) error
	io.Closer
}

func openQueuer(ctx context.Context, kind, addr string) (queuer, error) {
	switch kind {
	case signalboxQueue:
		return openSignalboxQueue(addr)
	case asynqQueue:
		at := asynq.RedisClientOpt{Addr: addr}
		return &asynqQueuer{at, asynq.NewClient(at)}, nil
	case riverQueue:
		return openRiver(ctx, addr)
	case riverTxQueue:
		return openRiverTx(ctx, addr)
	case outboxQueue:
		return openOutbox(ctx, addr)
	case bareQueue:
		client := backend{Addr: addr}.client()
		digest, err := client.ScriptLoad(ctx, "return 1").Result()
		return &bareQueuer{client, digest}, err
	}
	return nil, fmt.Errorf("unknown queue %q", kind)
}

type signalboxQueuer struct {
	client *redis.Client
	*queue.Queue
	due time.Time // of its jobs; zero: at once
}

var nothing = queue.Define[string, queue.None]("nothing")

func openSignalboxQueue(addr string) (*signalboxQueuer, error) {
	client := backend{Addr: addr}.client()
	q, err := queue.New(client, "bench")
	return &signalboxQueuer{client: client, Queue: q}, err
}

func (q *signalboxQueuer) enqueue(ctx context.Context, from, n, keys int) error {
	requests := make([]queue.Request, n)
	for i := range requests {
		var options []queue.Option
		if keys > 0 {
			options = append(options, queue.Key(strconv.Itoa((from+i)%keys)))
		}
		if !q.due.IsZero() {
			options = append(options, queue.At(q.due))
		}
		requests[i] = nothing.With("", options...)
	}
	_, err := q.EnqueueMany(ctx, requests...)
	return err
}

func (q *signalboxQueuer) work(ctx context.Context, slots int, ran func()) error {
	w := q.Worker("bench", queue.Slots(slots))
	nothing.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
		ran()
		return queue.None{}, nil
	})
	return w.Run(ctx)
}

func (q *signalboxQueuer) Close() error { return errors.Join(q.Queue.Close(), q.client.Close()) }

type asynqQueuer struct {
	at asynq.RedisClientOpt
	*asynq.Client
}

func (q *asynqQueuer) enqueue(ctx context.Context, _, n, _ int) error {
	for range n {
		if _, err := q.EnqueueContext(ctx, asynq.NewTask("nothing", []byte(`""`))); err != nil {
			return err
		}
	}
	return nil
}

func (q *asynqQueuer) work(ctx context.Context, slots int, ran func()) error {
	server := asynq.NewServer(q.at, asynq.Config{Concurrency: slots, LogLevel: asynq.FatalLevel})
	err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		ran()
		return nil
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}

// riverQueuer has its address in the form of PostgreSQL: host=/folder user=name.
type riverQueuer struct{ pool *pgxpool.Pool }

type riverArgs struct{}

func (riverArgs) Kind() string { return "nothing" }

func openRiver(ctx context.Context, addr string) (*riverQueuer, error) {
	pool, err := pgxpool.New(ctx, addr)
	if err != nil {
		return nil, err
	}
	q := &riverQueuer{pool}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// client makes one; without slots it only enqueues. River looks for jobs every 100 ms at most unless told to look more often.
func (q *riverQueuer) client(slots int, ran func()) (*river.Client[pgx.Tx], error) {
	config := &river.Config{Logger: slog.New(slog.DiscardHandler), FetchCooldown: time.Millisecond}
	if slots > 0 {
		config.Workers = river.NewWorkers()
		river.AddWorker(config.Workers, river.WorkFunc(func(context.Context, *river.Job[riverArgs]) error {
			ran()
			return nil
		}))
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}}
	}
	return river.NewClient(riverpgxv5.New(q.pool), config)
}

func (q *riverQueuer) enqueue(ctx context.Context, _, n, _ int) error {
	client, err := q.client(0, nil)
	if err != nil {
		return err
	}
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = riverArgs{}
	}
	_, err = client.InsertManyFast(ctx, jobs)
	return err
}

func (q *riverQueuer) work(ctx context.Context, slots int, ran func()) error {
	client, err := q.client(slots, ran)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

func (q *riverQueuer) Close() error {
	q.pool.Close()
	return nil
}

// bareQueuer is the floor of an enqueue: the same client, and a script that does nothing.
type bareQueuer struct {
	*redis.Client
	digest string
}

func (q *bareQueuer) enqueue(ctx context.Context, _, n, _ int) error {
	for range n {
		if err := q.EvalSha(ctx, q.digest, nil).Err(); err != nil {
			return err
		}
	}
	return nil
}

func (q *bareQueuer) work(context.Context, int, func()) error {
	return errors.New("a script that does nothing has no jobs")
}

// severally runs the same on several goroutines.
func severally(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
