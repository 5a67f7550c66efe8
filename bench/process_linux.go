package main

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func allowedCores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var all []int
	for core := 0; core < len(set)*64; core++ {
		if set.IsSet(core) {
			all = append(all, core)
		}
	}
	return all
}

// startPinned starts the command on the given cores. A child inherits the cores of the thread that starts it, and its
// timer slack: 1 ns in place of 50 µs, so that a hold of 1 ms is one. It dies with this process.
func startPinned(command *exec.Cmd, on []int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	for _, core := range on {
		wanted.Set(core)
	}
	if len(on) > 0 {
		if err := unix.SchedSetaffinity(0, &wanted); err != nil {
			return err
		}
	}
	// Without it holds are a little longer, which the report shows.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	err := command.Start()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
	if restored := unix.SchedSetaffinity(0, &before); err == nil {
		err = restored
	}
	return err
}

func kernel() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

// ownCPU is the processor time this process has used.
func ownCPU() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// mapShared maps a file into memory that other processes map too.
func mapShared(fd uintptr, bytes int) ([]byte, error) {
	return unix.Mmap(int(fd), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}
