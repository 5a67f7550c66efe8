package difftest

import (
	"os"
	"syscall"
)

// childAttributes makes the system kill the server when we die, be it by a
// panic or by the test binary's time limit, where no cleanup runs.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func pauseSignals() (pause, resume os.Signal) { return syscall.SIGSTOP, syscall.SIGCONT }
