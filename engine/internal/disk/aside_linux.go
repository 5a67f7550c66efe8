package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Syncs that let others run.
//
// A call to the system keeps the processor, as Go's scheduler sees it, until a thread of the
// runtime finds that it takes long. That thread looks after 20 µs if it had something to do
// lately, and after 10 ms if it had not, and takes nothing away that it sees for the first time.
// So where there is one processor a sync of 10 ms stops everything for 10 ms, though it only
// waits: at the end of each snapshot, and once a second for the log.
//
// Linux can be told to sync, and says on a descriptor when it has (io_submit, since 4.18). A
// goroutine waits for that as for a socket. The work is done by a thread of the kernel, which
// costs a switch more, and if others want the processor it waits its turn. That is why whoever
// waits for the disk, "appendfsync always", calls fdatasync itself: on a busy machine this way
// gave it half the rate.
//
// Where there is no such call, or no room for one more, the ordinary one does.
//
// Rejected: the calls that tell the scheduler nothing (server/socketcall_linux.go), which never
// give the processor back, and with a disk that hangs would hang the whole process.

// Operations of the kernel: IOCB_CMD_FSYNC, IOCB_CMD_FDSYNC.
const (
	wholeSync = 2
	dataSync  = 3
)

// order is the kernel's struct iocb.
type order struct {
	_              uint64
	_              [2]uint32
	operation      uint16
	_              int16
	fd             uint32
	_              [2]uint64
	_              int64
	_              uint64
	flags, eventFD uint32
}

const tellEventFD = 1 // IOCB_FLAG_RESFD

// completion is the kernel's struct io_event.
type completion struct {
	_      [2]uint64
	result int64 // below 0: an error's number
	_      int64
}

// queue takes one order at a time.
type queue struct {
	context uintptr
	event   *os.File // what tells that the order was carried out
	eventFD int
}

// idleQueues are those that nobody uses. They are kept as long as the process: to end one takes
// the kernel as long as a sync. There are never more than there were syncs at the same time.
var idleQueues struct {
	mu  sync.Mutex
	all []*queue
}

func takeQueue() (*queue, error) {
	idleQueues.mu.Lock()
	defer idleQueues.mu.Unlock()
	if n := len(idleQueues.all); n > 0 {
		q := idleQueues.all[n-1]
		idleQueues.all = idleQueues.all[:n-1]
		return q, nil
	}
	return newQueue()
}

func (q *queue) giveBack() {
	idleQueues.mu.Lock()
	defer idleQueues.mu.Unlock()
	idleQueues.all = append(idleQueues.all, q)
}

func newQueue() (*queue, error) {
	q := &queue{}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&q.context)), 0); errno != 0 { //nolint:gosec // the kernel writes there
		return nil, errno
	}
	err := q.open()
	if err != nil {
		if _, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, q.context, 0, 0); errno != 0 {
			err = errors.Join(err, errno)
		}
		return nil, err
	}
	return q, nil
}

// open makes the descriptor that tells.
func (q *queue) open() (err error) {
	if q.eventFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	q.event = os.NewFile(uintptr(q.eventFD), "eventfd") // Go's poller takes what does not block
	if err := q.event.SetReadDeadline(time.Time{}); err != nil {
		return errors.Join(err, q.event.Close()) // it did not: nobody could wait
	}
	return nil
}

// syncAside syncs a file, and lets others run meanwhile. Where the kernel cannot be told to,
// it is otherwise that does.
func syncAside(f *os.File, operation uint16, otherwise func() error) error {
	q, err := takeQueue()
	if err != nil {
		return otherwise()
	}
	raw, err := f.SyscallConn()
	if err != nil {
		q.giveBack()
		return err
	}
	if err = q.submit(raw, operation); err != nil {
		q.giveBack()
		return otherwise()
	}
	result, err := q.await()
	if err != nil {
		return fmt.Errorf("waiting for a sync of %s: %w", f.Name(), err) // the queue is not fit for use
	}
	q.giveBack()
	if result < 0 {
		return &os.PathError{Op: "sync", Path: f.Name(), Err: syscall.Errno(-result)}
	}
	return nil
}

// submit gives an order; it does not wait. From then on the kernel holds the file open.
func (q *queue) submit(raw syscall.RawConn, operation uint16) error {
	var errno syscall.Errno
	err := raw.Control(func(fd uintptr) {
		o := &order{operation: operation, fd: uint32(fd), flags: tellEventFD, eventFD: uint32(q.eventFD)} //nolint:gosec // descriptors are small
		_, _, errno = unix.RawSyscall(unix.SYS_IO_SUBMIT, q.context, 1, uintptr(unsafe.Pointer(&o)))      //nolint:gosec // the kernel copies it
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// await waits until the order has been carried out, and returns what it has come to.
func (q *queue) await() (result int64, err error) {
	var count [8]byte
	if _, err := q.event.Read(count[:]); err != nil {
		return 0, err
	}
	var c completion
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_GETEVENTS, q.context, 0, 1, uintptr(unsafe.Pointer(&c)), 0, 0) //nolint:gosec // the kernel writes there
	switch {
	case errno != 0:
		return 0, errno
	case n != 1:
		return 0, errors.New("the kernel says that it is done, and not what it has come to")
	}
	return c.result, nil
}
