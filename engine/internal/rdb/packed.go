package rdb

import "strconv"

// Redis keeps small collections packed: all elements in one piece of memory, one
// after the other. There have been three such encodings, listpack (listpack.go),
// ziplist before it (ziplist.go), and zipmap before that (zipmap.go). An encoded
// collection is the piece of memory as it is, in one string. To a reader of
// collections they are all the same: a sequence of elements.

// packed walks over the elements of a packed collection.
type packed interface {
	// next returns the next element. ok is false after the last one, and when
	// something is wrong, which fault then says. The element is valid as long as
	// the piece of memory is.
	next() (e element, ok bool)
	// fault says what is wrong; "" if the walk has reached the end and all that
	// the collection says of itself is true.
	fault() string
}

// element is an element of a packed collection. Integers are kept as such.
type element struct {
	text     []byte
	integer  int64
	isNumber bool
}

func numberElement(n int64) element { return element{integer: n, isNumber: true} }

// String is the element as a string of its own.
func (e element) String() string {
	if e.isNumber {
		return strconv.FormatInt(e.integer, 10)
	}
	return string(e.text)
}

// bytes is the element as bytes, which are its own or in buf.
func (e element) bytes(buf *[20]byte) []byte {
	if e.isNumber {
		return strconv.AppendInt(buf[:0], e.integer, 10)
	}
	return e.text
}

// score is the element as the score of a sorted set.
func (e element) score() (float64, bool) {
	if e.isNumber {
		return float64(e.integer), true
	}
	return parseScore(e.text)
}
