package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// What children of the subcommand queue do. A child opens its queue, says that it is ready, does its task when it is told to,
// and says what it found.

// queueTask is what a child is to do.
type queueTask struct {
	Do, Kind, Addr string
	Count          int // of jobs; when as many have run or are enqueued it is over,
	Window         time.Duration
	Batch, Keys    int
	Goroutines     int // that enqueue
	Slots, Workers int
	Due            int64 // when jobs are, ms; 0: at once. Of Signalbox
}

// queueFound is what it found.
type queueFound struct {
	Jobs            int
	Seconds         float64 // from the first job to the last, or of all enqueues
	Begun, Ended    int64   // ns
	Latencies, Ping []float64
	CPU             time.Duration
	Fault           string
}

var queueTasks = map[string]func(ctx context.Context, q queuer, t *queueTask) (queueFound, error){
	"produce": produceTask,
	"work":    workTask,
	"begin":   beginTask,
	"idle":    idleTask,
	"claims":  claimsTask,
	"commit":  commitTask,
	"log in":  loginTask,
	"talk":    talkTask,
}

func queueRole(ctx context.Context, config []byte) (err error) {
	var t queueTask
	if err := decode(config, &t); err != nil {
		return err
	}
	q, err := openQueuer(ctx, t.Kind, t.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	var word string
	if err := errors.Join(say("ready"), listen(&word)); err != nil {
		return err
	}
	used := ownCPU()
	found, err := queueTasks[t.Do](ctx, q, &t)
	found.CPU = ownCPU() - used
	if err != nil {
		found.Fault = err.Error()
	}
	return say(found)
}

// produceTask enqueues as many jobs as it is told to, or as it can in a window.
func produceTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	if ours, ok := q.(*signalboxQueuer); ok && t.Due > 0 {
		ours.due = time.UnixMilli(t.Due)
	}
	var next, done atomic.Int64
	begun := time.Now()
	err = severally(max(t.Goroutines, 1), func(int) error {
		for t.Window == 0 || time.Since(begun) < t.Window {
			from := int(next.Add(int64(t.Batch))) - t.Batch
			n := t.Batch
			if t.Count > 0 {
				n = min(n, t.Count-from)
			}
			if n <= 0 {
				return nil
			}
			if err := q.enqueue(ctx, from, n, t.Keys); err != nil {
				return err
			}
			done.Add(int64(n))
		}
		return nil
	})
	return queueFound{Jobs: int(done.Load()), Seconds: time.Since(begun).Seconds()}, err
}

// workTask runs jobs until so many have run, or the window is over.
func workTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.Window)
	defer cancel()
	var ran, first, last atomic.Int64
	err = q.work(ctx, t.Slots, func() {
		if ctx.Err() != nil {
			return // it drains
		}
		now := time.Now().UnixNano()
		first.CompareAndSwap(0, now)
		last.Store(now)
		if ran.Add(1) == int64(t.Count) {
			cancel()
		}
	})
	found = queueFound{Jobs: int(ran.Load()), Begun: first.Load(), Ended: last.Load()}
	found.Seconds = float64(found.Ended-found.Begun) / 1e9
	return found, err
}

// beginTask measures from an enqueue to the begin of the job, on a worker that is idle. Producer and worker have a client each.
// Between the jobs it measures the round trip of a PING.
func beginTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	producer, err := openQueuer(ctx, t.Kind, t.Addr)
	if err != nil {
		return found, err
	}
	defer shut(producer)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun, ended := make(chan time.Time, 1), make(chan error, 1)
	go func() { ended <- q.work(ctx, 10, func() { begun <- time.Now() }) }()
	var client *signalboxQueuer
	if client, err = openSignalboxQueue(t.Addr); t.Kind != riverQueue && err != nil {
		return found, err
	}
	defer shut(client)
	for i := range t.Count + 3 {
		if i > 0 {
			time.Sleep(2 * time.Millisecond) // until the worker has said that it is idle again
		}
		for range 3 {
			sent := time.Now()
			if err := client.client.Ping(ctx).Err(); err != nil {
				return found, err
			}
			found.Ping = append(found.Ping, time.Since(sent).Seconds()*1e3)
		}
		sent := time.Now()
		if err := producer.enqueue(ctx, i, 1, 0); err != nil {
			return found, err
		}
		select {
		case at := <-begun:
			if i >= 3 { // by then all know each other
				found.Latencies = append(found.Latencies, at.Sub(sent).Seconds()*1e3)
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

// idleTask has workers that find nothing to do, until the window is over.
func idleTask(ctx context.Context, q queuer, t *queueTask) (queueFound, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Window)
	defer cancel()
	return queueFound{}, severally(t.Workers, func(int) error { return q.work(ctx, 10, func() {}) })
}

// claimsTask notes how long a worker's calls take that claim, once for each 1,000 jobs that it enqueues and works off.
func claimsTask(ctx context.Context, q queuer, t *queueTask) (found queueFound, err error) {
	ours := q.(*signalboxQueuer)
	for range t.Count {
		if err := ours.enqueue(ctx, 0, 500, 0); err != nil {
			return found, err
		}
		if err := ours.enqueue(ctx, 0, 500, 0); err != nil {
			return found, err
		}
		client := backend{Addr: t.Addr}.client()
		watch := &stopwatch{}
		client.AddHook(watch)
		worker, err := queue.New(client, "bench")
		if err != nil {
			return found, err
		}
		one := &signalboxQueuer{client: client, Queue: worker}
		_, err = workTask(ctx, one, &queueTask{Count: 1000, Slots: 50, Window: 20 * time.Second})
		if err := errors.Join(err, one.Close()); err != nil {
			return found, err
		}
		found.Latencies = append(found.Latencies, watch.ms[min(2, len(watch.ms)):]...) // the first calls claim nothing
	}
	slices.Sort(found.Latencies)
	return found, nil
}
