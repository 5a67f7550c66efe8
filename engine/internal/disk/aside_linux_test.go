package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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

// TestWhatTheKernelFailsToDoIsAnError. It takes the order to read too little of an eventfd, and
// fails to.
func TestWhatTheKernelFailsToDoIsAnError(t *testing.T) {
	q, err := newQueue()
	if err != nil {
		t.Skipf("this kernel takes no such orders: %v", err)
	}
	q.giveBack()
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "eventfd")
	defer func() { _ = f.Close() }()
	const read = 0 // IOCB_CMD_PREAD
	err = syncAside(f, read, func() error { return errors.New("it was not the kernel") })
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%v, want %v", err, syscall.EINVAL)
	}
}
