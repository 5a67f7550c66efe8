package aof

import (
	"cmp"
	"errors"
	"io"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

// round writes what is pending, syncs if the policy is Always, and gives a rewrite that has begun
// its file. mu is held before and after, and busy is nobody before and after.
func (l *Log) round() {
	l.busy = true
	policy, cut := l.policy, l.cut
	batch := l.take()
	if len(batch) > 0 {
		l.mu.Unlock()
		err := l.current.write(batch)
		l.mu.Lock()
		l.wrote(batch, err)
	}
	if l.writeErr == nil {
		if policy == Always && l.synced < l.written {
			l.catchUp()
		}
		if cut != nil && cut == l.cut {
			l.nextFile(cut)
		}
	}
	l.busy = false
	l.announce()
}

// take is what is to be written next: all that is pending, but nothing from behind a cut.
func (l *Log) take() []byte {
	batch := l.pending
	if l.cut == nil {
		l.pending, l.spare = l.spare[:0], nil
		return batch
	}
	before := max(0, l.cut.at-l.written)
	l.pending = append([]byte(nil), batch[before:]...)
	return batch[:before]
}

// wrote keeps book of a write.
func (l *Log) wrote(batch []byte, err error) {
	if err != nil {
		l.writeErr = err
		l.pending = append(batch, l.pending...)
		return
	}
	n := int64(len(batch))
	l.written += n
	l.current.size += n
	l.totalSize += n
	if l.listed {
		l.handed = l.written
	}
	if cap(batch) <= keepBufferBytes {
		l.spare = batch[:0]
	}
}

// write writes whole requests, or nothing.
func (f *appendFile) write(batch []byte) error {
	if f.torn {
		if err := f.file.Truncate(f.size); err != nil {
			return err
		}
		f.torn = false
	}
	n, err := f.file.Write(batch)
	if err == nil && n < len(batch) {
		err = io.ErrShortWrite
	}
	if err == nil {
		return nil // wrote counts it, under mu
	}
	// Without n: who knows what a failed write has left behind.
	if cutErr := f.file.Truncate(f.size); cutErr != nil {
		f.torn = true
		err = errors.Join(err, cutErr)
	}
	return err
}

// beginSync waits for its turn to sync. mu is held before and after, as for the others.
func (l *Log) beginSync() {
	for l.syncing {
		l.wait()
	}
	l.syncing, l.slowCounted, l.syncStarted = true, false, time.Now()
}

func (l *Log) endSync() {
	l.syncing = false
	l.announce()
}

// catchUp makes durable what was written, if nobody has done so when its turn comes.
func (l *Log) catchUp() {
	l.beginSync()
	if l.synced < l.written && !l.unsynced {
		l.sync()
	}
	l.endSync()
}

// sync makes durable what was written to the current file. Only one sync may run at a time: the
// system reports a failure once, to one of them.
func (l *Log) sync() {
	file, seq, upTo := l.current.file, l.current.seq, l.written
	synced := file.SyncAside
	if l.policy == Always {
		synced = file.Sync // somebody waits
	}
	l.mu.Unlock()
	err := synced()
	l.mu.Lock()
	if err != nil {
		l.fail(seq, err)
		return
	}
	l.lastSync = time.Now()
	l.synced = max(l.synced, upTo)
}

// fail notes that what is in an incremental file may be lost: in memory, and with a file for the process that comes
// after this one, if it is killed. syncing is the caller's, mu is held before and after.
func (l *Log) fail(seq int64, err error) {
	l.unsynced, l.syncErr, l.hurt = true, err, max(l.hurt, seq)
	l.mu.Unlock()
	markErr := markUnsynced(l.d, l.names)
	l.mu.Lock()
	l.syncErr = errors.Join(l.syncErr, markErr)
}

// markUnsynced tells the next process of a sync that has failed. The next sync would say that all is well, and a power
// cut would then leave a hole before all that was promised. The file need not be durable: after a power cut the hole is
// there to see. If it cannot be made the disk is worse off than we can help.
func markUnsynced(d disk.Disk, names Names) error {
	file, err := d.Create(names.in(names.unsynced()))
	if err != nil {
		return err
	}
	return file.Close()
}

// Status is what INFO tells.
type Status struct {
	State        State
	Err          error // why it is not Healthy
	WriteErr     error // why nothing can be written; there may be an Err without
	Policy       Policy
	CurrentBytes int64 // aof_current_size
	BaseBytes    int64 // aof_base_size
	BufferBytes  int64 // aof_buffer_length
	Full         bool  // that is as much as there should be
	PendingSync  bool  // aof_pending_bio_fsync
	DelayedSyncs int64 // aof_delayed_fsync
	LastSync     time.Time
	Rewriting    bool
	Leftover     error // files of old that could not be removed; tried again after the next rewrite
}

// Status tells how the Log is.
func (l *Log) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{
		Policy: l.policy, CurrentBytes: l.totalSize, BaseBytes: l.baseSize, BufferBytes: int64(len(l.pending)),
		PendingSync: l.syncing && l.policy == EverySecond, DelayedSyncs: l.delayed, LastSync: l.lastSync,
		Rewriting: l.rewrite != nil, Leftover: l.leftover,
	}
	s.Full = len(l.pending) >= l.maxSize
	s.WriteErr = cmp.Or(l.writeErr, l.retried)
	switch {
	case l.unsynced:
		s.State, s.Err = NeedsBase, l.failed()
	case s.WriteErr != nil:
		s.State, s.Err = WriteFailed, &FailedError{WriteFailed, s.WriteErr}
	}
	return s
}
