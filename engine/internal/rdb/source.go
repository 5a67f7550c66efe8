package rdb

import (
	"io"
	"math"
)

const (
	sourceBytes = 64 << 10 // the buffer of a source that reads from a stream
	emptyReads  = 100      // after so many reads of nothing a reader is taken for broken
)

// source hands out the bytes of an input in order, knows their position and their
// checksum, and remembers what went wrong first; from then on all it hands out is
// zeros and nothing.
//
// It works on a stream through a buffer, or on bytes that are all there, which are
// then the buffer.
type source struct {
	from io.Reader // nil if all bytes are in buf
	buf  []byte
	pos  int // what was handed out is before pos
	end  int // what was received is before end

	base   int64 // the position of buf[0] in the input
	crc    uint64
	summed int   // buf[:summed] is in crc
	item   int64 // where the item begins that is being read, for errors
	err    *Error
}

func newSource(from io.Reader) source { return source{from: from, buf: make([]byte, sourceBytes)} }

func newByteSource(b []byte) source { return source{buf: b, end: len(b)} }

// failed reports whether something went wrong.
func (s *source) failed() bool { return s.err != nil }

// fail remembers what is wrong with the present item.
func (s *source) fail(reason string) {
	if s.err == nil {
		s.err = &Error{Offset: s.item, Reason: reason}
	}
	s.pos = s.end // nothing more to be had
}

// failRead remembers that the input does not go on.
func (s *source) failRead(err error) {
	if s.err == nil {
		s.err = &Error{Offset: s.base + int64(s.end), Reason: "the input ends too early", Err: err}
		if err != io.ErrUnexpectedEOF { //nolint:errorlint // it is the one value that fill makes of io.EOF
			s.err.Reason = "the input cannot be read"
		}
	}
	s.pos = s.end
}

// offset is the position of the next byte.
func (s *source) offset() int64 { return s.base + int64(s.pos) }

// begin notes that an item begins here.
func (s *source) begin() { s.item = s.offset() }

// checksum is that of all bytes handed out so far.
func (s *source) checksum() uint64 {
	s.crc = updateCRC(s.crc, s.buf[s.summed:s.pos])
	s.summed = s.pos
	return s.crc
}

// have makes the next n bytes, not more than the buffer holds, be in the buffer.
func (s *source) have(n int) bool {
	if s.end-s.pos >= n && s.err == nil {
		return true
	}
	return s.err == nil && s.fill(n)
}

func (s *source) fill(n int) bool {
	if s.from == nil {
		s.failRead(io.ErrUnexpectedEOF)
		return false
	}
	s.checksum()
	s.base += int64(s.pos)
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos, s.summed = 0, 0
	for idle := 0; s.end < n; {
		got, err := s.from.Read(s.buf[s.end:])
		s.end += got
		if idle++; got > 0 {
			idle = 0
		}
		switch {
		case s.end >= n:
			return true
		case err == io.EOF:
			s.failRead(io.ErrUnexpectedEOF)
			return false
		case err == nil && idle == emptyReads:
			err = io.ErrNoProgress
		}
		if err != nil {
			s.failRead(err)
			return false
		}
	}
	return true
}

// byte returns the next byte.
func (s *source) byte() byte {
	if !s.have(1) {
		return 0
	}
	s.pos++
	return s.buf[s.pos-1]
}

// zeros is what a failed source hands out instead of a number.
var zeros [16]byte

// fixed returns the next n bytes, at most 16, valid until the next call.
func (s *source) fixed(n int) []byte {
	if !s.have(n) {
		return zeros[:n]
	}
	s.pos += n
	return s.buf[s.pos-n : s.pos]
}

// take returns the next n bytes, however many. If they are not owned they are
// valid until the next call only. A long piece of a stream grows as it arrives.
func (s *source) take(n uint64) (b []byte, owned bool) {
	switch {
	case s.err != nil:
		return nil, false
	case n <= uint64(s.end-s.pos):
		s.pos += int(n)
		return s.buf[s.pos-int(n) : s.pos], false
	case s.from == nil || n > math.MaxInt64:
		s.pos = s.end
		s.failRead(io.ErrUnexpectedEOF)
		return nil, false
	case n <= uint64(len(s.buf)):
		if !s.have(int(n)) {
			return nil, false
		}
		s.pos += int(n)
		return s.buf[s.pos-int(n) : s.pos], false
	}
	for left := n; left > 0; {
		if !s.have(1) {
			return nil, false
		}
		piece := s.buf[s.pos:min(uint64(s.end), uint64(s.pos)+left)]
		b = append(b, piece...)
		s.pos += len(piece)
		left -= uint64(len(piece))
	}
	return b, true
}
