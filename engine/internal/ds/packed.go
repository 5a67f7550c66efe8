package ds

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"slices"
)

// A packed row is what small collections are kept in: strings one after the other in one
// piece of memory, each behind its length. To look one up is to read them all, which for
// a thousand bytes costs what one miss of the cache does.
//
// Bytes that were written once are never written again. To add at the end uses room that
// nobody has seen yet; to take away at the front or the end only moves the bounds; any
// other change makes a new row. So strings can be handed out that lie in the row, without
// copying them and without a rule for how long they last, and a copy of the row is the
// row itself. The price is to copy up to rowBytes at a change in the middle, about
// 150 ns, and that a string that somebody keeps holds the row that it lies in.
//
// A hash of ten fields of 12 bytes takes 350 bytes of the process in this way, with its
// key, where a Dict of its own took 1500, and Redis takes 260. Rejected: rows that are changed in place (no garbage
// at a change, but every string that is read must be copied, or be used up before the
// next write, which no type can check); offsets beside the bytes (2 bytes an element, to
// save walks that do not show in a profile).

const (
	rowBytes    = 1024 // the longest row
	rowElements = 64   // the most rows: what is searched one by one
)

// packed is such a row. What an element is, one string or several, is up to its owner,
// who counts them.
type packed struct {
	bytes []byte
	count int
}

// view gives the string at bytes[start:end], without copying it.
func (p *packed) view(start, end int) string { return view(p.bytes[start:end]) }

// stringAt returns where the string lies whose length is at this place. The one after
// begins at its end.
func (p *packed) stringAt(at int) (start, end int) {
	if n := int(p.bytes[at]); n < 0x80 {
		return at + 1, at + 1 + n
	}
	n, width := binary.Uvarint(p.bytes[at:])
	return at + width, at + width + int(n)
}

// stringSize is how many bytes a string takes with its length.
func stringSize(length int) int { return uvarintSize(uint64(length)) + length }

func uvarintSize(n uint64) (size int) {
	for size = 1; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// putString writes a string with its length to the beginning of gap, and returns the rest.
func putString[S string | []byte](gap []byte, s S) []byte {
	n := binary.PutUvarint(gap, uint64(len(s)))
	n += copy(gap[n:], s)
	return gap[n:]
}

// splice replaces the bytes between two places by n others, which the caller writes to
// gap at once.
func (p *packed) splice(from, to, n int) (gap []byte) {
	length := len(p.bytes) - (to - from) + n
	switch {
	case n == 0 && from == 0:
		p.bytes = p.bytes[to:]
		return nil
	case n == 0 && to == len(p.bytes):
		p.bytes = p.bytes[:from:from] // what lies behind has been seen
		return nil
	case from == len(p.bytes) && length <= cap(p.bytes):
		p.bytes = p.bytes[:length]
		return p.bytes[from:]
	}
	room := length
	if n > to-from {
		room += length / 8
	}
	old := p.bytes
	p.bytes = slices.Grow([]byte(nil), room)[:length]
	copy(p.bytes, old[:from])
	copy(p.bytes[from+n:], old[to:])
	return p.bytes[from : from+n]
}

// fits reports whether one more element of so many bytes may be added.
func (p *packed) fits(size int) bool {
	return p.count < rowElements && len(p.bytes)+size <= rowBytes
}

// clone returns a copy, which has the bytes in common. The copy has no room of its own:
// what it adds goes elsewhere.
func (p *packed) clone() packed { return packed{bytes: slices.Clip(p.bytes), count: p.count} }

func (p *packed) memoryBytes() int { return StringBytes(cap(p.bytes)) }

// A stringRow is a packed row whose elements are one string each, or several, of which
// the first is what they are found by: width says how many.

// find returns where the element begins whose first string is want, and where the rest of
// it, or -1.
func (p *packed) find(want []byte, width int) (at, rest int) {
	for at < len(p.bytes) {
		start, end := p.stringAt(at)
		if end-start == len(want) && p.view(start, end) == view(want) {
			return at, end
		}
		for range width - 1 {
			_, end = p.stringAt(end)
		}
		at = end
	}
	return -1, -1
}

// element returns where the i-th element begins.
func (p *packed) element(i, width int) (at int) {
	for range i * width {
		_, at = p.stringAt(at)
	}
	return at
}

// random returns where a random element begins; there must be one.
func (p *packed) random(r *rand.Rand, width int) (at int) {
	return p.element(r.IntN(p.count), width)
}

// strings walks over the strings of a row as it is now, whatever becomes of it meanwhile.
func (p *packed) strings() iter.Seq[string] {
	return func(yield func(string) bool) {
		row := *p
		for at := 0; at < len(row.bytes); {
			start, end := row.stringAt(at)
			if !yield(row.view(start, end)) {
				return
			}
			at = end
		}
	}
}

// pairs walks over the strings of a row by twos.
func (p *packed) pairs() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		row := *p
		for at := 0; at < len(row.bytes); {
			start, end := row.stringAt(at)
			valueStart, valueEnd := row.stringAt(end)
			if !yield(row.view(start, end), row.view(valueStart, valueEnd)) {
				return
			}
			at = valueEnd
		}
	}
}
