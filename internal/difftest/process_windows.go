package difftest

import (
	"os"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

// pauseSignals are unknown here; sending them reports an error.
func pauseSignals() (pause, resume os.Signal) { return os.Interrupt, os.Interrupt }
