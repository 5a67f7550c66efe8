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
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(sample)
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	user, system := cpuSeconds()
	return exec.Process{
		PID:             os.Getpid(),
		UsedMemoryBytes: sample[0].Value.Uint64(),
		RSSBytes:        sample[1].Value.Uint64(),
		CPUUserSec:      user,
		CPUSysSec:       system,
		OS:              runtime.GOOS + " " + runtime.GOARCH,
		Executable:      executable,
	}
}
