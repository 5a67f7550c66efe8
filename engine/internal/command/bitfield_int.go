package command

import (
	"encoding/binary"
	"math"
)

// An integer of a bitfield begins at any bit and is up to 64 bits wide, so it
// lies within nine bytes. They are handled as a word and one byte more, big
// end first, so that its bits are next to each other.

// fieldType is how an integer is kept: i and u with a width of 1 to 64 bits,
// 63 without a sign, so that every value is an int64.
type fieldType struct {
	signed bool
	width  uint
}

// overflowRule says what becomes of a result that does not fit.
type overflowRule uint8

const (
	overflowWrap overflowRule = iota // its lowest bits stay
	overflowSaturate
	overflowFail
)

func parseOverflow(arg []byte) (overflowRule, error) {
	switch {
	case Is(arg, "WRAP"):
		return overflowWrap, nil
	case Is(arg, "SAT"):
		return overflowSaturate, nil
	case Is(arg, "FAIL"):
		return overflowFail, nil
	default:
		return 0, errOverflow
	}
}

// fieldWindow is the nine bytes from the byte of offset on; what is past the
// end of data is zero.
func fieldWindow(data []byte, offset int64) (window [9]byte) {
	if at := offset >> 3; at < int64(len(data)) {
		copy(window[:], data[at:])
	}
	return window
}

// extend makes an int64 of the lowest bits of raw.
func (t fieldType) extend(raw uint64) int64 {
	unused := 64 - t.width
	if t.signed {
		return int64(raw<<unused) >> unused
	}
	return int64(raw << unused >> unused)
}

// read is the integer at a bit of data, which counts as followed by zeros.
func (t fieldType) read(data []byte, offset int64) int64 {
	window, shift := fieldWindow(data, offset), uint(offset&7)
	high := binary.BigEndian.Uint64(window[:8])<<shift | uint64(window[8])>>(8-shift)
	return t.extend(high >> (64 - t.width))
}

// write puts an integer at a bit of data, which is long enough.
func (t fieldType) write(data []byte, offset, value int64) {
	window, shift := fieldWindow(data, offset), uint(offset&7)
	mask := ^uint64(0) << (64 - t.width)
	field := uint64(value) << (64 - t.width)
	high := binary.BigEndian.Uint64(window[:8])
	binary.BigEndian.PutUint64(window[:8], high&^(mask>>shift)|field>>shift)
	window[8] = window[8]&^byte(mask<<(8-shift)) | byte(field<<(8-shift))
	copy(data[offset>>3:], window[:])
}

// fit is value + delta as the type can hold it; ok is false if it cannot and
// the rule is to fail.
func (t fieldType) fit(value, delta int64, rule overflowRule) (result int64, ok bool) {
	above, below := t.exceeded(value, delta)
	if !above && !below {
		return value + delta, true
	}
	lowest, highest := t.bounds()
	switch {
	case rule == overflowFail:
		return 0, false
	case rule == overflowWrap:
		return t.extend(uint64(value) + uint64(delta)), true
	case above:
		return highest, true
	default:
		return lowest, true
	}
}

func (t fieldType) bounds() (lowest, highest int64) {
	if t.signed {
		return math.MinInt64 >> (64 - t.width), math.MaxInt64 >> (64 - t.width)
	}
	return 0, math.MaxInt64 >> (63 - t.width)
}

// exceeded says whether value + delta is out of bounds, and on which side. A
// value out of bounds comes with no delta: it is the operand of SET. Two such
// operands count as above although they are below, as in Redis: any negative
// one of a type without a sign, and one so far below a signed type that its
// distance from the highest value is no int64.
func (t fieldType) exceeded(value, delta int64) (above, below bool) {
	lowest, highest := t.bounds()
	switch {
	case value > highest, !t.signed && value < 0:
		return true, false
	case value < lowest:
		above = highest > math.MaxInt64+value
		return above, !above
	}
	// Distances do not always fit an int64, but a uint64 they do.
	above = delta > 0 && uint64(delta) > uint64(highest-value)
	below = delta < 0 && uint64(-delta) > uint64(value-lowest)
	return above, below
}
