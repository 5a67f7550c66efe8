package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	random "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/acquisition"
	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/leaseclock"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/queue/store"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// DefaultLease is for how long the server believes in a worker that it does not hear of.
const DefaultLease = 15 * time.Second

// answerWithin is for how long a server may take to answer.
const answerWithin = 5 * time.Second

// Queue is a door to one queue. It may be used by any number of goroutines; a process needs one.
//
// mu is its only lock, and that of its producer and of those who wait for jobs. Workers have one of their own; the two are
// never held together.
type Queue struct {
	name        string
	process     string
	store       *store.Store
	transport   transport.Transport
	gate        *gate // in front of it
	closeClient func() error
	lease       time.Duration
	clock       *leaseclock.Clock
	ids         atomic.Int64
	observers   observers

	closing  chan struct{} // closed by Close: callers give up
	stopping context.Context
	stop     context.CancelFunc
	tasks    sync.WaitGroup // calls and what they started

	mu        sync.Mutex
	closed    bool
	listening bool
	watching  bool // for sleep
	producer  producer
	workers   map[string]*Worker
	waits     map[string][]chan news
	calling   int       // calls of workers that are under way
	callers   []*caller // wait for theirs
}

// Open connects to the servers behind a URL, as signalbox.Open does, and makes sure that they can be worked with.
func Open(ctx context.Context, rawURL, name string, settings ...Setting) (*Queue, error) {
	client, place, err := address.Dial(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open: %w: %w", ErrInvalid, err)
	}
	q, err := New(client, name, settings...)
	if err == nil {
		q.closeClient = client.Close
		if err = q.checkServer(ctx); err == nil {
			return q, nil
		}
		return nil, errors.Join(fmt.Errorf("open %s: %w", place, err), q.Close())
	}
	return nil, errors.Join(err, client.Close())
}

// New returns the queue of a name over a client that stays the caller's: Close leaves it open. A client with MaxRetries -1
// and ContextTimeoutEnabled is best.
func New(client redis.UniversalClient, name string, settings ...Setting) (*Queue, error) {
	stopping, stop := context.WithCancel(context.Background())
	t := goredis.New(client)
	q := &Queue{
		name: name, process: rand.Text()[:16], transport: t, gate: &gate{Transport: t, queue: name}, lease: DefaultLease, clock: leaseclock.New(), closing: make(chan struct{}),
		stopping: stopping, stop: stop, workers: make(map[string]*Worker), waits: make(map[string][]chan news),
	}
	if t.Sharded() {
		q.process = ledger.Sharded + q.process
	}
	for _, set := range settings {
		if err := set(q); err != nil {
			stop()
			return nil, err
		}
	}
	var err error
	if q.store, err = store.New(q.gate, name, q.process, answerWithin); err != nil {
		stop()
		return nil, err
	}
	return q, nil
}

// Setting is an option of Open and New.
type Setting func(*Queue) error

// Lease sets for how long the server believes in a worker that it does not hear of. A worker is heard three times in it; one
// that died is replaced when it is over. At least a second.
func Lease(lease time.Duration) Setting {
	return func(q *Queue) error {
		if lease < time.Second || lease > time.Hour {
			return fmt.Errorf("%w: a lease of %v is not between a second and an hour", ErrInvalid, lease)
		}
		q.lease = lease
		return nil
	}
}

// Name is the queue's.
func (q *Queue) Name() string { return q.name }

// Close ends every call with ErrClosed and returns when no goroutine is left. Workers are ended by their own contexts
// first: one that still runs is stopped as if the time to drain were over.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	close(q.closing)
	q.mu.Unlock()
	q.stop()
	q.tasks.Wait()
	if q.closeClient != nil {
		return q.closeClient()
	}
	return nil
}

// enter counts one more task, which the caller ends with tasks.Done, unless the queue is closed.
func (q *Queue) enter() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("queue %q: %w", q.name, ErrClosed)
	}
	q.tasks.Add(1)
	return nil
}

// backoff is how long to wait before something is tried again that failed so often in a row.
func (q *Queue) backoff(failures int) time.Duration {
	return acquisition.Pause(failures, q.lease, q.lease, random.Uint64())
}
