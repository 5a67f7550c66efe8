//go:build solaris || illumos || aix || (!unix && !windows)

package disk

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func tryLock(*os.File) (taken bool, err error) {
	return false, fmt.Errorf("locking a folder on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func syncFolder(f *os.File) error { return f.Sync() }
