package files_test

import (
	"fmt"
	"testing"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/historytest"
)

// Entries of 300 bytes.
func benchmarkEntries(from, n int, data []byte) []history.Entry {
	entries := make([]history.Entry, n)
	for i := range entries {
		entries[i] = history.Entry{ID: fmt.Sprintf("%d-0", from+i), Data: data}
	}
	return entries
}

func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{100, 1000} {
		b.Run(fmt.Sprint("batches of ", batch), func(b *testing.B) {
			sink, data, n := open(b, b.TempDir()), make([]byte, 300), 1
			for b.Loop() {
				must(b, sink.Append(b.Context(), historytest.Queue, benchmarkEntries(n, batch, data)))
				n += batch
			}
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	sink, data, read := open(b, b.TempDir()), make([]byte, 300), 0
	for n := range 100 {
		must(b, sink.Append(b.Context(), historytest.Queue, benchmarkEntries(2000*n+1, 2000, data)))
	}
	for b.Loop() {
		for _, err := range sink.Read(b.Context(), "") {
			must(b, err)
			read++
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "entries/s")
}
