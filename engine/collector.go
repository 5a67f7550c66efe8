package engine

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// How much garbage a process lets gather that does nothing but serve an engine. By default Go lets the heap grow to twice
// what is live, which for a database is twice the memory; but each collection reads all
// that is live, so that one that comes four times as often costs four times as much. What
// that is in time depends on how much garbage there is, and most commands leave none. So
// the share is found while the engine runs: small while collections take next to no time,
// larger when they take more than is worth it.
//
// The bounds are those of a trade. The heap has always freeGarbage to fill, so that small
// ones are not collected all the time: four times what Go leaves, which saves a tenth of
// the CPU time of commands that make much garbage; with four times that it is in no
// cache any more, and the half of that is lost again. Between lowestPercent and the default, half as much
// again or a fifth less each step, by the part of the process's own CPU time that the
// collector took since the step before.
//
// Garbage that is there when nobody works is collected then, if it is more than a
// twentieth: after a load, memory is what the data takes.
//
// GOGC, when it is set, is what its user wants, and is left alone.

const (
	lowestPercent  = 15
	firstPercent   = 30
	highestPercent = 100
	freeGarbage    = 16 << 20
	goSmallestHeap = 4 << 20
	costly, cheap  = 0.10, 0.04
	adjustEvery    = 100 * time.Millisecond

	quietBytes = 64 << 10 // allocated between two steps: nobody works
	quietSteps = 10       // so many are a rest

	restGarbage, restPercent = 1 << 20, 5 // what is worth collecting then
)

// collector adjusts the collector to what it costs.
type collector struct {
	percent   int
	collected float64 // s of CPU
	worked    float64 // s of CPU that commands and all else took
	allocated uint64  // bytes
	quiet     int     // steps without work
	set       func(percent int) int
}

// AdjustCollector makes Go's garbage collector fit a process that does little else than
// serve an engine: between a sixth of the data and as much again is garbage at most, by
// what collections cost, or 16 MB if that is more. It runs until ctx ends, and then puts back what was set before.
// The setting is the whole process's, so a program that only embeds an engine leaves it
// alone. Nothing is done when GOGC is set.
func AdjustCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	c := collector{percent: firstPercent, set: debug.SetGCPercent}
	defer debug.SetGCPercent(debug.SetGCPercent(highestPercent))
	tick := time.NewTicker(adjustEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := readCosts()
			c.adjust(now)
			if c.rests(now) {
				server.GiveBack(ctx.Done())
			}
		case <-ctx.Done():
			return
		}
	}
}

// costs is what the collector and all else have taken since the start, and what was live
// at the last collection.
type costs struct {
	collectedSec, workedSec float64
	liveBytes               uint64
	heapBytes               uint64 // live, and garbage
	allocatedBytes          uint64 // since the start
}

func readCosts() costs {
	sample := []metrics.Sample{
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		{Name: "/cpu/classes/user:cpu-seconds"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(sample)
	return costs{
		// What it did while nobody else wanted the processor has cost nothing.
		collectedSec:   sample[0].Value.Float64() - sample[1].Value.Float64(),
		workedSec:      sample[2].Value.Float64(),
		liveBytes:      sample[3].Value.Uint64(),
		heapBytes:      sample[4].Value.Uint64(),
		allocatedBytes: sample[5].Value.Uint64(),
	}
}

// adjust is one step. The runtime's figures change when a collection ends: between two
// collections there is nothing to learn.
func (c *collector) adjust(now costs) {
	collected, worked := now.collectedSec-c.collected, now.workedSec-c.worked
	if collected <= 0 && c.collected > 0 {
		return
	}
	c.collected, c.worked = now.collectedSec, now.workedSec
	percent := c.percent
	switch part := collected / max(collected+worked, 1e-9); {
	case part > costly:
		percent = min(percent*3/2, highestPercent)
	case part < cheap:
		percent = max(percent*4/5, lowestPercent)
	}
	c.percent = percent
	c.set(max(percent, leastPercent(now.liveBytes)))
}

// leastPercent is what leaves freeGarbage to fill. Of a small heap Go takes the share of
// goSmallestHeap instead, and for all of the heap.
func leastPercent(liveBytes uint64) int {
	return int(min(freeGarbage*100/max(liveBytes, 1), (freeGarbage+liveBytes)*100/goSmallestHeap))
}

// rests reports whether there is garbage that is worth collecting and nobody has worked for
// a while. What was allocated since the last collection counts as garbage.
func (c *collector) rests(now costs) bool {
	worked := now.allocatedBytes - c.allocated
	c.allocated = now.allocatedBytes
	if c.quiet++; worked > quietBytes {
		c.quiet = 0
	}
	garbage := now.heapBytes - min(now.liveBytes, now.heapBytes)
	if c.quiet < quietSteps || garbage < restGarbage+now.liveBytes*restPercent/100 {
		return false
	}
	c.quiet = 0
	return true
}
