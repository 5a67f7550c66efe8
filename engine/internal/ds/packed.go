package ds

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// A packed row is what small collections are kept in: strings one after the other in one
// piece of memory, each behind its length. To look one up is to read them all, which for
// a thousand bytes costs what one miss of the cache does.
//
// Bytes that somebody has been shown are never written again (shown says whether that may
// be). To add at the end uses room that nobody has seen yet; to take away at the front or
// the end only moves the bounds, as long as not too much is lost behind them (shrunk); any
// other change of a row that was shown makes a new one.
// So strings can be handed out that lie in the row, without copying them and without a rule
// for how long they last, and a copy of the row is the row itself. The price is to copy up
// to rowBytes at a change in the middle, about 150 ns, and that a string that somebody keeps
// holds the row that it lies in. A row that nobody has looked into is changed in place: what
// one command adds to a new sorted set, in whatever order, makes no garbage.
//
// Most keys hold ten small things, so what is around them counts as much as they do. A
// collection is its row's header and a pointer, 24 bytes: a row is short, so 16 bits do for
// its length; where the row lay there lies later what it has become (rowOr). Ten fields of 8
// bytes with values of 8 take 192 bytes of row, which is made as long as the first command
// needs, and 24 of header.
//
// Rejected: rows that are always changed in place (no garbage at a change, but every string
// that is read must be copied, or be used up before the next write, which no type can
// check); offsets beside the bytes (2 bytes an element, to save walks that do not show in a
// profile); header and row in one allocation (the header is as many bytes there, and every
// growth would have to tell the key where the collection is now).

const (
	rowBytes    = 1024 // the longest row
	rowElements = 64   // the most rows: what is searched one by one
)

// form is what a packed header leads to.
type form uint8

const (
	formStrings form = iota // a row; of strings, or of whatever its owner makes of it
	formInts                // a row that is an intRow, whose width is beside it
	formLarge               // no row any more; see rowOr
)

// packed is such a row. What an element is, one string or several, is up to its owner,
// who counts them.
type packed struct {
	start  unsafe.Pointer // of the row, or what it has become
	length uint16         // of the row; what is shorter than room is room
	room   uint16
	count  uint8
	width  uint8 // of an intRow
	form   form
	shown  bool // somebody may hold strings that lie in the row
}

// bytes is the row, with its room as its capacity.
func (p *packed) bytes() []byte {
	return unsafe.Slice((*byte)(p.start), int(p.room))[:p.length]
}

// hold makes b the row, which nobody else has seen.
func (p *packed) hold(b []byte) {
	p.start, p.shown = unsafe.Pointer(unsafe.SliceData(b)), false
	p.length, p.room = uint16(len(b)), uint16(cap(b))
}

// expect makes room for so many bytes if the row is empty and may become as long.
func (p *packed) expect(size int) {
	if p.length == 0 && size > int(p.room) && size <= rowBytes {
		p.hold(slices.Grow([]byte(nil), size))
	}
}

// rowOr is a packed row as long as it is short, and then, for good, an L.
type rowOr[L any] struct{ packed }

// large is what the row has become, or nil.
func (r *rowOr[L]) large() *L {
	if r.form != formLarge {
		return nil
	}
	return (*L)(r.start)
}

// become drops the row.
func (r *rowOr[L]) become(l *L) { r.packed = packed{start: unsafe.Pointer(l), form: formLarge} }

// show gives the string at bytes[start:end] to be handed out, without copying it.
func (p *packed) show(start, end int) string {
	p.shown = true
	return view(p.bytes()[start:end])
}

// stringAt returns where the string lies whose length is at this place of a row. The one
// after begins at its end.
func stringAt(row []byte, at int) (start, end int) {
	if n := int(row[at]); n < 0x80 {
		return at + 1, at + 1 + n
	}
	n, width := binary.Uvarint(row[at:])
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

// stringsSize is how many bytes strings take with their lengths.
func stringsSize(strings [][]byte) (total int) {
	for _, s := range strings {
		total += stringSize(len(s))
	}
	return total
}

// splice replaces the bytes between two places by n others, which the caller writes to
// gap at once.
func (p *packed) splice(from, to, n int) (gap []byte) {
	old := p.bytes()
	length := len(old) - (to - from) + n
	switch {
	case length == 0:
		p.hold(nil)
		return nil
	case n == 0 && shrunk(len(old), length):
		// A new row, below: what lies before this one and behind would be held, and not counted.
	case n == 0 && from == 0:
		p.start = unsafe.Add(p.start, to)
		p.length, p.room = uint16(length), p.room-uint16(to)
		return nil
	case n == 0 && to == len(old):
		p.length = uint16(from)
		if p.shown {
			p.room = p.length // what lies behind has been seen
		}
		return nil
	case length <= cap(old) && (from == len(old) || !p.shown):
		row := old[:length]
		copy(row[from+n:], old[to:])
		p.length = uint16(length)
		return row[from : from+n]
	}
	room := length
	if n > to-from && to > 0 {
		room += length / 8 // there may be more to come
	}
	row := slices.Grow([]byte(nil), room)[:length]
	copy(row, old[:from])
	copy(row[from+n:], old[to:])
	p.hold(row)
	return row[from : from+n]
}

// shrunk reports whether a row that becomes shorter is to move: at each power of two, so that it
// holds no more than about twice of what it has, and moves seldom.
func shrunk(before, after int) bool {
	const little = 64
	return before > little && bits.Len(uint(after)) < bits.Len(uint(before))
}

// fits reports whether one more element of so many bytes may be added.
func (p *packed) fits(size int) bool {
	return p.count < rowElements && int(p.length)+size <= rowBytes
}

// clone returns a copy, which has the bytes in common. The copy has no room of its own:
// what it adds goes elsewhere.
func (p *packed) clone() packed {
	p.shown = true
	c := *p
	c.room = c.length
	return c
}

func (p *packed) memoryBytes() int { return StringBytes(int(p.room)) }

// A stringRow is a packed row whose elements are one string each, or several, of which
// the first is what they are found by: width says how many.

// find returns where the element begins whose first string is want, and where the rest of
// it, or -1.
func (p *packed) find(want []byte, width int) (at, rest int) {
	row := p.bytes()
	for at < len(row) {
		start, end := stringAt(row, at)
		if end-start == len(want) && view(row[start:end]) == view(want) {
			return at, end
		}
		for range width - 1 {
			_, end = stringAt(row, end)
		}
		at = end
	}
	return -1, -1
}

// random returns where a random element begins; there must be one.
func (p *packed) random(r *rand.Rand, width int) (at int) {
	row := p.bytes()
	for range r.IntN(int(p.count)) * width {
		_, at = stringAt(row, at)
	}
	return at
}

// strings walks over the strings of a row as it is now, whatever becomes of it meanwhile.
func (p *packed) strings() iter.Seq[string] {
	return func(yield func(string) bool) {
		p.shown = true
		row := p.bytes()
		for at := 0; at < len(row); {
			start, end := stringAt(row, at)
			if !yield(view(row[start:end])) {
				return
			}
			at = end
		}
	}
}

// pairs walks over the strings of a row by twos.
func (p *packed) pairs() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		p.shown = true
		row := p.bytes()
		for at := 0; at < len(row); {
			start, end := stringAt(row, at)
			valueStart, valueEnd := stringAt(row, end)
			if !yield(view(row[start:end]), view(row[valueStart:valueEnd])) {
				return
			}
			at = valueEnd
		}
	}
}
