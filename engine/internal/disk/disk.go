// Package disk is what persistence needs of a file system, as an interface, and
// that interface on the operating system.
//
// The interface is small and says what is durable, because that is what tests have
// to vary: a disk in memory (package disktest) loses what was not synced, fails, and
// fills up. Three promises are used, and no other:
//
//   - what was written to a file survives a power cut once File.Sync has returned;
//   - a name (made, renamed, removed) does so once Disk.SyncFolder has returned for
//     the folder that it is in;
//   - a rename replaces its target in one step.
//
// Names are relative to the folder of the Disk, with slashes. Files belong to whoever
// opened them. A Disk may be used by several goroutines at once, a File by several
// if only one of them writes.
//
// Only the shell and what belongs to it imports this package. To add an operation: to
// the interface, to os.go, and to disktest, where it counts as a step at which
// the power can fail.
package disk

import (
	"fmt"
	"io"
)

// Disk is a folder and what is in it.
type Disk interface {
	// Create makes an empty file, or empties the one that is there, to write to.
	Create(name string) (File, error)
	// Append opens a file to write at its end; if there is none it is made.
	Append(name string) (File, error)
	// Open opens a file to read it. The error wraps fs.ErrNotExist if there is none.
	Open(name string) (io.ReadCloser, error)
	// Size is the length of a file in bytes; the error as for Open.
	Size(name string) (int64, error)
	// Rename gives a file another name, and replaces what had that name.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// List returns the names of the files in a folder, sorted; the error wraps
	// fs.ErrNotExist if there is no such folder. "." is the Disk itself.
	List(folder string) ([]string, error)
	// MakeFolder makes a folder if there is none, and those above it.
	MakeFolder(folder string) error
	// SyncFolder makes the names in a folder durable.
	SyncFolder(folder string) error
	// Lock takes the file of that name as a lock which nobody else can take before it
	// is closed or the process has ended. The error is a *LockedError if somebody has it.
	Lock(name string) (io.Closer, error)
}

// File is a file that is open to be written at its end.
type File interface {
	io.WriteCloser
	// Truncate cuts the file to a size; writing goes on there.
	Truncate(sizeBytes int64) error
	// Sync makes what was written durable. After an error what was written since the
	// last success may be lost for good, even if a later Sync succeeds.
	Sync() error
	// SyncAside is Sync for those who are in no hurry: it may take longer, and lets others
	// of the process run meanwhile, even if there is one processor only.
	SyncAside() error
	// Size is the length of the file in bytes.
	Size() (int64, error)
}

// LockedError says that a lock is another's.
type LockedError struct {
	Name string // of the file
	PID  int    // of the process that has it; 0 if it is not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked: another engine uses this folder", e.Name)
	}
	return fmt.Sprintf("%s is locked: another engine uses this folder (process %d)", e.Name, e.PID)
}
