package benchmark

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine is where the clients ran.
type Machine struct {
	CPU        string  `json:"cpu,omitempty"` // "" where it is not known
	Cores      int     `json:"cores"`
	OS         string  `json:"os"`
	Arch       string  `json:"arch"`
	Go         string  `json:"go"`
	LoadBefore float64 `json:"load_before"` // processes that ran or wanted to, over the last minute; -1 where it is not known
	LoadAfter  float64 `json:"load_after"`  // includes the run's own
}

// ThisMachine describes the machine as it is now.
func ThisMachine() Machine {
	return Machine{
		CPU: processor(), Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		LoadBefore: loadAverage(), LoadAfter: -1,
	}
}

// Busy reports whether the machine had other work than the measuring when it began.
func (m Machine) Busy() bool { return m.LoadBefore > float64(m.Cores)/2 }

// loadAverage is that of the last minute, on Linux.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}

// processor is what the kernel calls it, on Linux.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
