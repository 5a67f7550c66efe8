package signalbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

func openBox(tb testing.TB, addr string, options ...signalbox.Option) *signalbox.Box {
	tb.Helper()
	box, err := signalbox.Open(context.Background(), "redis://"+addr, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := box.Close(); err != nil {
			tb.Error(err)
		}
	})
	return box
}

// BenchmarkUncontended puts acquire and release beside what they can cost at best: two scripts that do nothing.
func BenchmarkUncontended(b *testing.B) {
	server := difftest.Redis(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.Run("mutex", func(b *testing.B) {
		mutex := openBox(b, server.Addr).Mutex("bench")
		for b.Loop() {
			lease, err := mutex.Acquire(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if err := lease.Release(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("two bare EVALSHA", func(b *testing.B) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
		defer client.Close()
		digest, err := client.ScriptLoad(ctx, "return 1").Result()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for range 2 {
				if err := client.EvalSha(ctx, digest, []string{"bench"}).Err(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// counter counts the commands a client sends.
type counter struct{ n atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// BenchmarkContended has N clients, each with its own connections, take turns on one mutex. An operation is one turn.
func BenchmarkContended(b *testing.B) {
	for _, n := range []int{2, 10, 20} {
		for _, hold := range []time.Duration{0, time.Millisecond} {
			b.Run(fmt.Sprintf("clients=%d/hold=%v", n, hold), func(b *testing.B) { contend(b, n, hold) })
		}
	}
}

func contend(b *testing.B, n int, hold time.Duration) {
	server := difftest.Redis(b)
	var sent counter
	boxes := make([]*signalbox.Box, n)
	for i := range boxes {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
		client.AddHook(&sent)
		boxes[i] = signalbox.New(client)
		defer client.Close()
		defer boxes[i].Close()
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	turns, waits := make([]int, n), make([]time.Duration, n)
	var workers sync.WaitGroup
	b.ResetTimer()
	for i, box := range boxes {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				begin := time.Now()
				lease, err := box.Mutex("bench").Acquire(context.Background())
				if err != nil {
					b.Error(err)
					return
				}
				waits[i] = max(waits[i], time.Since(begin))
				if hold > 0 {
					time.Sleep(hold)
				}
				if err := lease.Release(context.Background()); err != nil {
					b.Error(err)
				}
				turns[i]++
			}
		})
	}
	workers.Wait()
	b.StopTimer()
	least, most, longest := turns[0], turns[0], waits[0]
	for i := range turns {
		least, most, longest = min(least, turns[i]), max(most, turns[i]), max(longest, waits[i])
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-wait")
	b.ReportMetric(float64(most)/float64(max(least, 1)), "max/min")
	b.ReportMetric(float64(sent.n.Load())/float64(b.N), "commands/turn")
}

// BenchmarkLocalHandoff has 100 goroutines of one Box take turns on one mutex, up to 100 of them on one lease.
func BenchmarkLocalHandoff(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(b).Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	box := signalbox.New(client)
	defer box.Close()
	var left atomic.Int64
	left.Store(int64(b.N))
	var workers sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range 100 {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				lease, err := box.Mutex("bench").Acquire(context.Background(), signalbox.LocalHandoff(100))
				if err != nil {
					b.Error(err)
					return
				}
				if err := lease.Release(context.Background()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	workers.Wait()
}
