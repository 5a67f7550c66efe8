package server

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// What was freed goes back to the system, and the process's memory limit is what it was.
func TestGiveBackLeavesNothingButTheLimit(t *testing.T) {
	const bytes, limit = 48 << 20, 1 << 50
	before := debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(before)
	full := makeGarbage(bytes)
	GiveBack(nil)
	now := readHeap()
	if given := full.mapped - now.mapped; given < bytes*3/4 {
		t.Errorf("%d of %d bytes were given back", given, bytes)
	}
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("the memory limit is %d, and was %d", got, limit)
	}
}

// It collects once: what it allocates itself is no reason to do so again, though a small heap may have
// little garbage; else it would every 10 ms, here a dozen times. One more may have been under way, and
// what else the process does may ask for another. The share that was set is there afterwards.
func TestGiveBackCollectsOnce(t *testing.T) {
	const bytes, percent = 256 << 20, 17
	before := debug.SetGCPercent(percent)
	defer debug.SetGCPercent(before)
	makeGarbage(bytes)
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	began := collections()
	GiveBack(nil)
	if n := collections() - began; n < 1 || n > 4 {
		t.Errorf("%d collections, want 1", n)
	}
	if got := debug.SetGCPercent(percent); got != percent {
		t.Errorf("the share of garbage is %d %%, and was %d", got, percent)
	}
}

// Whoever closes the server does not wait for it.
func TestGiveBackEndsWithTheServer(t *testing.T) {
	const bytes = 64 << 20
	makeGarbage(bytes)
	done := make(chan struct{})
	close(done)
	GiveBack(done)
	if now := readHeap(); now.excess() < bytes/2 {
		t.Errorf("all but %d of %d bytes were given back", now.free, bytes)
	}
	GiveBack(nil)
}

// makeGarbage takes so many bytes of the system, and returns what the heap was like when they were
// in use, which they are no longer.
func makeGarbage(bytes int) heap {
	rows := make([][]byte, bytes/4096)
	for i := range rows {
		rows[i] = make([]byte, 4096)
		rows[i][0] = 1
	}
	full := readHeap()
	runtime.KeepAlive(rows)
	return full
}
