package resp

import (
	"errors"
	"math"
)

// Requests keeps every received byte in one buffer and cuts requests out of
// it without copying them:
//
//	buf:  [ handed out | request under way: start .. cursor .. | free ]
//
// A request may arrive in any number of pieces. What is known of it so far
// (how many arguments are missing, where the present ones lie, how far the
// search for the line's end has come) is kept between two calls, relative to
// its start, so each byte is looked at once and the buffer may move. The
// result never depends on where the stream was cut.
//
// Memory follows what was received, never what a peer announced: the buffer
// doubles as it fills, the table of arguments grows as they arrive. Only a
// request that is not complete makes the buffer grow past keepBytes, and it
// shrinks back when that request has been handed out. It all comes to a few
// times what was received, at worst (arguments of no bytes) to some ten times.
//
// A large argument is not in the buffer but in memory of its own (large.go).
//
// The rules and the error texts are those of Redis 7.0, oddities included:
// the byte after a header's CR and the two bytes after an argument are
// skipped unseen, and a NUL byte hides the line's end behind it.

const (
	// maxLineBytes bounds a header and an inline request, line end excluded.
	maxLineBytes = 64 << 10
	// defaultMaxBulkBytes bounds one argument, as Redis's proto-max-bulk-len.
	defaultMaxBulkBytes = 512 << 20
	// maxArgs bounds the arguments of one request.
	maxArgs = math.MaxInt32
	// untrustedMaxArgs and untrustedMaxBulkBytes bound a request of a peer
	// that has yet to authenticate. AUTH and HELLO fit in.
	untrustedMaxArgs      = 10
	untrustedMaxBulkBytes = 16 << 10

	// firstBytes is the first size of the buffer: small, since most
	// connections of a large pool are quiet.
	firstBytes = 4 << 10
	// keepBytes is the size up to which a buffer grows only because reads
	// fill it, and to which it shrinks after a large request.
	keepBytes = 32 << 10
	// minSpaceBytes is the least room worth a read.
	minSpaceBytes = 1 << 10
	// keepArgs is how many entries of the argument tables outlive a batch;
	// enough for a pipeline of small commands that fills keepBytes.
	keepArgs = 4 << 10
)

// ProtocolError says what is wrong with the received bytes. Its text is what
// Redis puts after "ERR Protocol error: ". The stream has lost its framing
// and cannot be read any further.
type ProtocolError string

// Error returns the text without the prefix.
func (e ProtocolError) Error() string { return string(e) }

// The protocol errors of a request. One more, "expected '$', got 'x'", is
// made where it occurs.
const (
	errMultibulkLength  ProtocolError = "invalid multibulk length"
	errBulkLength       ProtocolError = "invalid bulk length"
	errUnbalancedQuotes ProtocolError = "unbalanced quotes in request"
	errBigCountLine     ProtocolError = "too big mbulk count string"
	errBigBulkLine      ProtocolError = "too big bulk count string"
	errBigInline        ProtocolError = "too big inline request"
	errUntrustedCount   ProtocolError = "unauthenticated multibulk length"
	errUntrustedBulk    ProtocolError = "unauthenticated bulk length"
)

// Requests parses the requests of one connection as their bytes arrive, as
// arrays of bulk strings or inline. The loop around it is: read into Space,
// tell Advance how much came, call Next until it has no more.
//
// The zero value is ready for use. It is not safe for concurrent use.
type Requests struct {
	// Memory is lent to large arguments; may be nil.
	Memory Memory
	// MaxBulkBytes bounds the length of one argument; 0 means 512 MiB.
	MaxBulkBytes int64
	// Trusted lifts the limits for peers that have yet to authenticate (10
	// arguments, 16 KiB each). It may change between two calls of Next.
	Trusted bool

	buf    []byte
	start  int // in buf: first byte of the request under way
	cursor int // from start: next byte to look at
	// scanned counts the bytes from cursor on that hold no line end.
	scanned int
	missing int  // arguments that an announced request still lacks
	inBulk  bool // the header of the next argument was read
	bulk    int  // if so: its length
	spans   []span
	large   Large
	// args holds the argument lists handed out since the last Space, one
	// after the other.
	args   [][]byte
	filled bool // the last read left no space: larger ones are worth it
	failed error
}

// span is an argument's place, relative to the request's start. Of a large one, from is
// isLarge and to its number.
type span struct{ from, to int }

const isLarge = -1

// Space returns where the next read may put bytes; it is never empty. It
// invalidates every argument list handed out before.
func (r *Requests) Space() []byte {
	r.Forget()
	if r.large.awaits(r.bulk + 2) {
		return r.large.room(r.bulk + 2)
	}
	if len(r.spans) == 0 && cap(r.spans) > keepArgs {
		r.spans = nil
	}
	r.fit()
	// No more is read at once than keepBytes: the argument lists of a pipeline that
	// was read but not yet served would be many times its size.
	return r.buf[len(r.buf):min(len(r.buf)+keepBytes, cap(r.buf))]
}

// Forget invalidates every argument list handed out before, and keeps nothing that
// only they refer to.
func (r *Requests) Forget() {
	if len(r.large.handed) > 0 {
		clear(r.args)
		r.large.reclaim()
	}
	r.args = r.args[:0]
	if cap(r.args) > keepArgs {
		r.args = nil
	}
}

// Advance says that n bytes were read into the Space. More than fitted there
// count as all of it.
func (r *Requests) Advance(n int) {
	if r.large.awaits(r.bulk + 2) {
		arriving := r.large.arriving
		r.large.arriving = arriving[:min(len(arriving)+max(n, 0), cap(arriving), r.bulk+2)]
		return
	}
	end := min(len(r.buf)+max(n, 0), cap(r.buf))
	r.filled = end == cap(r.buf)
	r.buf = r.buf[:end]
}

// Buffered returns the number of received bytes that were not handed out
// yet: those of an incomplete request and of all that follow.
func (r *Requests) Buffered() int {
	buffered := len(r.buf) - r.start + len(r.large.arriving)
	for _, whole := range r.large.whole {
		buffered += len(whole)
	}
	return buffered
}

// Free returns how many more bytes the buffer takes before it grows.
func (r *Requests) Free() int { return cap(r.buf) - len(r.buf) }

// Next returns the next request: a command's name and its arguments, at
// least one element. ok is false when more bytes are needed. Requests without
// any argument (a blank line, *0, *-1) are skipped.
//
// argv and its elements alias memory of r. They stay valid until the next
// Space, also over further calls of Next; an element may be appended to
// without harm to its neighbours. An error is a [ProtocolError] or a [ForeignError], and
// final: every further call returns it again. Cost: O(bytes looked at), each byte
// once, no allocation once the tables have grown.
func (r *Requests) Next() (argv [][]byte, ok bool, err error) {
	for r.failed == nil && (r.start+r.cursor < len(r.buf) || r.large.arriving != nil) {
		complete, err := r.request()
		if err != nil {
			r.failed = err
			break
		}
		if !complete {
			return nil, false, nil
		}
		argv := r.take()
		if len(argv) == 0 {
			continue
		}
		if r.failed = httpWord(argv[0]); r.failed == nil {
			return argv, true, nil
		}
	}
	return nil, false, r.failed
}

// request reads on in the request under way, and tells if it is complete.
func (r *Requests) request() (complete bool, err error) {
	if r.missing > 0 {
		return r.arguments()
	}
	if r.buf[r.start] != '*' {
		return r.inline()
	}
	count, ok, err := r.header(maxArgs, errBigCountLine, errMultibulkLength)
	if !ok || err != nil {
		return false, err
	}
	if count <= 0 {
		return true, nil
	}
	if !r.Trusted && count > untrustedMaxArgs {
		return false, errUntrustedCount
	}
	r.missing = int(count)
	return r.arguments()
}

// arguments reads the arguments that are missing.
func (r *Requests) arguments() (complete bool, err error) {
	for r.missing > 0 {
		if !r.inBulk {
			ok, err := r.bulkHeader()
			if !ok || err != nil {
				return false, err
			}
		}
		place, ok := r.argument()
		if !ok {
			return false, nil
		}
		r.spans = append(r.spans, place)
		r.inBulk = false
		r.missing--
	}
	return true, nil
}

// argument takes the argument whose header was read, if all of it is there.
func (r *Requests) argument() (place span, ok bool) {
	if r.large.arriving == nil {
		arrived := r.buf[r.start+r.cursor:]
		switch {
		case len(arrived) >= r.bulk+2:
			place = span{r.cursor, r.cursor + r.bulk}
			r.cursor += r.bulk + 2
			return place, true
		case r.bulk < largeBytes:
			return place, false
		}
		r.large.memory = r.Memory
		r.large.begin(arrived, r.bulk+2)
		r.buf = r.buf[:r.start+r.cursor]
	}
	if r.large.awaits(r.bulk + 2) {
		return place, false
	}
	return span{isLarge, r.large.end(r.bulk)}, true
}

// bulkHeader reads the length of the next argument.
func (r *Requests) bulkHeader() (ok bool, err error) {
	limit := r.MaxBulkBytes
	if limit <= 0 {
		limit = defaultMaxBulkBytes
	}
	kind := byte(0)
	if at := r.start + r.cursor; at < len(r.buf) {
		kind = r.buf[at]
	}
	length, ok, err := r.header(min(limit, math.MaxInt-2), errBigBulkLine, errBulkLength)
	switch {
	case !ok && err == nil, errors.Is(err, errBigBulkLine):
		return false, err
	case kind != '$':
		return false, unexpectedByte(kind)
	case err != nil:
		return false, err
	case length < 0:
		return false, errBulkLength
	case !r.Trusted && length > untrustedMaxBulkBytes:
		return false, errUntrustedBulk
	}
	r.bulk, r.inBulk = int(length), true
	return true, nil
}

// unexpectedByte is the error for what stands in place of an argument's
// header. The text goes out as one line, so a line break becomes a space.
func unexpectedByte(got byte) ProtocolError {
	if got == '\r' || got == '\n' {
		got = ' '
	}
	return ProtocolError("expected '$', got '" + string([]byte{got}) + "'")
}

// header reads a line that is a kind byte and a number up to limit. ok is
// false while the line is cut short.
func (r *Requests) header(limit int64, tooLong, invalid ProtocolError) (n int64, ok bool, err error) {
	line, found, err := r.line('\r', tooLong)
	if !found || err != nil {
		return 0, false, err
	}
	after := r.cursor + len(line) + 2
	if r.start+after > len(r.buf) {
		return 0, false, nil
	}
	if len(line) > 0 {
		n, ok = parseInt(line[1:])
	}
	if !ok || n > limit {
		return 0, false, invalid
	}
	r.cursor, r.scanned = after, 0
	return n, true, nil
}

// line returns the bytes from the cursor to the next end byte, which are
// found or not, or too long to be waited for.
func (r *Requests) line(end byte, tooLong ProtocolError) (line []byte, found bool, err error) {
	rest := r.buf[r.start+r.cursor:]
	at := r.scanned
	for at < min(len(rest), maxLineBytes+1) && rest[at] != 0 {
		if rest[at] == end {
			r.scanned = at
			return rest[:at], true, nil
		}
		at++
	}
	r.scanned = at // a NUL stays there, and no end is found behind it
	if len(rest) > maxLineBytes {
		return nil, false, tooLong
	}
	return nil, false, nil
}

// take hands out the complete request under way and begins the next one.
func (r *Requests) take() [][]byte {
	first := len(r.args)
	request := r.buf[r.start:]
	for _, s := range r.spans {
		if s.from == isLarge {
			r.args = append(r.args, r.large.whole[s.to])
			continue
		}
		r.args = append(r.args, request[s.from:s.to:s.to])
	}
	r.large.hand()
	r.spans = r.spans[:0]
	r.start += r.cursor
	r.cursor, r.scanned = 0, 0
	return r.args[first:len(r.args):len(r.args)]
}

// fit moves the request under way to the front of a buffer of the right
// size. A request is moved down at most once, because nothing is handed out
// before it is complete, and otherwise only when it outgrows its buffer.
func (r *Requests) fit() {
	unparsed := r.buf[r.start:]
	size := cap(r.buf)
	switch {
	case size == 0:
		size = firstBytes
	case size > keepBytes && len(unparsed) < size/4:
		size = max(keepBytes, 2*len(unparsed))
	case size-len(unparsed) < minSpaceBytes, r.filled && size < keepBytes:
		size *= 2
	}
	r.filled = false
	if size != cap(r.buf) {
		r.buf = append(make([]byte, 0, size), unparsed...)
		// Stale arguments would keep the former buffer in memory.
		clear(r.args[:cap(r.args)])
	} else if r.start > 0 {
		r.buf = append(r.buf[:0], unparsed...)
	}
	r.start = 0
}
