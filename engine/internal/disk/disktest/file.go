package disktest

import (
	"bytes"
	"io/fs"
	"syscall"
)

// file is an open file.
type file struct {
	d      *Disk
	node   *inode
	name   string
	closed bool
}

func (f *file) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func (f *file) step(op string) error {
	if f.closed {
		return f.fail(op, fs.ErrClosed)
	}
	return f.d.step(f.name)
}

// Write writes as much as there is room for. Whom the power leaves has perhaps written some.
func (f *file) Write(b []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.step("write"); err != nil {
		return 0, err
	}
	f.d.writes++
	f.d.pass(f.d.writeTime)
	n, full := len(b), f.d.room >= 0 && int64(len(b)) > f.d.room
	if full {
		n = int(f.d.room)
	}
	if f.d.room >= 0 {
		f.d.room -= int64(n)
	}
	if n > 0 {
		f.node.changes = append(f.node.changes, change{at: len(f.node.data), data: bytes.Clone(b[:n])})
		f.node.data = append(f.node.data, b[:n]...)
	}
	if full {
		return n, f.fail("write", syscall.ENOSPC)
	}
	return n, nil
}

// Truncate cuts the file.
func (f *file) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.step("truncate"); err != nil {
		return err
	}
	c := change{at: int(size), cut: true}
	f.node.data = c.apply(f.node.data)
	f.node.changes = append(f.node.changes, c)
	return nil
}

// Sync makes durable what was written when it was called.
func (f *file) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.syncs++
	if err := f.step("sync"); err != nil {
		return err
	}
	changes := len(f.node.changes)
	f.d.pass(f.d.syncTime)
	failed := f.d.failSync > 0
	for _, c := range f.node.changes[:changes] {
		if !failed {
			f.node.durable = c.apply(f.node.durable)
		}
	}
	f.node.changes = f.node.changes[changes:] // if it failed they are lost, and nobody knows
	if failed {
		f.d.failSync--
		return f.fail("sync", syscall.EIO)
	}
	return nil
}

// SyncAside is Sync.
func (f *file) SyncAside() error { return f.Sync() }

// Size is the length of the file.
func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.node.data)), nil
}

// Close closes the file, and syncs nothing.
func (f *file) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return f.fail("close", fs.ErrClosed)
	}
	f.closed = true
	return nil
}
