package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/signalbox-io/signalbox/engine"
)

// The servers of the subcommand engine: in memory only. The engine's process also tells what its collector did.

// startMeasured starts a server in memory.
func startMeasured(ctx context.Context, name string, on cores, folder string) (*server, error) {
	if name == redisName {
		return startRedis(ctx, on.server, folder)
	}
	s := &server{name: engineName}
	var err error
	if s.process, err = startRole(on.server, "measured", nil); err != nil {
		return nil, err
	}
	if err := s.process.hear(&s.addr); err != nil {
		s.process.stop()
		return nil, err
	}
	return s, nil
}

func startEnginePair(ctx context.Context, on cores) (*servers, error) {
	folder, err := os.MkdirTemp("", "signalbox-bench-")
	if err != nil {
		return nil, err
	}
	s := &servers{folder: folder}
	if s.redis, err = startMeasured(ctx, redisName, on, folder); err == nil {
		s.engine, err = startMeasured(ctx, engineName, on, folder)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// stopPair stops what may not have been started.
func stopPair(s **servers) func() {
	return func() {
		if *s != nil {
			(*s).stop()
		}
	}
}

// ran is the processor time of the process's threads, finer than cpu tells it.
func (p *process) ran() time.Duration {
	tasks := "/proc/" + strconv.Itoa(p.command.Process.Pid) + "/task/"
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return p.cpu()
	}
	var sum time.Duration
	for _, entry := range entries {
		text, err := os.ReadFile(tasks + entry.Name() + "/schedstat")
		if err != nil {
			return p.cpu()
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return p.cpu()
		}
		sum += time.Duration(ns)
	}
	return sum
}

// resident is how many bytes of memory the process has, and the most it ever had.
func (p *process) resident() (now, most float64, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.command.Process.Pid) + "/status")
	if err != nil {
		return 0, 0, err
	}
	scanner := bufio.NewScanner(strings.NewReader(string(text)))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64) // what is no number is not asked for
		switch fields[0] {
		case "VmRSS:":
			now = kib * 1024
		case "VmHWM:":
			most = kib * 1024
		}
	}
	if now == 0 {
		return 0, 0, fmt.Errorf("the memory of process %d is not known", p.command.Process.Pid)
	}
	return now, most, nil
}

// collected is what the collector of the engine's process did since it was last asked.
type collected struct {
	Cycles       float64
	WorstPauseMs float64 // of the world, an upper bound
	Assist, All  float64 // its shares of the processor time that the process used, in percent
	HeapBytes    float64 // live, after the last collection
}

func (s *server) collected() (c collected, err error) {
	return c, errors.Join(s.process.tell("collected"), s.process.hear(&c))
}

// measuredRole is the engine as a server that answers questions about its collector.
func measuredRole(ctx context.Context, _ []byte) error {
	go engine.AdjustCollector(ctx) // as signalbox serve does; it ends with the process
	e, err := engine.Open(engine.Options{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, e.Close())
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	if err := say(listener.Addr().String()); err != nil {
		return err
	}
	before := readCollector()
	for question := ""; listen(&question) == nil; {
		now := readCollector()
		if err := say(now.since(before)); err != nil {
			return err
		}
		before = now
	}
	return errors.Join(e.Close(), <-served)
}

// collector are the runtime's counters.
type collector struct {
	cycles, heap             uint64
	assist, all, total, idle float64
	pauses                   *metrics.Float64Histogram
}

func readCollector() collector {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
		{Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(samples)
	return collector{
		samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Float64(), samples[3].Value.Float64(),
		samples[4].Value.Float64(), samples[5].Value.Float64(), samples[6].Value.Float64Histogram(),
	}
}

func (c collector) since(before collector) collected {
	found := collected{Cycles: float64(c.cycles - before.cycles), HeapBytes: float64(c.heap)}
	if used := (c.total - c.idle) - (before.total - before.idle); used > 0 {
		found.Assist, found.All = 100*(c.assist-before.assist)/used, 100*(c.all-before.all)/used
	}
	for i, n := range c.pauses.Counts {
		if n == before.pauses.Counts[i] {
			continue
		}
		bound := c.pauses.Buckets[i+1]
		if math.IsInf(bound, 1) {
			bound = c.pauses.Buckets[i]
		}
		found.WorstPauseMs = max(found.WorstPauseMs, bound*1e3)
	}
	return found
}

// untilSteady waits until memory changes no more, but no longer than patience.
func untilSteady(processes []*process, patience time.Duration) {
	time.Sleep(patience / 2)
	for end := time.Now().Add(patience / 2); time.Now().Before(end); {
		before := residentSum(processes)
		time.Sleep(patience / 8)
		if after := residentSum(processes); math.Abs(after-before) < before/500 {
			return
		}
	}
}

func residentSum(processes []*process) (all float64) {
	for _, p := range processes {
		now, _, err := p.resident()
		if err == nil { // one that has ended has none
			all += now
		}
	}
	return all
}
