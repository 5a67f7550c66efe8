package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Writer writes a file record by record, to a stream. Each method returns the
// first error that there was; after one nothing more is written.
type Writer struct {
	e      encoder
	db     int
	closed bool
}

// NewWriter returns a Writer. The records come in the order Aux, Function, and
// then for each database its Size, which may be missing, and its Keys; Close ends
// the file.
func NewWriter(to io.Writer) *Writer {
	w := &Writer{e: encoder{sink: sink{to: to}}, db: -1}
	w.begin()
	return w
}

func (w *Writer) begin() {
	w.e.buf = fmt.Appendf(w.e.buf, "%s%04d", magic, versionWritten)
}

var errClosed = errors.New("rdb: write after the end of the file")

// Write writes one record. What it is handed it has used up when it returns.
func (w *Writer) Write(record Record) error {
	e := &w.e
	switch {
	case e.err != nil:
		return e.err
	case w.closed:
		return errClosed
	}
	switch record := record.(type) {
	case Aux:
		e.buf = append(e.buf, opAux)
		e.textString(record.Name)
		e.textString(record.Value)
	case Function:
		e.buf = append(e.buf, opFunction)
		e.text(record.Code)
	case Size:
		w.selectDB(record.DB)
		e.buf = append(e.buf, opResize)
		e.length(record.Keys)
		e.length(record.Expires)
	case Key:
		return w.WriteKey(&record)
	}
	return e.err
}

// Buffered is how many bytes have been written that were not passed on yet.
func (w *Writer) Buffered() int { return len(w.e.buf) }

func (w *Writer) selectDB(db int) {
	if db == w.db {
		return
	}
	w.db = db
	w.e.buf = append(w.e.buf, opSelect)
	w.e.length(uint64(db))
}

// WriteKey is Write of a key, which it does not keep.
func (w *Writer) WriteKey(key *Key) error {
	switch {
	case w.e.err != nil:
		return w.e.err
	case w.closed:
		return errClosed
	}
	number, err := kind(key.Value)
	if err != nil {
		w.e.err = fmt.Errorf("key %q: %w", key.Name, err)
		return w.e.err
	}
	w.selectDB(key.DB)
	e := &w.e
	if key.ExpireAtMs != 0 {
		e.buf = append(e.buf, opExpireMs)
		e.timeMs(key.ExpireAtMs)
	}
	if key.IdleSec != 0 {
		e.buf = append(e.buf, opIdle)
		e.length(key.IdleSec)
	}
	if key.Freq != 0 || key.HasFreq {
		e.buf = append(e.buf, opFreq, key.Freq)
	}
	e.buf = append(e.buf, number)
	e.text(key.Name)
	e.value(key.Value)
	return e.err
}

// Close writes the end and the checksum, and all that was not written yet. It
// does not close the stream. Closing again does nothing.
func (w *Writer) Close() error {
	if w.closed || w.e.err != nil {
		return w.e.err
	}
	w.closed = true
	w.e.buf = append(w.e.buf, opEnd)
	if w.e.give == nil {
		w.e.buf = binary.LittleEndian.AppendUint64(w.e.buf, w.e.checksum())
	}
	w.e.flush()
	return w.e.err
}
