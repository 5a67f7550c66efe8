package server

import (
	"runtime"
	"runtime/debug"
	"testing"
)

var garbage []byte

// TestBoundMemory: garbage that the collector would leave for later is collected within the bound, and a limit that was set
// before is set again.
func TestBoundMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	before, limit := readHeap().mapped, debug.SetMemoryLimit(-1)
	const bound, made = 64 << 20, 1 << 30
	end := boundMemory(bound)
	var most int64
	for range made >> 20 {
		garbage = make([]byte, 1<<20)
		most = max(most, readHeap().mapped)
	}
	end()
	if grown := most - before; grown > made/2 { // the collector may be late
		t.Errorf("the process has grown by %d MB", grown>>20)
	}
	if now := debug.SetMemoryLimit(-1); now != limit {
		t.Errorf("the limit is %d, was %d", now, limit)
	}
}

// TestBoundMemoryKeepsAStricterLimit: nobody's own limit is made larger.
func TestBoundMemoryKeepsAStricterLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 29))
	end := boundMemory(1 << 30)
	if now := debug.SetMemoryLimit(-1); now != 1<<29 {
		t.Errorf("the limit is %d", now)
	}
	end()
}
