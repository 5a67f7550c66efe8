package rdb

import (
	"encoding/binary"
	"io"
)

// A file that is written in parts. Whoever encodes and whoever writes to the disk can
// then be two: the one holds a lock and must not wait, the other has time. The first
// gathers parts with a Writer of NewPartsWriter, which are handed on without being copied
// and without being summed; the second puts them through a Seal, which sums them and
// adds the checksum at the end.

// PartBytes is how large a buffer holds any part: some items of the format are appended
// before anybody looks whether the part is full.
const PartBytes = sinkBytes + 512

// NewPartsWriter returns a Writer that writes a file in parts, without its checksum.
// Each part that is full, and at Close the last one, is handed to give, who has it from
// then on and returns a buffer for the next; its contents do not matter.
func NewPartsWriter(give func(full []byte) (empty []byte)) *Writer {
	w := &Writer{e: encoder{sink: sink{give: give}}, db: -1}
	w.e.buf = make([]byte, 0, PartBytes)
	w.begin()
	return w
}

// Sibling returns a Writer for records of the same file. Its parts are complete records:
// after Cut of both they may stand between those of w.
func (w *Writer) Sibling(give func(full []byte) (empty []byte)) *Writer {
	return &Writer{e: encoder{sink: sink{give: give, buf: make([]byte, 0, PartBytes)}}, db: -1}
}

// Cut hands on what has gathered as a part of its own, and assumes nothing of what
// will stand before the next one.
func (w *Writer) Cut() {
	w.db = -1
	if len(w.e.buf) > 0 {
		w.e.flush()
	}
}

// Seal writes the parts of a file to a stream and ends the file with its checksum.
type Seal struct {
	to   io.Writer
	sums bool
	crc  uint64
}

// NewSeal returns a Seal. If it does not sum, the checksum is 0: nobody checks it.
func NewSeal(to io.Writer, sums bool) *Seal { return &Seal{to: to, sums: sums} }

// Write writes the next part.
func (s *Seal) Write(part []byte) (int, error) {
	if s.sums {
		s.crc = updateCRC(s.crc, part)
	}
	return s.to.Write(part)
}

// Close writes the checksum, after the last part. It does not close the stream.
func (s *Seal) Close() error {
	_, err := s.to.Write(binary.LittleEndian.AppendUint64(nil, s.crc))
	return err
}
