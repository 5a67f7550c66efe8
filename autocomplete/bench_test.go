package autocomplete_test

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/autocomplete"
	"github.com/signalbox-io/signalbox/classic"
)

// BenchmarkLookup fills a dictionary on the engine and one on Redis, and the book's guild on Redis, with the same million
// texts, and looks up the first ten for prefixes of 1 to 6 letters, first one asker alone, then eight at once. Each of
// 500 prefixes is also asked for five times, of which the shortest counts: what a lookup costs on a machine that is busy
// with other things. It prints a table. go test ./autocomplete -run '^$' -bench Lookup, or make bench-autocomplete.

var benchEntries = flag.Int("entries", 1_000_000, "how many entries BenchmarkLookup fills a dictionary with")

// contestant is what is measured.
type contestant struct {
	name   string
	open   func(testing.TB) *client
	fill   func(context.Context, *client) error
	lookup func(context.Context, *client, string) error
	// memory is what the data takes, in bytes.
	memory func(testing.TB, *client) uint64
}

// row is a line of the table.
type row struct {
	name             string
	load             time.Duration
	bytes            float64 // for each entry
	p50, p99, p50of8 time.Duration
	p99of8           time.Duration
	p99of5           time.Duration // the best of five
}

func BenchmarkLookup(b *testing.B) {
	var rows []row
	for _, c := range []contestant{
		{"autocomplete, engine", onEngine, fillDictionary, lookupDictionary, heap},
		{"autocomplete, Redis", onRedis, fillDictionary, lookupDictionary, usedMemory},
		{"the book's guild, Redis", onRedis, fillGuild, lookupGuild, usedMemory},
	} {
		b.Run(c.name, func(b *testing.B) { rows = append(rows, measure(b, c)) })
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%d entries, top 10\tload\tbytes/entry\tp50\tp99\tp99, best of 5\tp50 of 8 askers\tp99\n", *benchEntries)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%v\t%.0f\t%v\t%v\t%v\t%v\t%v\n",
			r.name, r.load.Round(100*time.Millisecond), r.bytes, r.p50, r.p99, r.p99of5, r.p50of8, r.p99of8)
	}
	if err := w.Flush(); err != nil {
		b.Error(err)
	}
}

func measure(b *testing.B, c contestant) row {
	client := c.open(b)
	before, begun := c.memory(b, client), time.Now()
	must(b, c.fill(b.Context(), client))
	r := row{name: c.name, load: time.Since(begun)}
	r.bytes = float64(c.memory(b, client)-before) / float64(*benchEntries)

	asker := newAsker(1)
	for range 200 {
		must(b, c.lookup(b.Context(), client, asker.prefix()))
	}
	var took []time.Duration
	for b.Loop() {
		took = append(took, timed(b, c, client, asker.prefix()))
	}
	r.p50, r.p99 = quantiles(took)
	_, r.p99of5 = quantiles(bestOf5(b, c, client, asker))
	r.p50of8, r.p99of8 = quantiles(together(b, c, client))
	b.ReportMetric(float64(r.p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(r.p99.Microseconds()), "p99-µs")
	b.ReportMetric(float64(r.p99of5.Microseconds()), "p99-best-of-5-µs")
	b.ReportMetric(r.bytes, "B/entry")
	return r
}

func bestOf5(b *testing.B, c contestant, client *client, asker *asker) (took []time.Duration) {
	for range 500 {
		prefix := asker.prefix()
		best := timed(b, c, client, prefix)
		for range 4 {
			best = min(best, timed(b, c, client, prefix))
		}
		took = append(took, best)
	}
	return took
}

func timed(b *testing.B, c contestant, client *client, prefix string) time.Duration {
	begun := time.Now()
	if err := c.lookup(b.Context(), client, prefix); err != nil {
		b.Error(err)
	}
	return time.Since(begun)
}

// together is what eight askers at once wait.
func together(b *testing.B, c contestant, client *client) []time.Duration {
	const askers, questions = 8, 500
	var all sync.WaitGroup
	took := make([][]time.Duration, askers)
	for i := range took {
		all.Go(func() {
			asker := newAsker(uint64(i))
			for range questions {
				took[i] = append(took[i], timed(b, c, client, asker.prefix()))
			}
		})
	}
	all.Wait()
	return slices.Concat(took...)
}

func quantiles(took []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(took)
	at := func(q float64) time.Duration {
		return took[int(q*float64(len(took)-1))].Round(time.Microsecond)
	}
	return at(0.5), at(0.99)
}

// benchText is the text of entry n: two words of syllables, some much more frequent than others, as in names, and a
// number that makes it unique.
func benchText(n int) string {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	syllables := strings.Fields("an ma lo ri ka te so be ni ju da el vi or mi sa ha pe go lu fra che zu quo wy xa")
	var b strings.Builder
	for word := range 2 {
		if word > 0 {
			b.WriteByte(' ')
		}
		for range 2 + random.IntN(3) {
			b.WriteString(syllables[int(float64(len(syllables))*random.Float64()*random.Float64())])
		}
	}
	for ; n > 0; n /= 26 {
		b.WriteByte(byte('a' + n%26))
	}
	return b.String()
}

// asker asks for the entries that people want: by Zipf, of each 1 to 6 letters.
type asker struct {
	random *rand.Rand
	entry  *rand.Zipf
}

func newAsker(seed uint64) *asker {
	random := rand.New(rand.NewPCG(seed, 8))
	return &asker{random, rand.NewZipf(random, 1.1, 50, uint64(*benchEntries-1))}
}

func (a *asker) prefix() string { return benchText(int(a.entry.Uint64()))[:1+a.random.IntN(6)] }

func benchEntriesSeq() iter.Seq[autocomplete.Entry] {
	random := rand.New(rand.NewPCG(3, 4))
	return func(yield func(autocomplete.Entry) bool) {
		for n := range *benchEntries {
			if !yield(autocomplete.Entry{ID: strconv.Itoa(n), Text: benchText(n), Weight: random.ExpFloat64() * 1000}) {
				return
			}
		}
	}
}

func fillDictionary(ctx context.Context, c *client) error {
	_, err := autocomplete.New(c, "bench").Load(ctx, benchEntriesSeq(), nil)
	return err
}

func lookupDictionary(ctx context.Context, c *client, prefix string) error {
	_, err := autocomplete.New(c, "bench").Lookup(ctx, prefix, 10)
	return err
}

func fillGuild(ctx context.Context, c *client) error {
	for n := 0; n < *benchEntries; n += 512 {
		members := make([]redis.Z, 0, 512)
		for i := n; i < min(n+512, *benchEntries); i++ {
			members = append(members, redis.Z{Member: benchText(i)})
		}
		if err := c.ZAdd(ctx, "members:bench", members...).Err(); err != nil {
			return err
		}
	}
	return nil
}

func lookupGuild(ctx context.Context, c *client, prefix string) error {
	_, err := classic.Guild{Client: classic.Client{Redis: c}, Name: "bench"}.Complete(ctx, prefix)
	return err
}

func heap(testing.TB, *client) uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func usedMemory(t testing.TB, c *client) uint64 {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "memory").Result()
	must(t, err)
	used, err := strconv.ParseUint(info["Memory"]["used_memory"], 10, 64)
	must(t, err)
	return used
}
