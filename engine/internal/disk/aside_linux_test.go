package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// anOpenFile is one that can be synced.
func anOpenFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestTheKernelSyncs: the ordinary call is not needed, and one queue is enough for syncs that
// come one after the other.
func TestTheKernelSyncs(t *testing.T) {
	f := anOpenFile(t)
	if q, err := newQueue(); err != nil {
		t.Skipf("this kernel takes no such orders: %v", err)
	} else {
		q.giveBack()
	}
	before := len(idleQueues.all)
	for range 20 {
		if err := syncAside(f, dataSync, func() error { return errors.New("it was not the kernel") }); err != nil {
			t.Fatal(err)
		}
	}
	if now := len(idleQueues.all); now != before {
		t.Errorf("%d queues, %d before", now, before)
	}
}

// TestWhatTheKernelDoesNotTakeIsSyncedOtherwise: a pipe cannot be synced by order; the error of
// the ordinary call is what is heard.
func TestWhatTheKernelDoesNotTakeIsSyncedOtherwise(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	if err := (osFile{w}).SyncAside(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%v, want %v", err, syscall.EINVAL)
	}
}

// TestWhatTheKernelFailsToDoIsAnError. A write to /dev/full is taken as an order, and fails.
func TestWhatTheKernelFailsToDoIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = full.Close() }()
	const write = 1 // IOCB_CMD_PWRITE
	err = syncAside(full, write, func() error { t.Skip("this kernel takes no such orders"); return nil })
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want %v", err, syscall.ENOSPC)
	}
}
