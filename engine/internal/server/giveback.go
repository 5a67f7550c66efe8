package server

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Giving memory back to the system. debug.FreeOSMemory does all of it at once, and where there is
// one processor nobody is served meanwhile: 10 ms for 100 MB, after a collection that takes one.
// The runtime has no call that gives back a part. But it keeps a memory limit: whoever allocates
// above it first gives back as much as is too much. So the limit is put a little below what the
// process has, something is allocated, and the limit is put back to what it was; then others
// have their turn.
//
// Rejected: to leave it to the runtime's own scavenger (it keeps what the next collection allows
// for, which is as much as there is data); a second GOMAXPROCS for that long (the system shares
// the processor in turns of 4 to 8 ms); to do it in a thread of the lowest priority (that may
// hold the runtime's locks when others want them).

const (
	partBytes  = 2 << 20 // given back in one go: a quarter of a millisecond
	partRest   = 2 * time.Millisecond
	spareBytes = 4 << 20 // not worth it, and room for what is allocated next
	spareShare = 16      // or this part of what is in use: a limit closer to it would make Go collect
	mostFutile = 3       // parts of which nothing was given back: it is needed, or the runtime is too busy
	// meanwhilePercent of garbage are allowed while memory is given back, and no less than 4 times 4 MB.
	meanwhilePercent = 400

	probeBytes = 80 << 10 // too large for a stack, or for a span with others
)

// givingBack says that somebody is at it. The limit is the whole process's, and so is this.
var givingBack atomic.Bool

// GiveBack collects garbage, and gives what is free then back to the system, or as much of it as
// is still free when its turn comes. It ends early when done is closed. It is not in a hurry:
// 100 MB take 100 ms.
func GiveBack(done <-chan struct{}) {
	runtime.GC()
	if !givingBack.CompareAndSwap(false, true) {
		return // one for all
	}
	defer givingBack.Store(false)
	defer collectLess()()
	futile := 0
	for left := readHeap().excess(); left > 0 && futile < mostFutile; left -= partBytes {
		before := readHeap()
		before.giveBack(min(partBytes, before.excess()))
		if futile++; readHeap().mapped < before.mapped {
			futile = 0
		}
		select {
		case <-time.After(partRest):
		case <-done:
			return
		}
	}
}

// collectLess keeps the collector from running again for what giving back allocates: until the
// share of garbage is adjusted to what is left, it is small for a heap that is small now, and
// there was a collection every 10 ms, each of which held others up for 2. What it returns puts the
// share back, unless somebody else has set it meanwhile.
func collectLess() (restore func()) {
	before := debug.SetGCPercent(meanwhilePercent)
	if before < 0 || before > meanwhilePercent {
		debug.SetGCPercent(before)
		return func() {}
	}
	return func() {
		if meanwhile := debug.SetGCPercent(before); meanwhile != meanwhilePercent {
			debug.SetGCPercent(meanwhile)
		}
	}
}

// boundMemory has the collector keep the process's memory within so many bytes more, until end
// is called: by itself it would let as much garbage gather as there is data. It may take half of
// the processor's time for that, no more, and so the bound is none for what is in use.
func boundMemory(moreBytes int64) (end func()) {
	if !givingBack.CompareAndSwap(false, true) {
		return func() {}
	}
	limit, before := readHeap().mapped+moreBytes+moreBytes/4, debug.SetMemoryLimit(-1)
	if before <= limit {
		givingBack.Store(false)
		return func() {}
	}
	debug.SetMemoryLimit(limit)
	return func() {
		if meanwhile := debug.SetMemoryLimit(before); meanwhile != limit {
			debug.SetMemoryLimit(meanwhile)
		}
		givingBack.Store(false)
	}
}

// heap is the runtime's memory, in bytes.
type heap struct {
	free, used int64 // of the heap: not in use and not given back; in use
	mapped     int64 // of all that the memory limit counts
}

func readHeap() heap {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sample)
	value := func(i int) int64 { return int64(sample[i].Value.Uint64()) }
	return heap{value(0), value(1), value(2) - value(3)}
}

// excess is how much is free beyond what is better kept.
func (h heap) excess() int64 { return h.free - max(spareBytes, h.used/spareShare) }

// giveBack gives n bytes back at once. A limit that somebody else sets meanwhile stays.
func (h heap) giveBack(n int64) {
	limit := h.mapped - n
	before := debug.SetMemoryLimit(-1)
	if n <= 0 || before <= limit {
		return // the process has less than it may have: the runtime sees to it
	}
	debug.SetMemoryLimit(limit)
	probe := make([]byte, probeBytes)
	if meanwhile := debug.SetMemoryLimit(before); meanwhile != limit {
		debug.SetMemoryLimit(meanwhile)
	}
	runtime.KeepAlive(&probe)
}
