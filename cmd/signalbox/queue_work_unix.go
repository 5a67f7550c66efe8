//go:build unix

package main

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inGroup has a command start in a process group of its own, so that a signal reaches all it starts, and Ctrl-C does not.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// terminateGroup asks them to end. A stopped process hears that only when it goes on. That they have ended is no error.
func terminateGroup(cmd *exec.Cmd) {
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGTERM)
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGCONT)
}

func killGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
