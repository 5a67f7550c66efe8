package resp

import (
	"math"
	"strconv"
	"strings"
)

// Writer appends replies to one buffer, which only grows until the owner
// resets or swaps it. Replies never fail: the bytes are all in memory, and
// sending them is the owner's business. Every method costs O(bytes written)
// and allocates only when the buffer must grow.
//
// An aggregate is written as its header followed by its elements; the writer
// does not count them, so the caller must write as many as announced.
//
// The zero value is ready for use and speaks RESP2.
type Writer struct {
	// Proto is the protocol version: 3 is RESP3, anything else is RESP2. It
	// may change between two replies, as HELLO does it.
	Proto int

	buf []byte
}

// Bytes returns what was written since the last Reset or Swap. The slice is
// valid until the next call that changes the buffer.
func (w *Writer) Bytes() []byte { return w.buf }

// Len returns the number of bytes written since the last Reset or Swap.
func (w *Writer) Len() int { return len(w.buf) }

// Cap returns how many bytes the buffer has room for before it grows.
func (w *Writer) Cap() int { return cap(w.buf) }

// Reset forgets what was written and keeps the memory.
func (w *Writer) Reset() { w.buf = w.buf[:0] }

// Truncate forgets everything after the first n bytes: with n = an earlier
// Len it takes back a reply. An n outside [0, Len] changes nothing.
func (w *Writer) Truncate(n int) {
	if n >= 0 && n <= len(w.buf) {
		w.buf = w.buf[:n]
	}
}

// Swap hands the written bytes over to the caller, who owns them from here
// on, and goes on writing into next[:0]. Two buffers that change places let
// one goroutine send while another writes.
func (w *Writer) Swap(next []byte) []byte {
	written := w.buf
	w.buf = next[:0]
	return written
}

// SimpleString writes a status such as OK. CR and LF in s become spaces.
func (w *Writer) SimpleString(s string) { w.line('+', s) }

// Error writes an error; s holds the code and the text ("ERR syntax error").
// CR and LF in s become spaces.
func (w *Writer) Error(s string) { w.line('-', s) }

// Int writes an integer.
func (w *Writer) Int(n int64) { w.header(':', n) }

// Bulk writes a string of any bytes. A nil b is the empty string, not a
// null.
func (w *Writer) Bulk(b []byte) {
	w.header('$', int64(len(b)))
	if need := len(w.buf) + len(b) + 2; len(b) >= largeBytes && need > cap(w.buf) {
		w.buf = append(uncleared(max(need, cap(w.buf)*5/4)), w.buf...) // append would clear it, or grow twice
	}
	w.buf = append(append(w.buf, b...), '\r', '\n')
}

// BulkString writes a string of any bytes.
func (w *Writer) BulkString(s string) {
	w.header('$', int64(len(s)))
	w.buf = append(append(w.buf, s...), '\r', '\n')
}

// BulkInt writes an integer as a string, as GET does with a counter.
func (w *Writer) BulkInt(n int64) {
	var digits [20]byte // the length of the lowest int64
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// Null writes the absence of a value.
func (w *Writer) Null() {
	if w.Proto == 3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "$-1\r\n"...)
}

// NullArray writes the absence of an array, which RESP3 does not tell from
// the absence of a value.
func (w *Writer) NullArray() {
	if w.Proto == 3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "*-1\r\n"...)
}

// Array announces n elements.
func (w *Writer) Array(n int) { w.header('*', int64(n)) }

// Map announces pairs keys, each followed by its value. RESP2 sees a flat
// array of twice the length.
func (w *Writer) Map(pairs int) {
	if w.Proto == 3 {
		w.header('%', int64(pairs))
		return
	}
	w.header('*', 2*int64(pairs))
}

// Set announces n distinct elements; an array in RESP2.
func (w *Writer) Set(n int) { w.aggregate('~', n) }

// Push announces an out-of-band message of n elements; an array in RESP2.
func (w *Writer) Push(n int) { w.aggregate('>', n) }

// Double writes a floating point number, formatted as [AppendDouble] does; a
// bulk string in RESP2.
func (w *Writer) Double(f float64) {
	var digits [32]byte
	text := AppendDouble(digits[:0], f)
	if w.Proto != 3 {
		w.Bulk(text)
		return
	}
	w.buf = append(w.buf, ',')
	w.buf = append(append(w.buf, text...), '\r', '\n')
}

// Bool writes true or false; 1 or 0 in RESP2.
func (w *Writer) Bool(b bool) {
	switch {
	case w.Proto == 3 && b:
		w.buf = append(w.buf, "#t\r\n"...)
	case w.Proto == 3:
		w.buf = append(w.buf, "#f\r\n"...)
	case b:
		w.buf = append(w.buf, ":1\r\n"...)
	default:
		w.buf = append(w.buf, ":0\r\n"...)
	}
}

// Verbatim writes text that a client shows as it is. The format is a name of
// three bytes ("txt", "mkd"); a longer one is cut, a shorter one filled up
// with spaces. RESP2 sees a bulk string without the format.
func (w *Writer) Verbatim(format, text string) {
	if w.Proto != 3 {
		w.BulkString(text)
		return
	}
	name := [4]byte{' ', ' ', ' ', ':'}
	copy(name[:3], format)
	w.header('=', int64(len(name)+len(text)))
	w.buf = append(w.buf, name[:]...)
	w.buf = append(append(w.buf, text...), '\r', '\n')
}

// BigNumber writes an integer of any size, given in decimal digits; a bulk
// string in RESP2. CR and LF in s become spaces.
func (w *Writer) BigNumber(s string) {
	if w.Proto == 3 {
		w.line('(', s)
		return
	}
	w.header('$', int64(len(s)))
	w.text(s)
}

// Raw writes bytes that are already encoded.
func (w *Writer) Raw(b []byte) { w.buf = append(w.buf, b...) }

// header writes a kind, a number and the line's end.
func (w *Writer) header(kind byte, n int64) {
	if uint64(n) < 10 { // most lengths and many integers
		w.buf = append(w.buf, kind, '0'+byte(n), '\r', '\n')
		return
	}
	w.buf = append(w.buf, kind)
	w.buf = append(strconv.AppendInt(w.buf, n, 10), '\r', '\n')
}

// line writes a kind, a text and the line's end.
func (w *Writer) line(kind byte, s string) {
	w.buf = append(w.buf, kind)
	w.text(s)
}

// text writes the rest of a line. A line break inside it would let whoever
// made the text forge the replies that follow, therefore it is written as a
// space.
func (w *Writer) text(s string) {
	start := len(w.buf)
	w.buf = append(w.buf, s...)
	if strings.ContainsAny(s, "\r\n") {
		for i, c := range w.buf[start:] {
			if c == '\r' || c == '\n' {
				w.buf[start+i] = ' '
			}
		}
	}
	w.buf = append(w.buf, '\r', '\n')
}

// aggregate writes the header of a kind that RESP2 knows only as an array.
func (w *Writer) aggregate(kind byte, n int) {
	if w.Proto != 3 {
		kind = '*'
	}
	w.header(kind, int64(n))
}

// FormatDouble returns f as [AppendDouble] writes it.
func FormatDouble(f float64) string {
	var digits [32]byte
	return string(AppendDouble(digits[:0], f))
}

// AppendDouble appends f as Redis 7.0 prints a score: with 17 significant
// digits, so that reading it back gives the same number, without trailing
// zeros, and in scientific notation from 1e+17 up and below 1e-4. Hence 3 is
// "3" and 0.1 is "0.10000000000000001". Infinities are "inf" and "-inf"; what
// is not a number is "nan" or, with the sign bit set, "-nan".
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f != f && math.Signbit(f):
		return append(dst, "-nan"...)
	case f != f:
		return append(dst, "nan"...)
	}
	// A whole number below 1e17 has at most 17 digits: all of them are
	// printed, and printing an integer is much cheaper. Not so for -0, whose
	// sign an integer cannot hold.
	if f > -1e17 && f < 1e17 && f == math.Trunc(f) && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}
