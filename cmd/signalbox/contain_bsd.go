//go:build unix && !linux

package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has no way to do so here.
func dieWithParent(*syscall.SysProcAttr) {}

// A containment is the process group of the command here, and no more: what leaves the group is out of reach.
type containment struct{}

func newContainment() *containment { return &containment{} }

func (k *containment) start(start func(*syscall.SysProcAttr) error) error {
	return start(&syscall.SysProcAttr{Setpgid: true})
}

func (k *containment) reaped(group int) int { return group }

func (k *containment) terminate(int) {}

func (k *containment) kill(int) {}

// left is the leader, in the place of all members: which they are the system does not tell.
func (k *containment) left(group int) []int {
	if unix.Kill(-group, 0) != nil {
		return nil
	}
	return []int{group}
}

func (k *containment) close() {}
