package aof

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
)

// At the start: Open finds what there is, the caller loads it, Start goes on with it.

const lockName = "signalbox.lock"

// Source is a file that is to be loaded.
type Source struct {
	Entry
	SizeBytes int64
	Last      bool // only the last one may be torn
}

// Set is the files of a folder before they are appended to. It has the lock of the folder
// until it is closed, or the Log that it starts.
type Set struct {
	// Removed are the files that a crash had left over.
	Removed []string
	// Upgraded says that the one file of an older Redis has become the base of a set.
	Upgraded bool
	// Unsynced says that a sync has failed for the process before, and no rewrite has mended that: what is loaded is
	// perhaps in the system's memory only, and no sync brings it to the disk. Start with NeedsBase.
	Unsynced bool

	d        disk.Disk
	names    Names
	lock     io.Closer
	manifest *Manifest
	lastSeq  int64 // the largest number of any incremental file in the folder
	baseSeq  int64 // the largest number of any base
}

// Open takes the lock of a folder, which is made if it is not there, and finds out what is
// in it. The error is a *disk.LockedError if another engine has it, and a *ManifestError if
// the manifest is damaged; nothing is changed then.
func Open(d disk.Disk, names Names) (_ *Set, err error) {
	if err := names.check(); err != nil {
		return nil, err
	}
	if err := errors.Join(d.MakeFolder(names.Folder), d.SyncFolder(".")); err != nil {
		return nil, err
	}
	lock, err := d.Lock(names.in(lockName))
	if err != nil {
		return nil, err
	}
	s := &Set{d: d, names: names, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	s.manifest, err = readManifest(d, names)
	found := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		s.manifest, err = &Manifest{}, nil
	}
	if err == nil {
		err = s.upgrade()
	}
	if err == nil {
		_, err = s.Files()
	}
	if err == nil {
		err = s.sweep(found)
	}
	if err == nil {
		s.Unsynced, err = s.hasUnsynced()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// upgrade takes the file of a Redis before version 7 into the folder, or goes on with that
// where a crash has interrupted it.
func (s *Set) upgrade() error {
	_, err := s.d.Size(s.names.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m := s.manifest
	begun := false
	if m.Base != nil && m.Base.Name == s.names.File && len(m.Incrs) == 0 {
		_, err := s.d.Size(s.names.in(s.names.File))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		begun = err != nil
	}
	if !begun && (m.Base != nil || len(m.Incrs) > 0) {
		return nil // it is of old
	}
	m.Base = &Entry{Name: s.names.File, Seq: 1, Type: Base}
	if err := writeManifest(s.d, s.names, m); err != nil {
		return err
	}
	if err := s.d.Rename(s.names.File, s.names.in(s.names.File)); err != nil {
		return err
	}
	s.Upgraded = true
	// The new place first: the file must be in one of the two.
	return errors.Join(s.d.SyncFolder(s.names.Folder), s.d.SyncFolder("."))
}

// Empty reports that there is nothing to load: no set has been begun here.
func (s *Set) Empty() bool { return len(s.manifest.Files()) == 0 }

// Files are what is to be loaded, in order. The error says which file is missing.
func (s *Set) Files() ([]Source, error) {
	entries := s.manifest.Files()
	files := make([]Source, 0, len(entries))
	for i, entry := range entries {
		size, err := s.d.Size(s.names.in(entry.Name))
		if err != nil {
			return nil, fmt.Errorf("aof: a file that the manifest names: %w", err)
		}
		files = append(files, Source{Entry: entry, SizeBytes: size, Last: i == len(entries)-1})
	}
	return files, nil
}

// Open opens one of the Files to read it.
func (s *Set) Open(file Source) (io.ReadCloser, error) { return s.d.Open(s.names.in(file.Name)) }

// Trim cuts the last file to a size, for a *TornError with aof-load-truncated. That is
// durable when it returns.
func (s *Set) Trim(sizeBytes int64) error {
	files := s.manifest.Files()
	if len(files) == 0 {
		return errors.New("aof: there is no file to trim")
	}
	file, err := s.d.Append(s.names.in(files[len(files)-1].Name))
	if err != nil {
		return err
	}
	if err = file.Truncate(sizeBytes); err == nil {
		if err = file.Sync(); err != nil {
			err = errors.Join(err, markUnsynced(s.d, s.names))
		}
	}
	return errors.Join(err, file.Close())
}

// Close gives the lock back; not after Start, when the Log does that.
func (s *Set) Close() error { return s.lock.Close() }

// sweep removes temporary files and, if there is a manifest, the files of a later rewrite that
// never came to be in it. Without one nothing else is removed: who knows what became of it.
func (s *Set) sweep(found bool) error {
	present, err := s.d.List(s.names.Folder)
	if err != nil {
		return err
	}
	s.lastSeq, s.baseSeq = s.manifest.lastIncrSeq(), s.manifest.baseSeq()
	for _, name := range present {
		kind, seq := s.numbered(name)
		newer := kind == Base && seq > s.manifest.baseSeq() || kind == Incr && seq > s.manifest.lastIncrSeq()
		if s.isTemp(name) || found && newer && !s.Empty() && !s.named(name) {
			if err := s.d.Remove(s.names.in(name)); err != nil {
				return err
			}
			s.Removed = append(s.Removed, name)
			continue
		}
		switch kind {
		case Base:
			s.baseSeq = max(s.baseSeq, seq)
		case Incr:
			s.lastSeq = max(s.lastSeq, seq)
		}
	}
	return nil
}

func (s *Set) hasUnsynced() (bool, error) {
	_, err := s.d.Size(s.names.in(s.names.unsynced()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *Set) named(name string) bool {
	is := func(e Entry) bool { return e.Name == name }
	return slices.ContainsFunc(s.manifest.Files(), is) || slices.ContainsFunc(s.manifest.History, is)
}

// isTemp reports whether a file is one that was still being written.
func (s *Set) isTemp(name string) bool {
	rest, temp := strings.CutPrefix(name, tempPrefix)
	return temp && !s.named(name) && (strings.HasPrefix(rest, s.names.File) || strings.HasPrefix(rest, rewriteName))
}

var numberedName = regexp.MustCompile(`^\.([0-9]{1,18})\.(?:(base)\.(?:rdb|aof)|(incr)\.aof)$`)

// numbered takes the name of a file of a set apart.
func (s *Set) numbered(name string) (kind Type, seq int64) {
	rest, ok := strings.CutPrefix(name, s.names.File)
	parts := numberedName.FindStringSubmatch(rest)
	if !ok || parts == nil {
		return 0, 0
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	switch {
	case err != nil:
		return 0, 0
	case parts[2] != "":
		return Base, seq
	}
	return Incr, seq
}
