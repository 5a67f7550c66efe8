package disk

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is far behind the text, because on Windows a locked byte cannot be read.
const lockedByte = math.MaxInt32

// tryLock takes a lock that ends with the open file, and so with the process.
func tryLock(file *os.File) (taken bool, err error) {
	at := &windows.Overlapped{Offset: lockedByte}
	err = windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// syncFolder does nothing: Windows writes the names of files through.
func syncFolder(*os.File) error { return nil }
