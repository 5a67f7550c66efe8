//go:build solaris || illumos || aix || (!unix && !windows)

package files

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func openLocked(path string) (*os.File, error) {
	return nil, fmt.Errorf("lock %s on %s: %w", path, runtime.GOOS, errors.ErrUnsupported)
}

func syncFolder(string) error { return nil }
