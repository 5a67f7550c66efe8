package queue

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/queue/store"
)

// Partitions are one large queue as several, each with a hash tag of its own, so that the primaries of a Cluster share its
// work. A key is always in the same one: its limits and rates hold, and its jobs keep their order. Everything else is each
// partition's own: limits and rates of a kind or of all, order among keys, fingerprints, parents.
//
// A partition is a Queue like any other, named app/3of8, and may be used as one. How many there are is part of the name:
// with another number it is another queue, and the old one is worked until it is empty. A worker belongs to one partition,
// and its capacities with it: what it has room for is decided where its jobs are.
type Partitions []*Queue

// maxPartitions is as many as anybody may need: each costs a process a connection to hear by.
const maxPartitions = 1024

// OpenPartitions is Open for a queue of n partitions.
func OpenPartitions(ctx context.Context, rawURL, name string, n int, settings ...Setting) (Partitions, error) {
	client, place, err := address.Dial(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open: %w: %w", ErrInvalid, err)
	}
	p, err := NewPartitions(client, name, n, settings...)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	p[n-1].closeClient = client.Close // the last to be closed
	if err := p[0].checkServer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", place, err), p.Close())
	}
	return p, nil
}

// NewPartitions is New for a queue of n partitions.
func NewPartitions(client redis.UniversalClient, name string, n int, settings ...Setting) (Partitions, error) {
	if n < 1 || n > maxPartitions {
		return nil, fmt.Errorf("queue %q: %w: %d partitions: it is between 1 and %d", name, ErrInvalid, n, maxPartitions)
	}
	if err := store.CheckName("queue", name, maxNameLen); err != nil {
		return nil, err
	}
	p := make(Partitions, n)
	for i := range p {
		var err error
		if p[i], err = New(client, fmt.Sprintf("%s/%dof%d", name, i, n), settings...); err != nil {
			return nil, errors.Join(err, p[:i].Close())
		}
	}
	return p, nil
}

// Of is the partition of a key.
func (p Partitions) Of(key string) *Queue {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it never fails
	return p[h.Sum64()%uint64(len(p))]
}

// EnqueueMany adds each job to the partition of its key, as Queue.EnqueueMany does. A job without a key goes where its
// fingerprint or its id says, and without those anywhere. One that waits for others has to have a key, the same as theirs. The
// error is for all of those without an outcome; other partitions' jobs may have been enqueued all the same.
func (p Partitions) EnqueueMany(ctx context.Context, requests ...Request) ([]ManyOutcome, error) {
	return p.deal(requests, func(q *Queue, mine []Request) ([]ManyOutcome, error) { return q.EnqueueMany(ctx, mine...) })
}

// deal has each partition enqueue its requests.
func (p Partitions) deal(requests []Request, enqueue func(q *Queue, mine []Request) ([]ManyOutcome, error)) ([]ManyOutcome, error) {
	outcomes := make([]ManyOutcome, len(requests))
	places := map[*Queue][]int{}
	for i, r := range requests {
		q := p.partitionOf(&r)
		if r.err == nil && r.item.After.Mode != "" && r.item.Lane.Key == "" {
			r.err = fmt.Errorf("enqueue %q: %w: it waits for others, and without a key nobody knows in which partition they are",
				r.item.Lane.Kind, ErrInvalid)
		}
		if outcomes[i].Err = r.err; r.err == nil {
			places[q] = append(places[q], i)
		}
	}
	var errs []error
	for _, q := range p {
		var mine []Request
		for _, at := range places[q] {
			mine = append(mine, requests[at])
		}
		if len(mine) == 0 {
			continue
		}
		told, err := enqueue(q, mine)
		errs = append(errs, err)
		for i, o := range told {
			outcomes[places[q][i]] = o
		}
	}
	return outcomes, errors.Join(errs...)
}

func (p Partitions) partitionOf(r *Request) *Queue {
	fingerprint := r.item.UniqueField
	if fingerprint == "id" {
		fingerprint = ""
	}
	for _, decides := range []string{r.item.Lane.Key, fingerprint, r.item.ID} {
		if decides != "" {
			return p.Of(decides)
		}
	}
	return p[rand.N(len(p))]
}

// Run runs a worker for each partition until ctx ends and all have ended. The first error ends the others, as the end of ctx
// does.
func (p Partitions) Run(ctx context.Context, worker func(q *Queue) *Worker) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(p))
	for _, q := range p {
		w := worker(q)
		go func() { ended <- w.Run(ctx) }()
	}
	var errs []error
	for range p {
		if err := <-ended; err != nil {
			errs = append(errs, err)
			stop()
		}
	}
	return errors.Join(errs...)
}

// Configure makes changes in every partition: a limit of the whole queue, or of a kind, is then that of each.
func (p Partitions) Configure(ctx context.Context, changes ...Change) error {
	var errs []error
	for _, q := range p {
		errs = append(errs, q.Configure(ctx, changes...))
	}
	return errors.Join(errs...)
}

// Stats are the sums over all partitions, which are asked one after the other.
func (p Partitions) Stats(ctx context.Context) (*Stats, error) {
	sum := &Stats{Kinds: []KindStats{}}
	for _, q := range p {
		s, err := q.Stats(ctx)
		if err != nil {
			return nil, err
		}
		sum.add(s)
	}
	return sum, nil
}

// Close closes all partitions.
func (p Partitions) Close() error {
	var errs []error
	for _, q := range p {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}
