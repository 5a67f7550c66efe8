package rdb

import (
	"io"
)

// sinkBytes is how much a sink that writes to a stream gathers before it does.
const sinkBytes = 64 << 10

// sink takes the bytes of an output in order, sums them, and remembers the first
// error of the writer; from then on it only counts what it is given.
type sink struct {
	to     io.Writer                        // nil if all bytes stay in buf
	give   func(full []byte) (empty []byte) // or else this takes what has gathered; see Parts
	buf    []byte
	crc    uint64
	summed int // buf[:summed] is in crc
	err    error

	pause func() bool // rests; false is to give up. nil if nobody wants that
	busy  int         // calls of relieve since it did
}

// put takes bytes. A long piece goes to the stream as it is.
func (s *sink) put(b []byte) {
	if s.to != nil && len(b) >= sinkBytes {
		s.flush()
		s.crc = updateCRC(s.crc, b)
		s.write(b)
		return
	}
	if s.give != nil {
		s.split(b)
		return
	}
	s.buf = append(s.buf, b...)
	s.relieve()
}

// split takes bytes so that no part grows beyond what one holds.
func (s *sink) split(b []byte) {
	for len(s.buf)+len(b) >= sinkBytes {
		n := max(sinkBytes-len(s.buf), 0)
		s.buf = append(s.buf, b[:n]...)
		b = b[n:]
		s.flush()
	}
	s.buf = append(s.buf, b...)
}

// relieve passes on what has gathered, if that is enough. Whoever appends to buf
// calls it now and then.
func (s *sink) relieve() {
	if s.pause != nil {
		s.rest()
	}
	if len(s.buf) >= sinkBytes && (s.to != nil || s.give != nil) {
		s.flush()
	}
}

// flush passes on all that has gathered.
func (s *sink) flush() {
	if s.give != nil {
		s.buf = s.give(s.buf)[:0]
		return
	}
	s.checksum()
	s.write(s.buf)
	s.buf, s.summed = s.buf[:0], 0
}

func (s *sink) write(b []byte) {
	if s.err == nil {
		_, s.err = s.to.Write(b)
	}
}

// checksum is that of all bytes taken so far.
func (s *sink) checksum() uint64 {
	s.crc = updateCRC(s.crc, s.buf[s.summed:])
	s.summed = len(s.buf)
	return s.crc
}
