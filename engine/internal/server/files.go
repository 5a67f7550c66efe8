package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// files is how the machine reaches the few files that commands read and write:
// the ACL file and the configuration. Its errors are the system's bare words,
// as Redis has them: the client knows which file it asked about.
type files struct{}

func (files) Read(path string) (string, error) {
	text, err := os.ReadFile(path)
	return string(text), plainly(err)
}

// Write replaces a file as a whole or not at all. A new one is for its owner
// alone, since it may hold password hashes.
func (files) Write(path, text string) error { return plainly(replaceFile(path, text)) }

func replaceFile(path, text string) (err error) {
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	_, err = next.WriteString(text)
	if err == nil {
		err = next.Chmod(mode)
	}
	if err == nil {
		err = next.Sync()
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

func plainly(err error) error {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return err
	}
	text := number.Error()
	return errors.New(strings.ToUpper(text[:1]) + text[1:])
}
