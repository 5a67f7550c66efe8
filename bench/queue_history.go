package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

// A queue whose history this process copies to files, beside one without; and how long it takes to make it again from them.

// ownAtLeast is what is wanted of a number of ours.
func ownAtLeast(bound float64) wish {
	return wish{"≥ " + number(bound, 0), true, func(v float64) bool { return v >= bound }}
}

func historyTest(b *queueBench) *queueTest {
	t := &queueTest{name: "history, copied to files"}
	enqueue := t.rates(t.name+", enqueue in batches of 100", "without one", ratioAtLeast(0.75))
	run := t.rates(t.name+", one worker process", "without one", ratioAtLeast(0.75))
	again := t.row("history, rebuild", "events/s", "", 0, ownAtLeast(200_000))
	t.measure = func(ctx context.Context, reversed bool) error {
		ours, theirs, err := pair(reversed, func() (twice, error) { return b.recorded(ctx) }, func() (twice, error) { return b.unrecorded(ctx) })
		if err != nil {
			return err
		}
		enqueue.add(ours.enqueued, theirs.enqueued)
		run.add(ours.ran, theirs.ran)
		again.alone(ours.eventsPerSecond)
		return nil
	}
	return t
}

// twice is what it took to enqueue, and to run.
type twice struct {
	enqueued, ran   played
	eventsPerSecond float64 // of a rebuild
}

func (b *queueBench) unrecorded(ctx context.Context) (twice, error) {
	if err := b.flush(ctx); err != nil {
		return twice{}, err
	}
	return b.enqueueAndRun(ctx)
}

func (b *queueBench) enqueueAndRun(ctx context.Context) (w twice, err error) {
	task := queueTask{Do: "produce", Kind: signalboxQueue, Count: b.plan.Jobs, Batch: 100}
	if w.enqueued, err = b.play(ctx, task, 1); err == nil {
		task = queueTask{Do: "work", Kind: signalboxQueue, Slots: 100, Count: b.plan.Jobs, Window: 10 * b.plan.Window}
		w.ran, err = b.play(ctx, task, 1)
	}
	return w, err
}

// recorded has it copied meanwhile, and then made again on an empty server.
func (b *queueBench) recorded(ctx context.Context) (w twice, err error) {
	if err := b.flush(ctx); err != nil {
		return w, err
	}
	folder, err := os.MkdirTemp(b.folder, "history")
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	sink, err := files.Open(folder)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	q, err := openSignalboxQueue(b.redis.addr)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := q.Record(ctx, sink, queue.UntilCaughtUp()); err != nil {
		return w, err
	}
	copying, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Record(copying, sink) }()
	w, err = b.enqueueAndRun(ctx)
	stop()
	if err = errors.Join(err, <-ended); err == nil {
		err = q.Record(ctx, sink, queue.UntilCaughtUp())
	}
	if err = errors.Join(err, b.flush(ctx)); err != nil {
		return w, err
	}
	begun := time.Now()
	made, err := q.Rebuild(ctx, sink)
	if err == nil {
		w.eventsPerSecond = float64(made.Events) / time.Since(begun).Seconds()
	}
	return w, err
}
