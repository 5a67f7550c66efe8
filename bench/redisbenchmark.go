package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
)

// benchmarkRun is one run of redis-benchmark, always with values of 64 bytes.
type benchmarkRun struct {
	cores                             []int
	connections, pipeline, operations int
	keys                              string // how many different ones it puts where a number belongs
	args                              []string
}

// benchmarked is what it said.
type benchmarked struct{ rate, p99Ms float64 }

// redisBenchmark runs redis-benchmark on the given cores and returns operations per second.
func redisBenchmark(cores []int, on *server, connections, pipeline, n int, args []string) (float64, error) {
	result, err := benchmarkRun{cores, connections, pipeline, n, loadRange, args}.on(on)
	return result.rate, err
}

func (r benchmarkRun) on(s *server) (result benchmarked, err error) {
	path, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return result, errors.New("redis-benchmark is not on PATH; `make test-deps` installs it on Debian")
	}
	p, err := start(r.cores, path, append([]string{
		"-h", "127.0.0.1", "-p", s.port(), "-c", strconv.Itoa(r.connections), "-d", "64", "-r", r.keys,
		"-n", strconv.Itoa(r.operations), "-P", strconv.Itoa(r.pipeline), "--csv",
	}, r.args...)...)
	if err != nil {
		return result, err
	}
	defer p.kill()
	reader := csv.NewReader(p.output)
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	records, err := reader.ReadAll()
	if err != nil {
		return result, fmt.Errorf("the output of redis-benchmark: %w", err)
	}
	if len(records) < 2 || len(records[len(records)-1]) < 8 {
		return result, fmt.Errorf("redis-benchmark said %q", records)
	}
	// The last are: rate, average, least, p50, p95, p99, most.
	last := records[len(records)-1]
	result.rate, err = strconv.ParseFloat(last[len(last)-7], 64)
	if err != nil {
		return result, err
	}
	result.p99Ms, err = strconv.ParseFloat(last[len(last)-2], 64)
	return result, err
}
