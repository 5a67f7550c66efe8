package server

import (
	"os"
	"runtime"
	"runtime/metrics"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
)

// processInfo is what INFO reports of the process.
func processInfo() exec.Process {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(sample)
	value := func(i int) uint64 { return sample[i].Value.Uint64() }
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	user, system := cpuSeconds()
	return exec.Process{
		PID:            os.Getpid(),
		HeapBytes:      value(0),
		HeapInUseBytes: value(0) + value(1),
		RSSBytes:       value(2) - value(3),
		Collections:    value(4),
		CPUUserSec:     user,
		CPUSysSec:      system,
		OS:             runtime.GOOS + " " + runtime.GOARCH,
		Executable:     executable,
	}
}
