package transport_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// trivial answers at once.
type trivial struct{ transport.Transport }

func (trivial) Server(string) string { return "" }

func (trivial) Do(context.Context, transport.Command) (any, error) { return nil, nil }

func (trivial) Pipeline(_ context.Context, commands []transport.Command) []transport.Reply {
	return make([]transport.Reply, len(commands))
}

const (
	nothing = "return redis.call('incr', KEYS[1])"
	acquire = "for i = 1, 14 do redis.call('incr', KEYS[1]) end return 1" // about as much as a transition of the ledger
)

// overRedis returns a transport over a client as its users make one, and a call of a script.
func overRedis(b *testing.B, text string) (transport.Transport, transport.Command) {
	b.Helper()
	client := redis.NewClient(&redis.Options{Addr: difftest.Redis(b).Addr})
	b.Cleanup(func() { client.Close() })
	sha, err := client.ScriptLoad(b.Context(), text).Result()
	if err != nil {
		b.Fatal(err)
	}
	return goredis.New(client), transport.Command{Words: []any{"evalsha", sha, 1, "key"}, Key: 3}
}

// BenchmarkAlone is a caller who finds the lane free.
func BenchmarkAlone(b *testing.B) {
	redis, script := overRedis(b, nothing)
	for name, over := range map[string]transport.Transport{"trivial": trivial{}, "redis": redis} {
		for how, over := range map[string]transport.Transport{"plain": over, "lanes": transport.NewLanes(over)} {
			b.Run(name+"/"+how, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := over.Do(b.Context(), script); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCrowd is 40,000 goroutines with one call each, beside as many calls in pipelines of 500 one after the other. On a
// busy machine the time says little; what both processes used of the processors says more.
func BenchmarkCrowd(b *testing.B) {
	b.Run("nothing", func(b *testing.B) { benchmarkCrowd(b, nothing) })
	b.Run("acquire", func(b *testing.B) { benchmarkCrowd(b, acquire) })
}

func benchmarkCrowd(b *testing.B, text string) {
	const crowd = 40_000
	over, script := overRedis(b, text)
	run := func(name string, once func()) {
		b.Run(name, func(b *testing.B) {
			before, least := cpu(b, over), time.Hour
			for b.Loop() {
				begin := time.Now()
				once()
				least = min(least, time.Since(begin))
			}
			after := cpu(b, over)
			b.ReportMetric(float64(least.Milliseconds()), "least-ms")
			b.ReportMetric((after[0]-before[0])*1000/float64(b.N), "client-cpu-ms")
			b.ReportMetric((after[1]-before[1])*1000/float64(b.N), "server-cpu-ms")
		})
	}
	ask := func(over transport.Transport) {
		if _, err := over.Do(b.Context(), script); err != nil {
			b.Error(err)
		}
	}
	run("goroutines alone", func() { inCrowd(crowd, func() { time.Sleep(10 * time.Millisecond) }) })
	run("pipelines", func() {
		for range crowd / 500 {
			for _, reply := range over.Pipeline(b.Context(), slices.Repeat([]transport.Command{script}, 500)) {
				if reply.Err != nil {
					b.Fatal(reply.Err)
				}
			}
		}
	})
	for _, room := range []int{1, 2, 4, 8, 16} {
		run(fmt.Sprint("lanes of ", room), func() {
			lanes := transport.NewLanesOf(over, room)
			inCrowd(crowd, func() { ask(lanes) })
		})
	}
}

func inCrowd(crowd int, do func()) {
	var all sync.WaitGroup
	for range crowd {
		all.Go(do)
	}
	all.Wait()
}

// cpu returns how many seconds of a processor this process has used, and the server.
func cpu(b *testing.B, over transport.Transport) (seconds [2]float64) {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	seconds[0] = time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
	info, err := over.Do(b.Context(), transport.Command{Words: []any{"info", "cpu"}})
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info.(string)) {
		var used float64
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_sys" || name == "used_cpu_user" {
			if used, err = strconv.ParseFloat(value, 64); err != nil {
				b.Fatal(err)
			}
			seconds[1] += used
		}
	}
	return seconds
}

// BenchmarkHundred is 100 goroutines that call without a pause.
func BenchmarkHundred(b *testing.B) {
	over, script := overRedis(b, nothing)
	run := func(name string, over transport.Transport) {
		b.Run(name, func(b *testing.B) {
			var mu sync.Mutex
			var took []time.Duration
			b.SetParallelism(50)
			b.RunParallel(func(pb *testing.PB) {
				var mine []time.Duration
				for pb.Next() {
					begin := time.Now()
					if _, err := over.Do(b.Context(), script); err != nil {
						b.Error(err)
					}
					mine = append(mine, time.Since(begin))
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, mine...)
			})
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	run("plain", over)
	for _, room := range []int{1, 2, 4, 8, 16} {
		run(fmt.Sprint("lanes of ", room), transport.NewLanesOf(over, room))
	}
}
