package embedded_test

import (
	"testing"

	"github.com/signalbox-io/signalbox/embedded"
)

// BenchmarkAcquireRelease is the uncontended cycle with no network between.
func BenchmarkAcquireRelease(b *testing.B) {
	box, err := embedded.Open("")
	if err != nil {
		b.Fatal(err)
	}
	defer box.Close()
	mutex := box.Mutex("m")
	b.ReportAllocs()
	for b.Loop() {
		lease, err := mutex.Acquire(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
