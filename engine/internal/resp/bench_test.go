package resp

import (
	"fmt"
	"strings"
	"testing"
)

// pipelined is a stream of n small writes.
func pipelined(n int) []byte {
	var stream []byte
	for i := range n {
		stream = AppendCommand(stream, "SET", fmt.Sprintf("key:%06d", i), "xxxxxxxxxxxxxxxx")
	}
	return stream
}

// benchmarkRequests reports the time of a whole stream of n requests.
func benchmarkRequests(b *testing.B, stream []byte, n int) {
	r := Requests{Trusted: true}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		seen := 0
		for left := stream; len(left) > 0; {
			n := copy(r.Space(), left)
			r.Advance(n)
			left = left[n:]
			for {
				_, ok, err := r.Next()
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					break
				}
				seen++
			}
		}
		if seen != n {
			b.Fatalf("%d requests", seen)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/request")
}

func BenchmarkRequestsSingle(b *testing.B)        { benchmarkRequests(b, pipelined(1), 1) }
func BenchmarkRequestsPipelined100(b *testing.B)  { benchmarkRequests(b, pipelined(100), 100) }
func BenchmarkRequestsPipelined5000(b *testing.B) { benchmarkRequests(b, pipelined(5000), 5000) }

func BenchmarkRequestsInline(b *testing.B) {
	benchmarkRequests(b, []byte(strings.Repeat("SET key \"some value\"\r\n", 100)), 100)
}

func BenchmarkRequestsLargeValue(b *testing.B) {
	benchmarkRequests(b, AppendCommand(nil, "SET", "k", strings.Repeat("x", 1<<20)), 1)
}

func BenchmarkWriter(b *testing.B) {
	var w Writer
	value := []byte("xxxxxxxxxxxxxxxx")
	b.ReportAllocs()
	for b.Loop() {
		w.Reset()
		w.SimpleString("OK")
		w.Int(123456)
		w.Array(2)
		w.Bulk(value)
		w.BulkInt(-42)
		w.Double(3)
		w.Null()
	}
}

func BenchmarkAppendDouble(b *testing.B) {
	for name, f := range map[string]float64{"whole": 1700000000000, "fraction": 0.1} {
		b.Run(name, func(b *testing.B) {
			var buf [32]byte
			b.ReportAllocs()
			for b.Loop() {
				AppendDouble(buf[:0], f)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	var w Writer
	w.Array(10)
	for range 10 {
		w.BulkString("some element")
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(w.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
