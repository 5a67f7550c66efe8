//go:build unix && !solaris && !illumos && !aix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes a lock that ends with the open file, and so with the process.
func tryLock(file *os.File) (taken bool, err error) {
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "flock", Path: file.Name(), Err: err}
		}
	}
}

func syncFolder(f *os.File) error { return f.Sync() }
