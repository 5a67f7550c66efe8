package queue_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/queue"
	"github.com/signalbox-io/signalbox/queue/history/files"
)

// BenchmarkDrain enqueues jobs that do nothing, in batches of 100 from one producer, and has one worker of 100 slots run
// them. It reports both rates, calls a job and the server's CPU time a job.
func BenchmarkDrain(b *testing.B) {
	for _, c := range []struct {
		name    string
		keys    int
		history bool
	}{{"plain", 0, false}, {"with a history", 0, true}, {"1000 keys limited to 2", 1000, false}} {
		b.Run(c.name, func(b *testing.B) {
			server := difftest.Redis(b)
			client := redis.NewClient(&redis.Options{
				Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			defer client.Close()
			q, err := queue.New(client, "bench")
			must(b, err)
			defer q.Close()
			if c.keys > 0 {
				must(b, q.Configure(b.Context(), queue.Limit(queue.EachKey, 2)))
			}
			ctx := b.Context()
			if c.history {
				defer copying(b, q, b.TempDir())()
			}
			begun := time.Now()
			before := cpuOf(b, client)
			for i := 0; i < b.N; i += 100 {
				var requests []queue.Request
				for j := i; j < min(i+100, b.N); j++ {
					if c.keys > 0 {
						requests = append(requests, note.With("", queue.Key(strconv.Itoa(j%c.keys))))
					} else {
						requests = append(requests, note.With(""))
					}
				}
				_, err := q.EnqueueMany(ctx, requests...)
				must(b, err)
			}
			enqueued := time.Since(begun)
			b.ReportMetric(float64(b.N)/enqueued.Seconds(), "enqueued/s")
			middle, called := cpuOf(b, client), callsOf(b, client)
			b.ReportMetric(float64((middle-before).Microseconds())/float64(b.N), "server-µs/enqueue")
			b.ReportMetric(usedMemory(b, client)/float64(b.N), "bytes/job")
			var ran atomic.Int64
			all := make(chan struct{})
			w := q.Worker("w", queue.Slots(100))
			note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
				if ran.Add(1) == int64(b.N) {
					close(all)
				}
				return queue.None{}, nil
			})
			run, stop := context.WithCancel(ctx)
			ended := make(chan error)
			begun = time.Now()
			go func() { ended <- w.Run(run) }()
			<-all
			b.ReportMetric(float64(b.N)/time.Since(begun).Seconds(), "drained/s")
			stop()
			must(b, <-ended)
			b.ReportMetric(float64((cpuOf(b, client)-middle).Microseconds())/float64(b.N), "server-µs/job")
			b.ReportMetric((callsOf(b, client)-called)/float64(b.N), "calls/job")
		})
	}
}

// BenchmarkEnqueue has goroutines enqueue one job at a time, of one process: they share calls.
func BenchmarkEnqueue(b *testing.B) {
	for _, goroutines := range []int{1, 10} {
		b.Run(fmt.Sprint(goroutines, " goroutines"), func(b *testing.B) {
			client := redis.NewClient(&redis.Options{
				Addr: difftest.Redis(b).Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			defer client.Close()
			q, err := queue.New(client, "bench")
			must(b, err)
			defer q.Close()
			before, called := cpuOf(b, client), callsOf(b, client)
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range goroutines {
				all.Go(func() {
					for range (b.N + i) / goroutines {
						if _, err := note.Enqueue(b.Context(), q, ""); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64((cpuOf(b, client)-before).Microseconds())/float64(b.N), "server-µs/job")
			b.ReportMetric((callsOf(b, client)-called)/float64(b.N), "calls/job")
		})
	}
}

// copying copies a history to files until it is stopped.
func copying(b *testing.B, q *queue.Queue, folder string) (stop func()) {
	sink, err := files.Open(folder)
	must(b, err)
	must(b, q.Record(b.Context(), sink, queue.UntilCaughtUp()))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- q.Record(ctx, sink) }()
	return func() {
		cancel()
		must(b, <-ended)
		must(b, q.Record(b.Context(), sink, queue.UntilCaughtUp()))
		must(b, sink.Close())
	}
}

// BenchmarkRebuild makes a queue again of whose jobs two thirds are done.
func BenchmarkRebuild(b *testing.B) {
	const jobs = 120_000
	client := redis.NewClient(&redis.Options{
		Addr: difftest.Redis(b).Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()
	q, err := queue.New(client, "bench")
	must(b, err)
	defer q.Close()
	folder := b.TempDir()
	stop := copying(b, q, folder)
	for range jobs / 100 {
		requests := make([]queue.Request, 100)
		for i := range requests {
			requests[i] = note.With("something to say")
		}
		_, err := q.EnqueueMany(b.Context(), requests...)
		must(b, err)
	}
	var ran atomic.Int64
	enough := make(chan struct{})
	w := q.Worker("w", queue.Slots(100))
	note.Handle(w, func(context.Context, *queue.Job[string]) (queue.None, error) {
		if ran.Add(1) == jobs*2/3 {
			close(enough)
		}
		return queue.None{}, nil
	})
	run, end := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(run) }()
	<-enough
	end()
	must(b, <-ended)
	stop()
	var made *queue.Rebuilt
	for b.Loop() {
		must(b, client.FlushAll(b.Context()).Err())
		sink, err := files.Open(folder, files.ReadOnly())
		must(b, err)
		made, err = q.Rebuild(b.Context(), sink)
		must(b, err)
		must(b, sink.Close())
	}
	seconds := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(float64(made.Events)/seconds, "events/s")
	b.ReportMetric(float64(made.Entries)/seconds, "entries/s")
	b.ReportMetric(float64(made.Jobs)/seconds, "jobs/s")
}

func usedMemory(b *testing.B, client *redis.Client) float64 {
	return infoField(b, client, "memory", "used_memory_dataset:")
}

// callsOf is how many scripts clients have called.
func callsOf(b *testing.B, client *redis.Client) float64 {
	return infoField(b, client, "commandstats", "cmdstat_evalsha:calls=")
}

func infoField(b *testing.B, client *redis.Client, section, field string) float64 {
	text := client.Info(b.Context(), section).Val()
	_, rest, _ := strings.Cut(text, field)
	value, _, _ := strings.Cut(rest, "\r\n")
	value, _, _ = strings.Cut(value, ",")
	n, err := strconv.ParseFloat(cmp.Or(value, "0"), 64)
	must(b, err)
	return n
}

// cpuOf is the CPU time that a server has used.
func cpuOf(b *testing.B, client *redis.Client) time.Duration {
	pid := int(infoField(b, client, "server", "process_id:"))
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(f[11])
	must(b, err)
	system, err := strconv.Atoi(f[12])
	must(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}
