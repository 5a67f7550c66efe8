package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// What an engine keeps is nobody else's business.
const (
	fileMode   = 0o600
	folderMode = 0o700
)

// At returns the folder of the operating system at path, which need not exist yet.
func At(path string) Disk { return folder(path) }

type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

func (f folder) Create(name string) (File, error) {
	return f.open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND)
}

func (f folder) Append(name string) (File, error) {
	return f.open(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
}

func (f folder) open(name string, flags int) (File, error) {
	file, err := os.OpenFile(f.path(name), flags, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (f folder) Open(name string) (io.ReadCloser, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return file, nil
}

func (f folder) Size(name string) (int64, error) {
	info, err := os.Stat(f.path(name))
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is no file", f.path(name))
	}
	return info.Size(), nil
}

func (f folder) Rename(from, to string) error { return os.Rename(f.path(from), f.path(to)) }

func (f folder) Remove(name string) error { return os.Remove(f.path(name)) }

func (f folder) List(name string) ([]string, error) {
	entries, err := os.ReadDir(f.path(name))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// MakeFolder syncs the folders around those that it makes, outside of f, too: what is
// synced in a folder whose own name is lost is lost with it.
func (f folder) MakeFolder(name string) error {
	path, err := filepath.Abs(f.path(name))
	if err != nil {
		return err
	}
	var around []string
	for missing := path; isMissing(missing); missing = filepath.Dir(missing) {
		around = append(around, filepath.Dir(missing))
	}
	if err := os.MkdirAll(path, folderMode); err != nil {
		return err
	}
	for _, made := range around {
		if err := folder(made).SyncFolder("."); err != nil {
			return err
		}
	}
	return nil
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (f folder) SyncFolder(name string) error {
	open, err := os.Open(f.path(name))
	if err != nil {
		return err
	}
	return errors.Join(syncAside(open, wholeSync, func() error { return syncFolder(open) }), open.Close())
}

func (f folder) Lock(name string) (io.Closer, error) {
	file, err := os.OpenFile(f.path(name), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	taken, err := tryLock(file)
	if err == nil && !taken {
		err = &LockedError{Name: f.path(name), PID: readPID(file)}
	}
	if err == nil {
		err = writePID(file)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readPID reads who holds a lock; 0 if that is not to be seen.
func readPID(file *os.File) int {
	var text [20]byte
	n, err := file.ReadAt(text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// writePID notes who holds a lock. The file stays when the lock ends: to remove it would
// give a third process a lock on a file that the second one no longer sees.
func writePID(file *os.File) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(text)))
}

type osFile struct{ *os.File }

func (f osFile) SyncAside() error { return syncAside(f.File, dataSync, f.Sync) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
