package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
)

// The children of the part load. Each is a process that says when it is ready, is told to go, and says what came of it.

const (
	// manyPatience is how long the goroutines of a Box have together. What is not done by then has failed.
	manyPatience = 30 * time.Second
	// manyBatch is how many requests the reference sends at once, as many as the library puts in a pipeline.
	manyBatch = 500
	// unrelatedTTL is that of a lease which is held beside them, and must not be lost.
	unrelatedTTL  = 3 * time.Second
	unrelatedName = "unrelated"
)

type manyConfig struct {
	Addr             string
	Number           int
	Acquire, Release []string // of the role pipelined, with marks as in cyclesConfig
	Together         int      // pipelines at the same time
}

// manyResult is what all of them found together.
type manyResult struct {
	Took         time.Duration
	Done, Failed int
	Fault        string        // the first failure
	Latest       time.Duration // by which a renewal of the unrelated lease came after it was due
	Lost         bool          // the unrelated lease
	CloseTook    time.Duration
	CloseFault   string
}

// ready says so, and returns when it is time to begin.
func ready() error {
	if err := say("ready"); err != nil {
		return err
	}
	var word string
	return listen(&word)
}

// manyRole has each goroutine of one Box acquire and release a mutex of its own, once.
func manyRole(ctx context.Context, config []byte) error {
	var c manyConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	renewals := &renewals{}
	box, err := signalbox.Open(ctx, "redis://"+c.Addr, signalbox.Observe(renewals.observe))
	if err != nil {
		return err
	}
	unrelated, err := box.Mutex(unrelatedName).Acquire(ctx, signalbox.TTL(unrelatedTTL))
	if err != nil {
		return err
	}
	// From here on the server knows the scripts.
	if err := box.Mutex("first").Do(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	result := cycleOnce(ctx, box, c.Number)
	result.Latest, result.Lost = renewals.latest(time.Now()), unrelated.Err() != nil
	begin := time.Now()
	if err := box.Close(); err != nil {
		result.CloseFault = err.Error()
	}
	result.CloseTook = time.Since(begin)
	return say(result)
}

func cycleOnce(ctx context.Context, box *signalbox.Box, n int) manyResult {
	var result manyResult
	var done atomic.Int64
	var fault sync.Once
	var all sync.WaitGroup
	begin := time.Now()
	ctx, cancel := context.WithDeadline(ctx, begin.Add(manyPatience))
	defer cancel()
	for i := range n {
		all.Go(func() {
			lease, err := box.Mutex(fmt.Sprintf("own:%d", i)).Acquire(ctx)
			if err == nil {
				err = lease.Release(ctx)
			}
			if err != nil {
				fault.Do(func() { result.Fault = err.Error() })
				return
			}
			done.Add(1)
		})
	}
	all.Wait()
	result.Took, result.Done = time.Since(begin), int(done.Load())
	result.Failed = n - result.Done
	return result
}

// renewals notes how late those of the unrelated lease are.
type renewals struct {
	mu   sync.Mutex
	last time.Time // when the lease was granted or renewed
	late time.Duration
}

func (r *renewals) observe(o signalbox.Observation) {
	if o.Resource != unrelatedName || (o.What != signalbox.Granted && o.What != signalbox.Renewed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.late = o.At, max(r.late, o.Lag)
}

// latest counts one that is due and has not come, too.
func (r *renewals) latest(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.late, now.Sub(r.last)-unrelatedTTL/3)
}

// pipelinedRole is the reference: a plain client sends the same scripts as often, in pipelines, and nothing else.
func pipelinedRole(ctx context.Context, config []byte) (err error) {
	var c manyConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	client := backend{Addr: c.Addr}.client()
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := ready(); err != nil {
		return err
	}
	begin := time.Now()
	errs := make([]error, c.Together)
	var all sync.WaitGroup
	for lane := range c.Together {
		all.Go(func() {
			for first := lane * manyBatch; first < c.Number && errs[lane] == nil; first += c.Together * manyBatch {
				last := min(first+manyBatch, c.Number)
				errs[lane] = pipeline(ctx, client, c.Acquire, first, last)
				errs[lane] = errors.Join(errs[lane], pipeline(ctx, client, c.Release, first, last))
			}
		})
	}
	all.Wait()
	result := manyResult{Took: time.Since(begin), Done: c.Number}
	return errors.Join(errors.Join(errs...), say(result))
}

// pipeline sends a request once for each number from first to before last.
func pipeline(ctx context.Context, client *redis.Client, request []string, first, last int) error {
	pipe := client.Pipeline()
	for i := first; i < last; i++ {
		args := make([]any, len(request))
		for k, arg := range request {
			args[k] = strings.ReplaceAll(arg, connectionMark, fmt.Sprint(i))
		}
		pipe.Do(ctx, args...)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// holders is how many goroutines acquire what is held when a Box closes.
const holders = 100

// holdingRole closes a Box that holds many leases.
func holdingRole(ctx context.Context, config []byte) error {
	var c manyConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	box, err := signalbox.Open(ctx, "redis://"+c.Addr)
	if err != nil {
		return err
	}
	errs := make([]error, holders)
	var all sync.WaitGroup
	for worker := range holders {
		all.Go(func() {
			for i := worker; i < c.Number && errs[worker] == nil; i += holders {
				errs[worker] = acquireAnyway(ctx, box.Mutex(fmt.Sprintf("held:%d", i)))
			}
		})
	}
	all.Wait()
	if err := errors.Join(errors.Join(errs...), ready()); err != nil {
		return err
	}
	var result manyResult
	begin := time.Now()
	if err := box.Close(); err != nil {
		result.CloseFault = err.Error()
	}
	result.CloseTook = time.Since(begin)
	return say(result)
}

// acquireAnyway asks again when the server has too much to do: what is measured comes later.
func acquireAnyway(ctx context.Context, mutex *signalbox.Mutex) error {
	for {
		if _, err := mutex.Acquire(ctx); !errors.Is(err, signalbox.ErrUnavailable) {
			return err
		}
	}
}
