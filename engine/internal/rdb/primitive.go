package rdb

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// keepBytes is the size up to which a decoder keeps the buffer that it expands
// compressed strings into. Nodes of lists and small collections fit.
const keepBytes = 64 << 10

// decoder reads the items of the format from its source: lengths, strings and
// scores here, values in decode.go.
type decoder struct {
	source
	limits   *ds.Limits // of whoever takes the values
	expanded []byte     // a compressed string, valid until the next string
	digits   []byte     // a string that was encoded as an integer, likewise
}

// lengthOrSpecial reads a length, or, if special, how a string is encoded.
func (d *decoder) lengthOrSpecial() (n uint64, special bool) {
	d.begin()
	first := d.byte()
	switch rest := uint64(first & 0x3f); first >> 6 {
	case lengthIn6Bits:
		return rest, false
	case lengthIn14Bits:
		return rest<<8 | uint64(d.byte()), false
	case lengthSpecial:
		return rest, true
	}
	switch first {
	case lengthIn32Bits:
		return uint64(binary.BigEndian.Uint32(d.fixed(4))), false
	case lengthIn64Bits:
		return binary.BigEndian.Uint64(d.fixed(8)), false
	}
	d.fail("no such form of a length: " + strconv.Itoa(int(first)))
	return 0, false
}

// length reads a length, or any other number that is written as one.
func (d *decoder) length() uint64 {
	n, special := d.lengthOrSpecial()
	if special {
		d.fail("a string where there should be a length")
		return 0
	}
	return n
}

// text reads a string. If it is not owned it is valid until the next read only.
func (d *decoder) text() (b []byte, owned bool) {
	n, special := d.lengthOrSpecial()
	if !special {
		item := d.item
		b, owned = d.take(n)
		d.item = item
		return b, owned
	}
	switch n {
	case stringInt8:
		return d.number(int64(int8(d.byte()))), false
	case stringInt16:
		return d.number(int64(int16(binary.LittleEndian.Uint16(d.fixed(2))))), false
	case stringInt32:
		return d.number(int64(int32(binary.LittleEndian.Uint32(d.fixed(4))))), false
	case stringCompressed:
		return d.compressed()
	}
	d.fail("no such encoding of a string: " + strconv.FormatUint(n, 10))
	return nil, false
}

func (d *decoder) number(n int64) []byte {
	d.digits = strconv.AppendInt(d.digits[:0], n, 10)
	return d.digits
}

// compressed reads the rest of a compressed string: both lengths and the data.
func (d *decoder) compressed() (b []byte, owned bool) {
	item := d.item
	packedLength, announced := d.length(), d.length()
	packed, _ := d.take(packedLength)
	if d.item = item; d.failed() {
		return nil, false
	}
	length, ok := lzfLength(packed)
	if !ok || uint64(length) != announced {
		d.fail("a compressed string is damaged")
		return nil, false
	}
	if length > keepBytes {
		return lzfExpand(make([]byte, 0, length), packed), true
	}
	d.expanded = lzfExpand(slices.Grow(d.expanded[:0], length), packed)
	return d.expanded, false
}

// ownText is text with bytes that belong to the caller.
func (d *decoder) ownText() []byte {
	b, owned := d.text()
	if !owned {
		return append([]byte{}, b...)
	}
	return b
}

// goString is text as a string.
func (d *decoder) goString() string {
	b, owned := d.text()
	if owned {
		return view(b)
	}
	return string(b)
}

// decimalScore reads a score as it was written before version 8.
func (d *decoder) decimalScore() float64 {
	d.begin()
	switch n := d.byte(); n {
	case scoreNaN:
		return math.NaN()
	case scoreInfinity:
		return math.Inf(1)
	case scoreNegativeInfinity:
		return math.Inf(-1)
	default:
		text, _ := d.take(uint64(n))
		score, ok := parseScore(text)
		if !ok {
			d.fail("a score is no number")
		}
		return score
	}
}

// binaryScore reads a score as it is written since version 8.
func (d *decoder) binaryScore() float64 {
	d.begin()
	return math.Float64frombits(binary.LittleEndian.Uint64(d.fixed(8)))
}

// timeMs reads a time in ms since the epoch.
func (d *decoder) timeMs() int64 {
	d.begin()
	return int64(binary.LittleEndian.Uint64(d.fixed(8)))
}
