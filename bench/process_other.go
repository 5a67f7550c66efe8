//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"runtime"
	"time"
)

// Elsewhere processes are not pinned, their CPU time is not known, and memory is not shared between them, so that the
// contended part cannot run.

func allowedCores() []int { return nil }

func startPinned(command *exec.Cmd, _ []int) error { return command.Start() }

func kernel() string { return runtime.GOOS }

func ownCPU() time.Duration { return 0 }

func mapShared(uintptr, int) ([]byte, error) {
	return nil, errors.New("the contended part shares memory between processes, which this program can do on Linux only")
}
