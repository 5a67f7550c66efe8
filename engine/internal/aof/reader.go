package aof

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// A file is requests, one after the other, as clients send them. Before them may be a
// whole RDB file; between them, if aof-timestamp-enabled, are lines such as
// #TS:1700000000, which say when what follows was done.
//
// What Redis 7.0 loads is read, and what it refuses is refused: lines are taken at most
// 127 bytes at a time, and what ends an argument is passed over unseen. (Exceptions: other bytes
// than digits in headers, see isHeader, and NUL bytes where an argument ends.) A file may end in the middle of a request, or of a transaction, because its
// writer was killed: that is a *TornError, and all else a *FormatError. Strict is for tools
// that look for damage: it reads as redis-check-aof does.

const (
	maxLineBytes   = 127       // of a header or a remark, line end included
	readBytes      = 128 << 10 // the buffer
	growBytes      = 1 << 20   // how much a long argument grows by, at most, before its bytes are there
	keepBytes      = 1 << 20   // the largest request whose memory is kept for the next one
	maxDefaultBulk = 512 << 20
	rdbMagic       = "REDIS"
)

// TornError says that a file ends in the middle of something. What is before Offset is whole.
type TornError struct {
	Offset int64 // of the end of the last whole request, or transaction
	Size   int64 // of the file
	Reason string
}

func (e *TornError) Error() string {
	return fmt.Sprintf("aof: the file ends too early: %s; it is whole up to byte %d, %d bytes follow", e.Reason, e.Offset, e.Size-e.Offset)
}

// FormatError says that a file is damaged. What is before Offset is whole.
type FormatError struct {
	Offset int64 // of the request, or transaction, that is damaged
	At     int64 // where in it
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("aof: the file is damaged at byte %d: %s; it is whole up to byte %d", e.At, e.Reason, e.Offset)
}

// Request is one request of a file.
type Request struct {
	Args   [][]byte // at least one; valid until the next call of Next
	Offset int64    // where it begins, in bytes from the start of the file
	End    int64    // where the next one begins
}

// Reader reads the requests of one file. Its exported fields are set before the first Next.
type Reader struct {
	// Preamble is handed the input if it begins with an RDB file, and returns what follows it
	// and how long it was. If it is nil such a file is damaged.
	Preamble func(from io.Reader) (rest io.Reader, bytes int64, err error)
	// Remark is handed each line that begins with #, without the line end, and where it begins.
	// Its error ends the reading. nil is to pass them over.
	Remark func(line []byte, offset int64) error
	// Strict makes line ends be checked, and transactions that do not match.
	Strict bool
	// MaxBulkBytes bounds one argument; 0 is 512 MiB.
	MaxBulkBytes int64

	from    *bufio.Reader
	begun   bool
	offset  int64 // of the next byte
	whole   int64 // what is before is whole
	inMulti bool
	err     error // final

	data []byte // the arguments of the request, one after the other
	ends []int  // where they end
	args [][]byte
}

// NewReader returns a Reader of a file. It reads nothing yet.
func NewReader(from io.Reader) *Reader {
	return &Reader{from: bufio.NewReaderSize(from, readBytes)}
}

// Whole is up to where the file was found whole: outside of requests and transactions.
func (r *Reader) Whole() int64 { return r.whole }

// Next returns the next request. The error is io.EOF at the end of a whole file, a
// *TornError, a *FormatError, an error of the input or of a callback; it stays.
// Memory: a few times the largest request.
func (r *Reader) Next() (Request, error) {
	if r.err != nil {
		return Request{}, r.err
	}
	if !r.begun {
		r.begun = true
		r.err = r.begin()
	}
	if r.err == nil {
		var request Request
		if request, r.err = r.request(); r.err == nil {
			return request, nil
		}
	}
	return Request{}, r.err
}

// begin reads what is before the requests.
func (r *Reader) begin() error {
	magic, err := r.from.Peek(len(rdbMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(magic) != rdbMagic {
		return nil
	}
	if r.Preamble == nil {
		return r.damaged(0, "it is an RDB file")
	}
	rest, size, err := r.Preamble(r.from)
	if err != nil {
		return err
	}
	r.offset, r.whole = size, size
	r.from = bufio.NewReaderSize(rest, readBytes)
	return nil
}

// request reads remarks and the request after them.
func (r *Reader) request() (Request, error) {
	for {
		start := r.offset
		line, err := r.line()
		if errors.Is(err, io.EOF) && len(line) == 0 {
			if r.inMulti {
				return Request{}, r.torn("a transaction without EXEC")
			}
			return Request{}, io.EOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Request{}, err
		}
		if line[0] == '#' {
			if err != nil {
				return Request{}, r.torn("a remark that does not end")
			}
			if err := r.remark(line, start); err != nil {
				return Request{}, err
			}
			continue
		}
		return r.arguments(line, start)
	}
}

func (r *Reader) remark(line []byte, start int64) error {
	if r.Remark != nil {
		if err := r.Remark(bytes.TrimRight(line, "\r\n"), start); err != nil {
			return err
		}
	}
	if !r.inMulti {
		r.whole = r.offset
	}
	return nil
}

// arguments reads the request whose first line was read.
func (r *Reader) arguments(line []byte, start int64) (Request, error) {
	if line[0] != '*' {
		return Request{}, r.damaged(start, fmt.Sprintf("a request begins with '*', not %q", line[0]))
	}
	count, err := r.number(line, start)
	if err != nil {
		return Request{}, err
	}
	if count < 1 || count > math.MaxInt32 {
		return Request{}, r.damaged(start, fmt.Sprintf("a request of %d arguments", count))
	}
	r.forget()
	for range count {
		if err := r.argument(); err != nil {
			return Request{}, err
		}
	}
	from := 0
	for _, end := range r.ends {
		r.args = append(r.args, r.data[from:end:end])
		from = end
	}
	request := Request{Args: r.args, Offset: start, End: r.offset}
	return request, r.transaction(request)
}

// forget makes room for the next request, and gives back what an unusually large one took.
func (r *Reader) forget() {
	if cap(r.data) > keepBytes {
		r.data = nil
	}
	if cap(r.ends) > keepBytes/8 {
		r.ends, r.args = nil, nil
	}
	r.data, r.ends, r.args = r.data[:0], r.ends[:0], r.args[:0]
}

func (r *Reader) argument() error {
	start := r.offset
	line, err := r.line()
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return r.torn("arguments are missing")
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case line[0] != '$':
		return r.damaged(start, fmt.Sprintf("an argument begins with '$', not %q", line[0]))
	}
	length, err := r.number(line, start)
	if err != nil {
		return err
	}
	most := r.MaxBulkBytes
	if most <= 0 {
		most = maxDefaultBulk
	}
	if length < 0 || length > most {
		return r.damaged(start, fmt.Sprintf("an argument of %d bytes", length))
	}
	if err := r.bytes(length); err != nil {
		return err
	}
	var end [2]byte
	at := r.offset
	n, err := io.ReadFull(r.from, end[:])
	r.offset += int64(n)
	if err != nil {
		return r.cut(err, "an argument has no end")
	}
	if hole := bytes.IndexByte(end[:], 0) >= 0; hole || r.Strict && string(end[:]) != "\r\n" {
		return r.damaged(at, fmt.Sprintf("an argument ends with a line end, not %q", end[:]))
	}
	r.ends = append(r.ends, len(r.data))
	return nil
}

// bytes reads an argument. Memory grows as it arrives.
func (r *Reader) bytes(length int64) error {
	for length > 0 {
		piece := int(min(length, growBytes))
		from := len(r.data)
		r.data = slices.Grow(r.data, piece)[:from+piece]
		n, err := io.ReadFull(r.from, r.data[from:])
		r.offset += int64(n)
		if err != nil {
			return r.cut(err, "an argument is cut short")
		}
		length -= int64(piece)
	}
	return nil
}

// line reads up to the line's end, or as much as Redis takes for a line. With io.EOF it is
// what there was.
func (r *Reader) line() ([]byte, error) {
	text, err := r.from.Peek(maxLineBytes)
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text, err = text[:end+1], nil
	}
	if len(text) == maxLineBytes {
		err = nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	n, discardErr := r.from.Discard(len(text))
	r.offset += int64(n)
	return text, errors.Join(err, discardErr)
}

// number is what a header says.
func (r *Reader) number(line []byte, start int64) (int64, error) {
	if len(line) == 1 {
		return 0, r.torn("a header is cut short")
	}
	if r.Strict && line[len(line)-1] != '\n' && len(line) < maxLineBytes {
		return 0, r.torn("a header is cut short")
	}
	if !isHeader(line, r.Strict) {
		return 0, r.damaged(start, fmt.Sprintf("a header is a number and a line end, not %q", line[1:min(len(line), 32)]))
	}
	return leadingInt(string(line[1:])), nil
}

// isHeader reports whether a line is a kind, a number and a line end, which may be cut short or
// be another system's if it is not strict. Redis would read the digits and pass over the rest of
// the line. But nobody writes such a line: it is damage, or a hole that a power cut has left, and
// what is behind it may belong to another request.
func isHeader(line []byte, strict bool) bool {
	digits, whole := bytes.CutSuffix(line[1:], []byte("\r\n"))
	switch {
	case whole:
	case strict:
		return false
	case len(digits) > 0 && (digits[len(digits)-1] == '\n' || digits[len(digits)-1] == '\r'):
		digits = digits[:len(digits)-1]
	}
	digits = bytes.TrimPrefix(digits, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// transaction keeps book of MULTI and EXEC: what is between is whole only when both are there.
func (r *Reader) transaction(request Request) error {
	switch name := request.Args[0]; {
	case bytes.EqualFold(name, []byte("MULTI")):
		if r.inMulti && r.Strict {
			return r.damaged(request.Offset, "MULTI within a transaction")
		}
		r.inMulti = true
	case bytes.EqualFold(name, []byte("EXEC")):
		if !r.inMulti && r.Strict {
			return r.damaged(request.Offset, "EXEC without MULTI")
		}
		r.inMulti = false
	case bytes.EqualFold(name, []byte("DISCARD")):
		r.inMulti = false
	}
	if !r.inMulti {
		r.whole = r.offset
	}
	return nil
}

func (r *Reader) damaged(at int64, reason string) error {
	return &FormatError{Offset: r.whole, At: at, Reason: reason}
}

// torn is the error for an input that has ended.
func (r *Reader) torn(reason string) error {
	return &TornError{Offset: r.whole, Size: r.offset, Reason: reason}
}

// cut is the error for an input that does not go on.
func (r *Reader) cut(err error, reason string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.torn(reason)
	}
	return err
}
