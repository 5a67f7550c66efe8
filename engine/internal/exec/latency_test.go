package exec_test

import (
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// TestLatencyShowsExpireCycles with a stopwatch that says that everything takes 2 ms.
func TestLatencyShowsExpireCycles(t *testing.T) {
	const ms = 1_000_000
	var now int64
	m := exec.New(exec.Options{Stopwatch: func() int64 { now += 2 * ms; return now }}, 0)
	defer m.Close()
	ask(t, m, 0, "CONFIG", "SET", "latency-monitor-threshold", "1")
	ask(t, m, 0, "SET", "k", "v", "PX", "1")
	m.Tick(1_000_000)
	if got := ask(t, m, 1_000_000, "LATENCY", "HISTORY", "expire-cycle"); !strings.Contains(got, "2") {
		t.Errorf("LATENCY HISTORY expire-cycle: %s", got)
	}
}

// TestActiveExpireCanBeTurnedOff: then what has expired stays until somebody looks at it.
func TestActiveExpireCanBeTurnedOff(t *testing.T) {
	m := exec.New(exec.Options{}, 0)
	defer m.Close()
	ask(t, m, 0, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
	ask(t, m, 0, "SET", "k", "v", "PX", "1")
	m.Tick(1_000_000)
	if m.Keys() != 1 {
		t.Error("it has gone by itself")
	}
	ask(t, m, 1_000_000, "DEBUG", "SET-ACTIVE-EXPIRE", "1")
	m.Tick(1_000_000)
	if m.Keys() != 0 {
		t.Error("it is still there")
	}
}
