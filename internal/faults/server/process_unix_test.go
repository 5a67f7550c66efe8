//go:build unix && !linux

package server_test

import "syscall"

// diesWithParent has nothing to offer here.
func diesWithParent() *syscall.SysProcAttr { return nil }
