//go:build unix && !linux

package difftest

import (
	"os"
	"syscall"
)

// childAttributes has nothing to offer here: only Linux ends a child with its
// parent. A panicking test may leave its server behind.
func childAttributes() *syscall.SysProcAttr { return nil }

func pauseSignals() (pause, resume os.Signal) { return syscall.SIGSTOP, syscall.SIGCONT }
