package aof

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

// A rewrite makes a new base of the data as it was at one instant, while requests go on
// to a new incremental file. Steps, each of which may be the last one:
//
//	Begin    marks the instant in the stream of requests. It does not touch the disk,
//	         for it is called under the engine's lock.
//	a round  comes to the mark: syncs the old file, makes the new one, and a manifest
//	         with both. Only then goes anything into the new one, and is committed.
//	Finish   syncs the base, gives it its name, and writes the manifest of
//	         the new base and the new incremental file. The others become history.
//
// In the state NeedsBase the old file may have lost something in its middle, and nothing
// behind it may be loaded. So the new file is not in the manifest until Finish puts it there
// together with the base; until then nothing in it is promised to anybody.

// ErrRewriting is for a second rewrite while one runs.
var ErrRewriting = errors.New("aof: a rewrite runs already")

// Rewrite is a rewrite that has begun. One goroutine uses it.
type Rewrite struct {
	l    *Log
	at   int64 // the number at the instant
	seq  int64 // of the incremental file; 0 until it has one
	err  error // why it has none
	over bool

	kind BaseKind
	num  int64
	base disk.File
}

// Begin begins a rewrite at this instant: the base is to hold what everything appended so far has
// made, and nothing else. It is refused while writing fails. O(1), no waiting for the disk.
func (l *Log) Begin() (*Rewrite, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.rewrite != nil:
		return nil, ErrRewriting
	case l.closing:
		return nil, ErrClosed
	case l.writing() != nil:
		return nil, l.writing()
	}
	l.rewrite = &Rewrite{l: l, at: l.appended, num: l.nextBase}
	l.cut = l.rewrite
	l.nextBase++
	return l.rewrite, nil
}

// nextFile gives a rewrite its incremental file. Its caller is busy and holds mu.
func (l *Log) nextFile(r *Rewrite) {
	l.beginSync() // nobody else may sync a file that is about to be closed
	defer l.endSync()
	l.cut = nil
	if !l.unsynced {
		l.sync()
	}
	old, listed, next := l.current, !l.unsynced, l.manifest.clone()
	entry := Entry{Name: l.names.incr(l.nextIncr), Seq: l.nextIncr, Type: Incr}
	next.Incrs = append(next.Incrs, entry)
	l.nextIncr++
	l.mu.Unlock()
	file, err := l.makeIncr(entry, listed, next)
	l.mu.Lock()
	var unsure *unsureError
	switch {
	case errors.As(err, &unsure):
		// Either manifest may be the one on the disk. What goes into the old file would have the new one behind it, and
		// only the last one may be torn: so we go on with the new one, as if none named it.
		l.fail(old.seq, err)
		l.manifest, listed = next, false
	case err != nil:
		r.err = err
		return
	case listed:
		l.manifest = next
	}
	if !l.listed {
		l.strays = append(l.strays, Entry{Name: l.names.incr(old.seq), Seq: old.seq, Type: Incr})
	}
	l.listed = listed
	l.current, r.seq = appendFile{file: file, seq: entry.Seq}, entry.Seq
	if err := old.file.Close(); err != nil {
		l.fail(old.seq, err)
	}
}

// makeIncr makes a file, and the manifest name it. The file is there after an *unsureError, too.
func (l *Log) makeIncr(entry Entry, listed bool, next *Manifest) (disk.File, error) {
	name := l.names.in(entry.Name)
	file, err := l.d.Create(name)
	if err != nil || !listed {
		return file, err
	}
	err = writeManifest(l.d, l.names, next)
	var unsure *unsureError
	if err == nil || errors.As(err, &unsure) {
		return file, err
	}
	return nil, errors.Join(err, file.Close(), l.d.Remove(name))
}

// Create makes the file to which the base is written. It is the rewrite's: Finish or Abort closes it.
func (r *Rewrite) Create(kind BaseKind) (disk.File, error) {
	if r.base != nil || r.over {
		return nil, errors.New("aof: the base has been made already")
	}
	file, err := r.l.d.Create(r.l.names.in(r.l.names.tempBase(r.num, kind)))
	if err != nil {
		return nil, err
	}
	r.base, r.kind = file, kind
	return file, nil
}

// Finish makes what was written to the file of Create the base. When it returns without error, that and
// what was committed since is what is loaded, and a Log that needed a base is Healthy, if nothing has failed since.
// After an error it is as after Abort.
func (r *Rewrite) Finish() error {
	if r.over || r.base == nil {
		return errors.New("aof: there is no base to finish a rewrite with")
	}
	l := r.l
	// The base is on the disk before anybody waits for the log.
	size, err := r.base.Size()
	err = errors.Join(err, r.base.SyncAside())
	if err == nil {
		err = l.until(func() (bool, error) { return r.seq != 0, errors.Join(r.err, l.writing()) })
	}
	if err != nil {
		return errors.Join(err, r.Abort())
	}
	if err := r.base.Close(); err != nil {
		r.base = nil
		return errors.Join(err, r.Abort())
	}
	r.base, r.over = nil, true
	if err = r.install(size); err == nil {
		l.removeHistory()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rewrite = nil
	l.announce()
	return err
}

// install names the base and makes the manifest say so.
func (r *Rewrite) install(size int64) error {
	l := r.l
	temp, name := l.names.in(l.names.tempBase(r.num, r.kind)), l.names.base(r.num, r.kind)
	if err := l.d.Rename(temp, l.names.in(name)); err != nil {
		return errors.Join(err, l.d.Remove(temp))
	}
	next := &Manifest{Base: &Entry{Name: name, Seq: r.num, Type: Base}}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginSync()
	defer l.endSync()
	for _, old := range slices.Concat(l.manifest.History, l.manifest.Files(), l.strays) {
		if old.Type != Incr || old.Seq < r.seq {
			next.History = append(next.History, Entry{Name: old.Name, Seq: old.Seq, Type: History})
		}
	}
	next.Incrs = []Entry{{Name: l.names.incr(r.seq), Seq: r.seq, Type: Incr}}
	file, upTo, listed := l.current.file, l.written, l.listed
	l.mu.Unlock()
	err := r.replace(file, listed, next)
	l.mu.Lock()
	var unsure *unsureError
	if errors.As(err, &unsure) {
		l.manifest = next // it may be: see nextFile
		l.fail(r.seq, err)
	}
	var hurt *hurtError
	if errors.As(err, &hurt) {
		l.fail(r.seq, err)
	}
	if err != nil {
		return err
	}
	l.manifest, l.strays = next, nil
	l.totalSize = size + l.current.size
	l.baseSize = l.totalSize
	if !listed {
		l.listed, l.synced, l.handed = true, max(l.synced, upTo), l.written
	}
	if l.hurt < r.seq && l.unsynced {
		l.mended()
	}
	return nil
}

// mended notes that nothing that a sync has failed for counts any more. syncing is the caller's, mu is held before and
// after.
func (l *Log) mended() {
	l.unsynced, l.syncErr = false, nil
	l.mu.Unlock()
	_ = l.d.Remove(l.names.in(l.names.unsynced())) // if it stays the next process writes everything anew for nothing
	l.mu.Lock()
}

// replace makes next the manifest. What was written to the incremental file is durable before, if
// the manifest did not name it yet.
func (r *Rewrite) replace(file disk.File, listed bool, next *Manifest) error {
	l := r.l
	var err error
	if !listed {
		if err = file.Sync(); err != nil {
			err = &hurtError{err}
		}
	}
	if err == nil {
		err = writeManifest(l.d, l.names, next)
	}
	var unsure *unsureError
	if err != nil && !errors.As(err, &unsure) {
		err = errors.Join(err, l.d.Remove(l.names.in(next.Base.Name)))
	}
	return err
}

// hurtError says that the incremental file of a rewrite could not be synced.
type hurtError struct{ err error }

func (e *hurtError) Error() string { return e.err.Error() }
func (e *hurtError) Unwrap() error { return e.err }

// Abort ends a rewrite. The old base and all incremental files stay. After Finish it does nothing.
func (r *Rewrite) Abort() error {
	if r.over {
		return nil
	}
	r.over = true
	l := r.l
	l.mu.Lock()
	for l.busy && l.cut == r {
		l.wait() // perhaps it is being given its file
	}
	if l.cut == r {
		l.cut = nil
	}
	l.rewrite = nil
	l.announce()
	l.mu.Unlock()
	if r.kind == "" {
		return nil
	}
	var err error
	if r.base != nil {
		err = r.base.Close()
	}
	return errors.Join(err, l.d.Remove(l.names.in(l.names.tempBase(r.num, r.kind))))
}

// removeHistory removes the files of old, and then what the manifest says of them. What cannot be
// removed stays in the manifest, for the next time. Its caller is the only one who changes the manifest, and
// does not hold mu.
func (l *Log) removeHistory() {
	l.mu.Lock()
	next := l.manifest.clone()
	l.mu.Unlock()
	history := next.History
	next.History = nil
	var failed error
	for _, old := range history {
		if old.Name == lockName || old.Name == l.names.Manifest() || slices.ContainsFunc(next.Files(), func(e Entry) bool { return e.Name == old.Name }) {
			continue // a manifest that somebody has edited
		}
		if err := l.d.Remove(l.names.in(old.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
			next.History = append(next.History, old)
		}
	}
	if err := writeManifest(l.d, l.names, next); err != nil {
		failed = errors.Join(failed, err)
		next.History = history
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.manifest, l.leftover = next, failed
}
