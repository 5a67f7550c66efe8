package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

const (
	fileMode     = 0o600 // what a history tells is nobody else's business
	folderMode   = 0o700
	segmentBytes = 64 << 20
	lockName     = "lock"
)

var (
	// ErrLocked: another process, or another Sink of this one, writes this folder.
	ErrLocked = errors.New("somebody else writes this folder")
	// ErrReadOnly: the Sink was opened with ReadOnly.
	ErrReadOnly = errors.New("the history was opened to be read only")
)

// Option is a setting of Open.
type Option func(*Sink)

// SegmentBytes is how large a file grows before the next one begins, 64 MiB if it is not said.
func SegmentBytes(n int64) Option { return func(s *Sink) { s.full = n } }

// ReadOnly opens a folder that somebody else may be writing. It takes no lock and changes nothing.
func ReadOnly() Option { return func(s *Sink) { s.readOnly = true } }

// Salvage has Read go on behind what is damaged, and Open accept a last file that is damaged; each hole is told to report,
// by those who read.
func Salvage(report func(*Damage)) Option { return func(s *Sink) { s.salvage = report } }

// Torn is the end of the last file that a crash has cut off. What was there was never acknowledged.
type Torn struct {
	File   string
	Offset int64  // where it begins
	Bytes  int64  // how much there was
	After  string // the ID of the last entry before it
}

func (t *Torn) String() string {
	return fmt.Sprintf("%s, offset %d: the last %d bytes are the beginning of a call that a crash cut off, after %q", t.File, t.Offset, t.Bytes, t.After)
}

// Open opens the history in a folder, to write and to read it; if there is no folder, it is made. What a crash has cut off at the
// end is removed, and Repaired says so.
func Open(folder string, options ...Option) (*Sink, error) {
	s := &Sink{folder: folder, full: segmentBytes}
	for _, option := range options {
		option(s)
	}
	if s.full <= 0 {
		return nil, fmt.Errorf("open the history in %s: files of %d bytes (give SegmentBytes more than 0)", folder, s.full)
	}
	err := s.open()
	if err != nil {
		return nil, fmt.Errorf("open the history in %s: %w", folder, errors.Join(err, s.release()))
	}
	return s, nil
}

func (s *Sink) open() error {
	if s.readOnly {
		_, err := os.ReadDir(s.folder)
		return err
	}
	if err := makeFolder(s.folder); err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	if err := s.removeUnfinished(); err != nil {
		return err
	}
	segments, pruned, err := list(s.folder)
	if err != nil || len(segments) == 0 {
		return err
	}
	if s.tip, err = findTip(segments, pruned, s.salvage != nil); err != nil {
		return err
	}
	last := segments[len(segments)-1]
	if s.segment = last.number; s.damaged {
		s.torn = nil // a damaged file stays as it is; the next entry begins a new one
		return nil
	}
	return s.resume(last)
}

// tip is the end of a history.
type tip struct {
	queue    string
	number   uint64 // of the last entry
	position sequence.ID
	mark     mark
	size     int64 // of the last file, up to where its entries end
	torn     *Torn
	damaged  bool // the last file is
}

// findTip looks for the last entry in the last file; if that is damaged, it fails, or reads all files as a reader would.
func findTip(segments []segment, pruned sequence.ID, salvage bool) (t tip, err error) {
	if len(segments) == 0 {
		return t, nil
	}
	last := segments[len(segments)-1]
	w, damage := &walk{segments: []segment{last}, expect: last.number}, (*Damage)(nil)
	h, err := readHeader(last)
	if err == nil {
		w.number, w.id = h.before, h.after
	}
	for {
		w.ctx = context.Background() // it is one file, or nobody's hurry
		w.entry = func(record) error { return nil }
		w.found = func(d *Damage) error { damage = cmp.Or(damage, d); return nil }
		if err := w.run(); err != nil {
			return t, err
		}
		if damage == nil || len(w.segments) == len(segments) {
			break
		}
		if !salvage {
			return t, damage
		}
		w = &walk{segments: segments, after: pruned}
	}
	if damage != nil && !salvage {
		return t, damage
	}
	return tip{queue: w.queue, number: w.number, position: w.id, mark: h.mark, size: w.end, torn: w.torn, damaged: damage != nil}, nil
}

// resume goes on in the last file.
func (s *Sink) resume(last segment) (err error) {
	if s.file, err = os.OpenFile(last.path, os.O_RDWR, 0); err != nil || s.torn == nil {
		return err
	}
	return errors.Join(s.file.Truncate(s.size), s.file.Sync())
}

func (s *Sink) takeLock() (err error) {
	path := filepath.Join(s.folder, lockName)
	if s.lock, err = openLocked(path); err != nil {
		if text, _ := os.ReadFile(path); errors.Is(err, ErrLocked) && len(text) > 0 && len(text) < 20 {
			err = fmt.Errorf("process %s: %w (end it, or read with files.ReadOnly)", strings.TrimSpace(string(text)), err)
		}
		return err
	}
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := s.lock.WriteAt([]byte(text), 0); err != nil {
		return nil // on a full disk: the name is only for people
	}
	return s.lock.Truncate(int64(len(text)))
}

// removeUnfinished removes files that have no whole header: nothing was ever in them.
func (s *Sink) removeUnfinished() error {
	names, err := os.ReadDir(s.folder)
	for _, entry := range names {
		if name, is := strings.CutSuffix(entry.Name(), unfinished); is && segmentNumber(name) != 0 {
			err = errors.Join(err, os.Remove(filepath.Join(s.folder, entry.Name())))
		}
	}
	return err
}

// makeFolder makes a folder durable, and those that it is in.
func makeFolder(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var around []string
	for missing := path; ; missing = filepath.Dir(missing) {
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		around = append(around, filepath.Dir(missing))
	}
	if err := os.MkdirAll(path, folderMode); err != nil {
		return err
	}
	for _, made := range around {
		if err := syncFolder(made); err != nil {
			return err
		}
	}
	return nil
}
