//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is how long the path of a Unix socket may be: 104 bytes with the final NUL on the BSDs, 108 on Linux.
const maxSocketPath = 103

// isNobody reports whether a dial failed because nobody listens, or a connection because its server ended.
func isNobody(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) ||
		errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// isFull reports whether there was no room for what was to be written.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// ownFolder makes a folder that only this user can use, and refuses one that others can write: they could put a socket
// of their own there.
func ownFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to another user (%d)", path, owner.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others: chmod 700 %s", path, path)
	}
	return nil
}

// listenUnix listens on a socket that only this user can reach. A socket that a dead server has left is replaced.
func listenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s is too long a path for a socket: at most %d bytes", path, maxSocketPath)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is there already and is not a socket: give another path", path)
	default:
		conn, err := net.Dial("unix", path)
		if err == nil {
			return nil, errors.Join(fmt.Errorf("a server listens on %s already", path), conn.Close())
		}
		if !isNobody(err) {
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	before := unix.Umask(0o177)
	defer unix.Umask(before)
	return net.Listen("unix", path)
}

// detach makes a process the leader of a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// leash is detach for a process that must not outlive the thread that starts it.
func leash(cmd *exec.Cmd) {
	detach(cmd)
	dieWithParent(cmd.SysProcAttr)
}

// withoutExtras runs start with the files that we were given beyond the standard streams (a shell's exec 3>file) hidden
// from what it starts. The command under `run` gets them; a process that lives on must not hold them open.
func withoutExtras(start func() error) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return start() // a system that does not list them
	}
	var hidden []uintptr
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		if err != nil || number <= 2 {
			continue
		}
		fd := uintptr(number)
		flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // the listing's own, closed by now, or one of ours
		}
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, flags|unix.FD_CLOEXEC); err == nil {
			hidden = append(hidden, fd)
		}
	}
	err = start()
	for _, fd := range hidden {
		_, errShow := unix.FcntlInt(fd, unix.F_SETFD, 0)
		err = errors.Join(err, errShow)
	}
	return err
}

func terminateProcess(id int) error { return unix.Kill(id, unix.SIGTERM) }

// terminationSignals end a server.
var terminationSignals = []os.Signal{unix.SIGINT, unix.SIGTERM}

// hangup is what the end of a session brings.
var hangup = []os.Signal{unix.SIGHUP}

// secret checks that only its owner can read a file.
func secret(info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others can read it: chmod 600 %s", info.Name())
	}
	return nil
}

// fileLock is a lock on a file, held until it is released or the process ends.
type fileLock struct{ file *os.File }

// tryLock takes a lock. It returns nil if somebody has it.
func tryLock(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		closed := file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, closed
		}
		return nil, fmt.Errorf("locking %s: %w", path, errors.Join(err, closed))
	}
	return &fileLock{file}, nil
}

// write replaces what the file holds.
func (l *fileLock) write(text string) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

// isAt reports whether the path still leads to the locked file. If it does not, others lock another file there.
func (l *fileLock) isAt(path string) bool {
	there, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) // what nobody can tell is no loss
	}
	own, err := l.file.Stat()
	return err != nil || os.SameFile(there, own)
}

func (l *fileLock) release() { _ = l.file.Close() } // closing is what unlocks
