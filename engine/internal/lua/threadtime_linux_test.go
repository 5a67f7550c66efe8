package lua

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime is how long the thread has had the processor.
func threadTime() time.Duration {
	const clockThreadTime = 3
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadTime, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
