package ds

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
)

// The benchmarks work on containers of a million elements. Those named Fill also report
// the live bytes that the container holds for each element, its strings not included:
// they are made before.

const benchLen = 1_000_000

func benchKeys(b *testing.B) []string {
	b.Helper()
	keys := make([]string, benchLen)
	for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(benchLen) {
		keys[i] = "key:" + strconv.Itoa(n)
	}
	return keys
}

func liveBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// benchFill measures filling an empty container with benchLen elements.
func benchFill(b *testing.B, fill func(keys []string) any) {
	b.Helper()
	keys := benchKeys(b)
	var bytes uint64
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		before := liveBytes()
		b.StartTimer()
		filled := fill(keys)
		b.StopTimer()
		bytes = liveBytes() - before
		runtime.KeepAlive(filled)
		b.StartTimer()
	}
	b.ReportMetric(float64(bytes)/benchLen, "bytes/element")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchLen, "ns/element")
	runtime.KeepAlive(keys)
}

func fillDict(keys []string) *Dict[*int] {
	d := NewDict[*int]()
	for _, key := range keys {
		d.Set(key, nil)
	}
	return d
}

func BenchmarkDictFill(b *testing.B) {
	benchFill(b, func(keys []string) any { return fillDict(keys) })
}

func BenchmarkGoMapFill(b *testing.B) { // to compare with
	benchFill(b, func(keys []string) any {
		m := map[string]*int{}
		for _, key := range keys {
			m[key] = nil
		}
		return m
	})
}

func BenchmarkDictGet(b *testing.B) {
	keys := benchKeys(b)
	d := fillDict(keys)
	key := make([]byte, 0, 32)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		key = append(key[:0], keys[i%benchLen]...)
		d.Get(key)
	}
}

func BenchmarkDictDeleteAndSet(b *testing.B) {
	keys := benchKeys(b)
	d := fillDict(keys)
	b.ResetTimer()
	for i := range b.N {
		d.DeleteString(keys[i%benchLen])
		d.Set(keys[i%benchLen], nil)
	}
}

func BenchmarkDictRandom(b *testing.B) {
	d := fillDict(benchKeys(b))
	r := rand.New(rand.NewPCG(1, 2))
	b.ResetTimer()
	for range b.N {
		d.Random(r)
	}
}

func BenchmarkDictScan(b *testing.B) {
	d := fillDict(benchKeys(b))
	cursor := uint64(0)
	b.ResetTimer()
	for range b.N {
		cursor = d.Scan(cursor, func(string, *int) {})
	}
}

func BenchmarkSetFill(b *testing.B) {
	benchFill(b, func(keys []string) any {
		s := NewSet()
		s.Add([]byte("x"))
		for _, key := range keys {
			s.Add([]byte(key))
		}
		return s
	})
}

func BenchmarkHashFill(b *testing.B) {
	benchFill(b, func(keys []string) any {
		h := NewHash()
		for _, key := range keys {
			h.Set([]byte(key), []byte(key))
		}
		return h
	})
}

func BenchmarkDequeFill(b *testing.B) {
	benchFill(b, func(keys []string) any {
		d := NewDeque()
		for _, key := range keys {
			d.PushBack(key)
		}
		return d
	})
}

func benchDeque(keys []string) *Deque {
	d := NewDeque()
	for _, key := range keys {
		d.PushFront(key)
	}
	return d
}

func BenchmarkDequePushPop(b *testing.B) {
	d := benchDeque(benchKeys(b))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s, _ := d.PopBack()
		d.PushFront(s)
	}
}

func BenchmarkDequeMiddle(b *testing.B) {
	d := benchDeque(benchKeys(b))
	r := rand.New(rand.NewPCG(1, 2))
	b.ResetTimer()
	for range b.N {
		d.InsertAt(r.IntN(d.Len()), "x")
		d.RemoveAt(r.IntN(d.Len()))
	}
}

func fillSortedSet(keys []string, scores []float64) *SortedSet {
	z := NewSortedSet()
	for i, key := range keys {
		z.Add(key, scores[i])
	}
	return z
}

// benchScores are random, or ascending as times are.
func benchScores(random bool) []float64 {
	scores := make([]float64, benchLen)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range scores {
		scores[i] = float64(i)
		if random {
			scores[i] = r.Float64()
		}
	}
	return scores
}

func BenchmarkSortedSetFillRandom(b *testing.B) {
	scores := benchScores(true)
	benchFill(b, func(keys []string) any { return fillSortedSet(keys, scores) })
}

func BenchmarkSortedSetFillAscending(b *testing.B) {
	scores := benchScores(false)
	benchFill(b, func(keys []string) any { return fillSortedSet(keys, scores) })
}

func benchSortedSet(b *testing.B, work func(z *SortedSet, keys []string, i int)) {
	b.Helper()
	keys := benchKeys(b)
	z := fillSortedSet(keys, benchScores(true))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		work(z, keys, i%benchLen)
	}
}

func BenchmarkSortedSetRemoveAndAdd(b *testing.B) {
	benchSortedSet(b, func(z *SortedSet, keys []string, i int) {
		z.RemoveString(keys[i])
		z.Add(keys[i], float64(i)/benchLen)
	})
}

func BenchmarkSortedSetMove(b *testing.B) {
	benchSortedSet(b, func(z *SortedSet, keys []string, i int) {
		score, _ := z.ScoreString(keys[i])
		z.Add(keys[i], 1-score)
	})
}

func BenchmarkSortedSetRank(b *testing.B) {
	benchSortedSet(b, func(z *SortedSet, keys []string, i int) { z.Rank([]byte(keys[i])) })
}

func BenchmarkSortedSetAt(b *testing.B) {
	benchSortedSet(b, func(z *SortedSet, _ []string, i int) { z.At((i * 7919) % benchLen) })
}

func BenchmarkSortedSetPopMinAndAdd(b *testing.B) {
	benchSortedSet(b, func(z *SortedSet, _ []string, i int) {
		member, _ := z.At(0)
		z.RemoveRange(0, 0)
		z.Add(member, float64(i))
	})
}
