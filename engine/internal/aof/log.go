package aof

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

// The Log is the files of a Set at work. Changes come in two steps, because the engine does
// one thing at a time and a disk is slow:
//
//	seq, full := log.Append(requests)   under the engine's lock: copies at most, does not wait
//	err := log.Commit(seq)              without it, before the reply is sent
//
// Whoever commits first becomes the leader: it writes everything pending with one write and
// syncs once, for all who have come meanwhile; the others wait. So the number of syncs follows
// the disk, not the clients. A turn of the leader is a round (round.go). There is no goroutine
// for it; the only one of the Log is a clock that ticks each second.
//
// In every policy Commit waits for write(2), so a killed process has lost nothing that was
// answered. What more it waits for is the policy.
//
// A Log fails in two ways. A write that fails, because the disk is full, is undone to the end of
// the last whole request; Retry tries again, and when it succeeds nothing was lost. A sync that
// fails can not be tried again: the system may have dropped what it could not write and
// would report success. Then only a finished rewrite helps, since it writes everything anew, and
// nobody is told "durable" before it has.
//
// The lock mu is held for moments only, never during a call of the disk. What may be done by one
// goroutine at a time has a flag: busy to write and to change files, syncing to sync. Who waits
// does so on a channel, which is closed whenever something has changed.

// Policy says what a Commit waits for: appendfsync.
type Policy uint8

// The policies.
const (
	EverySecond Policy = iota // a write; a sync follows within a second or so
	Always                    // a sync
	Never                     // a write; the system syncs when it likes
)

// State says whether a Log can keep its promises.
type State uint8

// The states.
const (
	Healthy     State = iota
	WriteFailed       // Retry may help
	NeedsBase         // only a finished Rewrite helps
)

// ErrClosed is for a Log that was closed.
var ErrClosed = errors.New("aof: the log is closed")

// FailedError says that a Log can not keep its promise.
type FailedError struct {
	State State
	Err   error // of the disk; nil if there has never been a base
}

func (e *FailedError) Error() string {
	switch {
	case e.State == WriteFailed:
		return fmt.Sprintf("aof: writing failed: %v", e.Err)
	case e.Err == nil:
		return "aof: there is no base yet"
	}
	return fmt.Sprintf("aof: what was written may be lost until the file has been rewritten: %v", e.Err)
}

// Unwrap returns the error of the disk.
func (e *FailedError) Unwrap() error { return e.Err }

// Options are how a Log begins.
type Options struct {
	Policy Policy
	// NeedsBase says that there is data which the files do not hold: the Log begins in the
	// state of that name, and what is in the files counts for nothing once a Rewrite has finished.
	NeedsBase bool
	// MaxBufferBytes is how much may be pending before Append says that it is too much; 0 is 64 MiB.
	MaxBufferBytes int
}

const (
	defaultBufferBytes = 64 << 20
	keepBufferBytes    = 1 << 20 // the largest buffer that is used again
	tickEvery          = time.Second
	slowSync           = 2 * time.Second // from then on writers wait for a sync
)

// Log takes requests and makes them durable. It may be used by several goroutines.
type Log struct {
	d     disk.Disk
	names Names
	lock  io.Closer

	mu      sync.Mutex
	changed chan struct{}
	policy  Policy
	maxSize int

	// Numbers of requests are the bytes ever appended. synced <= written <= appended.
	pending  []byte
	spare    []byte // a buffer to use again
	appended int64
	written  int64
	handed   int64 // what was written to a file that the manifest names
	synced   int64

	busy        bool
	syncing     bool
	syncStarted time.Time
	slowCounted bool // that the present sync is slow

	current  appendFile
	listed   bool // the manifest names the current file
	manifest *Manifest
	nextIncr int64
	nextBase int64
	rewrite  *Rewrite // the one that runs
	cut      *Rewrite // it, until it has its file

	writeErr error
	retried  error   // the writeErr that a Retry is about to mend
	unsynced bool    // state NeedsBase
	syncErr  error   // why
	strays   []Entry // incremental files that no manifest names
	hurt     int64   // the number of the last incremental file that unsynced is about
	closing  bool    // no rewrite begins any more
	closed   bool

	baseSize  int64 // of the set after the last rewrite, or of the base at the start
	totalSize int64 // of the set
	delayed   int64
	lastSync  time.Time
	leftover  error

	stop chan struct{}
	done chan struct{}
}

// appendFile is a file that is written to. Only who is busy changes it.
type appendFile struct {
	file disk.File
	seq  int64
	size int64
	torn bool // behind size is a piece of a failed write that could not be cut off
}

// Start goes on with the last file, after everything was loaded, and keeps the lock of the
// folder. What was loaded is durable when it returns.
func (s *Set) Start(options Options) (*Log, error) {
	files, err := s.Files()
	if err != nil {
		return nil, err
	}
	l := &Log{
		d: s.d, names: s.names, lock: s.lock, changed: make(chan struct{}), policy: options.Policy,
		maxSize: options.MaxBufferBytes, unsynced: options.NeedsBase, listed: !options.NeedsBase,
		manifest: s.manifest, nextIncr: s.lastSeq + 1, nextBase: s.baseSeq + 1,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if l.maxSize <= 0 {
		l.maxSize = defaultBufferBytes
	}
	for _, file := range files {
		l.totalSize += file.SizeBytes
		if file.Type == Base {
			l.baseSize = file.SizeBytes
		}
	}
	if max(s.lastSeq, s.baseSeq) > math.MaxInt64/2 {
		return nil, errors.New("aof: the numbers of the files are used up")
	}
	if err := l.openFirst(files); err != nil {
		return nil, err
	}
	if len(l.manifest.History) > 0 {
		l.removeHistory()
	}
	go l.clock()
	return l, nil
}

// openFirst opens the last incremental file, or makes the first one.
func (l *Log) openFirst(files []Source) (err error) {
	if l.listed && len(files) > 0 {
		if err := firstSync(l.d, l.names, files); err != nil {
			return err
		}
	}
	if n := len(l.manifest.Incrs); n > 0 && l.listed {
		last := files[len(files)-1]
		l.current = appendFile{seq: last.Seq, size: last.SizeBytes}
		l.current.file, err = l.d.Append(l.names.in(last.Name))
		return err
	}
	name := l.names.incr(l.nextIncr)
	l.current = appendFile{seq: l.nextIncr}
	l.nextIncr++
	if l.current.file, err = l.d.Create(l.names.in(name)); err != nil {
		return err
	}
	if !l.listed {
		return nil
	}
	next := l.manifest.clone()
	next.Incrs = append(next.Incrs, Entry{Name: name, Seq: l.current.seq, Type: Incr})
	if err := writeManifest(l.d, l.names, next); err != nil {
		return errors.Join(err, l.current.file.Close())
	}
	l.manifest = next
	return nil
}

// firstSync makes durable what the process before has left to the system: what the files hold, and the names. All
// files, since a Redis syncs one that it goes on from in the background, or has only the one that we took over; what is
// durable already costs nothing. The process before may also have been killed between the renaming of a manifest and the
// sync of the folder; a power cut would bring the manifest before back, which does not name the file that we are
// about to append to.
func firstSync(d disk.Disk, names Names, files []Source) error {
	var err error
	for _, file := range files {
		err = errors.Join(err, syncFile(d, names.in(file.Name)))
	}
	if err = errors.Join(err, d.SyncFolder(names.Folder)); err != nil {
		return errors.Join(err, markUnsynced(d, names))
	}
	return nil
}

func syncFile(d disk.Disk, name string) error {
	file, err := d.Append(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// clock ticks until the Log is closed.
func (l *Log) clock() {
	defer close(l.done)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.tick()
		case <-l.stop:
			return
		}
	}
}

// tick writes what nobody has committed, and syncs if the policy is EverySecond.
func (l *Log) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) > 0 && !l.busy && l.writeErr == nil {
		l.round()
	}
	if l.policy == EverySecond && l.written > l.synced && !l.unsynced && !l.syncing {
		l.beginSync()
		l.sync()
		l.endSync()
	}
}

// Append takes whole requests, in the order of the calls. They stay the caller's, unless they come to
// more than 1 MB: then they are the log's, which does not copy them if nothing is before them. The number
// is for Commit. full says that as much is pending as MaxBufferBytes allows, or more. A
// transaction must come in one call. O(n), no waiting for the disk.
func (l *Log) Append(requests []byte) (seq int64, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return math.MaxInt64, false // Commit says that it is closed
	}
	if len(requests) > keepBufferBytes && len(l.pending) == 0 {
		l.pending = requests
	} else {
		l.pending = append(l.pending, requests...)
	}
	l.appended += int64(len(requests))
	return l.appended, len(l.pending) >= l.maxSize
}

// Commit waits until all requests up to a number are as safe as the policy promises. The error is a
// *FailedError if they can not be; then they stay pending, and may become safe later.
func (l *Log) Commit(seq int64) error {
	return l.until(func() (bool, error) { return l.reached(seq), l.failure() })
}

// Sync waits until everything that was appended is durable, whatever the policy.
func (l *Log) Sync() error {
	l.mu.Lock()
	seq := l.appended
	l.mu.Unlock()
	if err := l.until(func() (bool, error) { return l.written >= seq, l.writing() }); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginSync()
	if l.synced < seq && !l.unsynced && !l.closed {
		l.sync()
	}
	l.endSync()
	if l.synced >= seq {
		return nil
	}
	return errors.Join(l.failed(), l.writing())
}

// until makes rounds, or waits for those of others, until something is so or can not become so.
func (l *Log) until(is func() (bool, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		reached, err := is()
		if reached {
			return nil
		}
		if err != nil {
			return err
		}
		if l.busy || l.mustWaitForSync() {
			l.wait()
			continue
		}
		l.round()
	}
}

// mustWaitForSync: a disk that takes so long is not to be given more.
func (l *Log) mustWaitForSync() bool {
	if l.policy != EverySecond || !l.syncing || time.Since(l.syncStarted) < slowSync {
		return false
	}
	if !l.slowCounted {
		l.slowCounted = true
		l.delayed++
	}
	return true
}

// reached reports whether a number is as safe as promised.
func (l *Log) reached(seq int64) bool {
	if l.policy == Always {
		return l.synced >= seq
	}
	return l.handed >= seq
}

// failure is why a Commit can not succeed at present.
func (l *Log) failure() error {
	if err := l.writing(); err != nil {
		return err
	}
	if l.unsynced && (l.policy == Always || !l.listed) {
		return l.failed()
	}
	return nil
}

// writing is why nothing can be written at present.
func (l *Log) writing() error {
	if l.closed {
		return ErrClosed
	}
	if l.writeErr != nil {
		return &FailedError{WriteFailed, l.writeErr}
	}
	return nil
}

func (l *Log) failed() error {
	if !l.unsynced {
		return nil
	}
	return &FailedError{NeedsBase, l.syncErr}
}

// wait waits for a change. mu is held before and after.
func (l *Log) wait() {
	changed := l.changed
	l.mu.Unlock()
	<-changed
	l.mu.Lock()
}

// announce wakes all who wait.
func (l *Log) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// SetPolicy changes the policy, for those who wait too.
func (l *Log) SetPolicy(policy Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy = policy
	l.announce()
}

// Retry tries again to write after a failure; call it each second while the State is WriteFailed. That it remains
// until what had to wait is as durable as its age asks for: with EverySecond, synced.
// nil is that nothing is failed of what it can mend.
func (l *Log) Retry() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy {
		l.wait()
	}
	if l.writeErr == nil || l.closed {
		return l.writing()
	}
	l.retried, l.writeErr = l.writeErr, nil
	l.round()
	if l.writeErr == nil && l.policy == EverySecond {
		l.catchUp()
	}
	l.retried = nil
	return l.writing()
}

// Set is the files that there are, to be read; its lock is the Log's. Nothing is to be appended, and
// no rewrite to run, for as long as it is used.
func (l *Log) Set() *Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Set{d: l.d, names: l.names, manifest: l.manifest.clone()}
}

// Close writes and syncs what it can, whatever the policy, and gives the lock of the folder back. It refuses
// with ErrRewriting while a rewrite runs, which its owner must end before. Another error says what is not safe; the
// Log is closed then.
func (l *Log) Close() error {
	if err := l.beginClose(); err != nil {
		return err
	}
	<-l.done
	var err error
	if l.Status().State == WriteFailed {
		err = l.Retry()
	}
	err = errors.Join(err, l.Sync())
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.busy || l.syncing {
		l.wait()
	}
	l.closed = true
	l.announce()
	return errors.Join(err, l.current.file.Close(), l.lock.Close())
}

func (l *Log) beginClose() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing:
		return ErrClosed
	case l.rewrite != nil:
		return ErrRewriting
	}
	l.closing = true
	close(l.stop)
	return nil
}
