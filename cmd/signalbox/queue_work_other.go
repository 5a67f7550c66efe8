//go:build !unix

package main

import "os/exec"

// Without process groups only the command itself can be ended.

func inGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { killGroup(cmd) }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // that it has ended is no error
