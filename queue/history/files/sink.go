package files

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// Sink keeps a history in a folder. It may be used by several goroutines at once.
type Sink struct {
	folder   string
	full     int64
	readOnly bool
	salvage  func(*Damage)

	mu sync.Mutex
	tip
	segment uint64   // the last one's number
	file    *os.File // the last one; nil if the next entry begins another
	excess  bool     // the file may be longer than tip.size, by a call that failed
	lock    *os.File
	closed  bool
	buffer  []byte
}

var _ history.Sink = (*Sink)(nil)

// Repaired is what Open has removed from the end of the history, nil if a crash has cut nothing off.
func (s *Sink) Repaired() *Torn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.torn
}

// Queue is the queue whose history it keeps, "" for a new one.
func (s *Sink) Queue(ctx context.Context) (string, error) {
	t, err := s.now(ctx)
	return t.queue, err
}

// Position is the ID of the last entry kept, "" if there is none.
func (s *Sink) Position(ctx context.Context) (string, error) {
	t, err := s.now(ctx)
	return t.position.String(), err
}

func (s *Sink) now(ctx context.Context) (tip, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil || !s.readOnly {
		return s.tip, err
	}
	segments, pruned, err := list(s.folder)
	if err != nil {
		return tip{}, err
	}
	t, err := findTip(segments, pruned, s.salvage != nil)
	if err != nil {
		return tip{}, fmt.Errorf("look where the history in %s ends: %w", s.folder, err)
	}
	return t, nil
}

func (s *Sink) usable(ctx context.Context) error {
	if s.closed {
		return fmt.Errorf("the history in %s: %w", s.folder, os.ErrClosed)
	}
	return context.Cause(ctx)
}

// Append keeps entries, and returns when they are on disk. When it fails, it has kept none, and may be called again.
func (s *Sink) Append(ctx context.Context, queue string, entries []history.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.append(ctx, queue, entries)
	if err != nil {
		return fmt.Errorf("keep the history of queue %q in %s: %w", queue, s.folder, err)
	}
	return nil
}

func (s *Sink) append(ctx context.Context, queue string, entries []history.Entry) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	switch {
	case s.readOnly:
		return ErrReadOnly
	case queue == "" || len(queue) > mostName:
		return fmt.Errorf("a queue's name has 1 to %d bytes", mostName)
	case s.queue != "" && s.queue != queue:
		return fmt.Errorf("%w: the folder has that of %q (give each queue a folder of its own)", history.ErrOtherQueue, s.queue)
	}
	fresh, err := sequence.Kept{Seen: s.position, Position: s.position, Read: s.read}.New(ctx, entries)
	if err != nil || len(fresh) == 0 {
		return err
	}
	for _, entry := range fresh {
		if len(entry.Data) > mostData {
			return fmt.Errorf("entry %s has %d bytes, %d are the most", entry.ID, len(entry.Data), mostData)
		}
	}
	if s.file == nil || s.size >= s.full {
		if err := s.begin(queue); err != nil {
			return fmt.Errorf("begin a file: %w", err)
		}
	}
	return s.write(fresh)
}

// write adds entries to the last file.
func (s *Sink) write(entries []history.Entry) error {
	if s.excess {
		if err := s.file.Truncate(s.size); err != nil {
			return fmt.Errorf("remove what a call left that failed: %w", err)
		}
		s.excess = false
	}
	number, position := s.number, s.position
	s.buffer = s.buffer[:0]
	for i, entry := range entries {
		number++
		position, _ = sequence.Parse(entry.ID) // it was looked at before
		s.buffer = record{number, uint32(i), position, entry.Data}.append(s.buffer, s.mark)
	}
	_, err := s.file.WriteAt(s.buffer, s.size)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		s.excess = s.file.Truncate(s.size) != nil
		return fmt.Errorf("%w (nothing was kept; call again)", err)
	}
	s.number, s.position, s.size = number, position, s.size+int64(len(s.buffer))
	if cap(s.buffer) > 1<<20 {
		s.buffer = nil // one large call need not cost memory for good
	}
	return nil
}

// begin makes the next file. It has its name when it has a whole header: a name without one is damage.
func (s *Sink) begin(queue string) (err error) {
	h := header{version, newMark(), s.segment + 1, s.number, s.position, queue}
	path := filepath.Join(s.folder, segmentName(h.segment))
	file, err := os.OpenFile(path+unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(h.encode())
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(path+unfinished, path), syncFolder(s.folder)); err != nil {
		return err
	}
	if file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return err
	}
	old := s.file
	s.file, s.mark, s.size, s.segment, s.queue, s.excess = file, h.mark, headerBytes, h.segment, queue, false
	if old != nil {
		return old.Close() // all of it is on disk
	}
	return nil
}

// Read gives the entries after the one with that ID, "" for all, in order, as they were when it began. It ends with the first
// error; with Salvage damage is none.
func (s *Sink) Read(ctx context.Context, after string) iter.Seq2[history.Entry, error] {
	return func(yield func(history.Entry, error) bool) {
		s.mu.Lock()
		w, err := s.walk(ctx, after)
		s.mu.Unlock()
		s.follow(w, err, yield)
	}
}

// read is Read with mu held.
func (s *Sink) read(ctx context.Context, after string) iter.Seq2[history.Entry, error] {
	return func(yield func(history.Entry, error) bool) {
		w, err := s.walk(ctx, after)
		s.follow(w, err, yield)
	}
}

// walk is what there is to be read now. Called with mu held.
func (s *Sink) walk(ctx context.Context, after string) (*walk, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	from, err := sequence.ParseAfter(after)
	if err != nil {
		return nil, fmt.Errorf("read the history in %s: %w", s.folder, err)
	}
	segments, pruned, err := list(s.folder)
	if err != nil {
		return nil, err
	}
	if pruned.After(from) {
		from = pruned
	}
	if n := len(segments); n > 0 && s.file != nil && segments[n-1].number == s.segment {
		segments[n-1].size = s.size // what is behind it was not acknowledged
	}
	return &walk{ctx: ctx, segments: segments, after: from}, nil
}

// errEnough: the reader wants no more.
var errEnough = errors.New("the reader has stopped")

func (s *Sink) follow(w *walk, err error, yield func(history.Entry, error) bool) {
	if err == nil {
		w.found = func(d *Damage) error { return d }
		if s.salvage != nil {
			w.found = func(d *Damage) error { s.salvage(d); return nil }
		}
		w.entry = func(r record) error {
			if !yield(history.Entry{ID: r.id.String(), Data: append([]byte{}, r.data...)}, nil) {
				return errEnough
			}
			return nil
		}
		err = w.run()
	}
	if err != nil && !errors.Is(err, errEnough) {
		yield(history.Entry{}, err)
	}
}

// Close ends the writing; the next process may begin.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release()
}

func (s *Sink) release() error {
	var err error
	for _, file := range []*os.File{s.file, s.lock} { // the lock last
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	s.file, s.lock, s.closed = nil, nil, true
	return err
}
