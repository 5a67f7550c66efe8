//go:build unix && !linux

package faults

import "syscall"

// diesWithParent has nothing to offer here.
func diesWithParent() *syscall.SysProcAttr { return nil }
