package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/internal/sequence"
)

// segment is a file of the history.
type segment struct {
	path   string
	number uint64
	size   int64 // up to which it is read
}

// list returns a folder's segments in order, and the ID up to which it was pruned. That is asked last: who prunes says so first.
func list(folder string) (segments []segment, pruned sequence.ID, err error) {
	names, err := os.ReadDir(folder)
	if err != nil {
		return nil, pruned, err
	}
	for _, entry := range names {
		number := segmentNumber(entry.Name())
		if number == 0 || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, pruned, err
		}
		segments = append(segments, segment{filepath.Join(folder, entry.Name()), number, info.Size()})
	}
	slices.SortFunc(segments, func(a, b segment) int { return int(a.number) - int(b.number) })
	pruned, err = readPruned(folder)
	return segments, pruned, err
}

// walk reads a history from segment to segment. It believes a record that is whole and comes after the one before; what is
// between two such records, and should not be, is a hole. A hole is known in full when the record behind it is found.
//
// In the last segment nobody knows of what comes after the last whole record but that it was never acknowledged, or that the
// disk has damaged it: a crash makes the first, so that is what it is taken for (Torn), if the file has no other damage.
type walk struct {
	ctx      context.Context
	segments []segment
	after    sequence.ID
	entry    func(record) error  // each entry that comes after that ID
	found    func(*Damage) error // each hole that has, or may have, entries after it

	queue   string // as the headers say
	expect  uint64 // the segment that comes next
	number  uint64 // of the last entry
	id      sequence.ID
	end     int64  // where it ends, in the last segment read
	counted uint64 // entries that a header knows of
	hole    *Damage
	before  uint64 // the number of the last entry before the hole
	harmed  bool   // this segment is damaged: so what is at its end is no crash's doing
	torn    *Torn
	read    int // records, since ctx was looked at
}

// run reads from where the entries after w.after begin.
func (w *walk) run() error {
	start := 0
	w.expect = max(w.expect, 1)
	for i := len(w.segments) - 1; i >= 0 && w.after != (sequence.ID{}); i-- {
		h, err := readHeader(w.segments[i])
		if err == nil && !h.after.After(w.after) && h.segment == w.segments[i].number {
			start, w.expect, w.number, w.id = i, h.segment, h.before, h.after
			break
		}
	}
	return w.from(start)
}

// from reads from a segment on.
func (w *walk) from(start int) error {
	for i := start; i < len(w.segments); i++ {
		if err := w.segment(w.segments[i], i == len(w.segments)-1); err != nil {
			return err
		}
	}
	if w.hole == nil {
		return nil
	}
	return w.settle(max(w.counted, w.number), "")
}

func readHeader(s segment) (header, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return header{}, err
	}
	h, err := (&scan{file: file, size: min(s.size, headerBytes+recordBytes)}).header()
	return h, errors.Join(err, file.Close())
}

func (w *walk) segment(s segment, last bool) error {
	if s.number != w.expect {
		missing := fmt.Sprintf("segment %d is missing", w.expect)
		if s.number > w.expect+1 {
			missing = fmt.Sprintf("segments %d to %d are missing", w.expect, s.number-1)
		}
		w.damaged(filepath.Join(filepath.Dir(s.path), segmentName(w.expect)), 0, 0, missing)
	}
	w.expect = s.number + 1
	file, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	scan := &scan{file: file, size: s.size}
	w.end, w.harmed = headerBytes, false
	if w.header(s, scan, &err) {
		err = w.records(s, scan, last)
	}
	return errors.Join(err, file.Close())
}

// header reports whether the records of a segment are to be read.
func (w *walk) header(s segment, scan *scan, failed *error) bool {
	h, err := scan.header()
	switch {
	case errors.Is(err, history.ErrOtherVersion):
		*failed = fmt.Errorf("read the history: %s: %w", s.path, err)
		return false
	case err != nil:
		w.damaged(s.path, 0, min(s.size, headerBytes), err.Error())
		w.harmed = true
		return true
	case h.segment != s.number:
		w.damaged(s.path, 0, s.size, fmt.Sprintf("by its header it is segment %d", h.segment))
		return false
	case w.queue != "" && w.queue != h.queue:
		w.damaged(s.path, 0, s.size, fmt.Sprintf("by its header it is of queue %.100q, those before of %.100q", h.queue, w.queue))
		return false
	}
	w.queue, w.counted = h.queue, h.before
	if h.before != w.number || h.after != w.id {
		w.damaged(s.path, 0, 0, fmt.Sprintf("%d entries come before it by its header, and %d are there", h.before, w.number))
	}
	if h.before > w.number && h.after.After(w.id) {
		w.number, w.id = h.before, h.after
	}
	return true
}

func (w *walk) records(s segment, scan *scan, last bool) error {
	for offset := int64(headerBytes); offset < s.size; {
		r, end, err := scan.record(offset)
		if err != nil {
			next := scan.next(offset + 1)
			if last && !w.harmed && w.cutOff(scan, next) {
				w.torn = &Torn{File: s.path, Offset: offset, Bytes: s.size - offset, After: w.id.String()}
				return nil
			}
			w.damaged(s.path, offset, next-offset, err.Error())
			w.harmed, offset = true, next
			continue
		}
		switch {
		case r.number <= w.number || !r.id.After(w.id):
			w.damaged(s.path, offset, end-offset, fmt.Sprintf("entry %d (%s) is in the place of another", r.number, r.id))
			w.harmed, offset = true, end
			continue
		case r.number > w.number+1:
			w.damaged(s.path, offset, 0, "entries are missing")
			w.harmed = true
		}
		if err := w.take(r); err != nil {
			return err
		}
		offset, w.end = end, end
	}
	return nil
}

// cutOff reports whether what is not whole before an offset may be of a call that a crash cut off: if no later call was made.
func (w *walk) cutOff(scan *scan, offset int64) bool {
	for offset < scan.size {
		behind, end, err := scan.record(offset)
		if err != nil {
			end = scan.next(offset + 1)
		} else if behind.onDisk() > w.number {
			return false
		}
		offset = end
	}
	return true
}

// take is for the record that comes next.
func (w *walk) take(r record) error {
	if w.hole != nil {
		if !r.id.After(w.after) {
			w.hole = nil // nobody asks for what is there
		} else if err := w.settle(r.number-1, r.id.String()); err != nil {
			return err
		}
	}
	w.number, w.id = r.number, r.id
	if w.read++; w.read%256 == 0 {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
	}
	if !r.id.After(w.after) {
		return nil
	}
	return w.entry(r)
}

// damaged begins a hole. If there is one already, it is as large as both.
func (w *walk) damaged(path string, offset, size int64, what string) {
	switch h := w.hole; {
	case h == nil:
		w.before = w.number
		w.hole = &Damage{File: path, Offset: offset, Bytes: size, After: w.id.String(), What: what}
	case h.File == path && size > 0:
		h.Bytes = offset + size - h.Offset
	}
}

// settle ends a hole. So many entries should have been read before what is behind it.
func (w *walk) settle(number uint64, before string) error {
	hole := w.hole
	w.hole, hole.Before, hole.Lost = nil, before, number-w.before
	return w.found(hole)
}
