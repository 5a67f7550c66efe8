package ds

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
)

// An intRow is a sorted array of integers, all of 2, 4 or 8 bytes, as wide as the widest
// needs: ten small integers take 20 bytes. Nobody is handed a part of it, so it is changed
// in place.
type intRow struct {
	bytes []byte
	width int // of one; 0 while there are none yet
}

func intWidth(n int64) int {
	switch {
	case n == int64(int16(n)):
		return 2
	case n == int64(int32(n)):
		return 4
	}
	return 8
}

func (r *intRow) len() int { return len(r.bytes) / max(r.width, 1) }

func (r *intRow) at(i int) int64 {
	b := r.bytes[i*r.width:]
	switch r.width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func (r *intRow) put(i int, n int64) {
	b := r.bytes[i*r.width:]
	switch r.width {
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(n))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(n))
	default:
		binary.LittleEndian.PutUint64(b, uint64(n))
	}
}

// find returns where n is, or belongs.
func (r *intRow) find(n int64) (i int, found bool) {
	return sort.Find(r.len(), func(i int) int {
		switch other := r.at(i); {
		case n < other:
			return -1
		case n > other:
			return 1
		}
		return 0
	})
}

// findText is find for the digits of an integer; what is none is not there.
func (r *intRow) findText(member []byte) (i int, found bool) {
	n, ok := ParseInt(member)
	if !ok {
		return 0, false
	}
	return r.find(n)
}

// insert puts n, which belongs there, at i.
func (r *intRow) insert(i int, n int64) {
	if width := intWidth(n); width > r.width {
		r.widen(width)
	}
	at := i * r.width
	if len(r.bytes)+r.width > cap(r.bytes) {
		r.bytes = slices.Grow(slices.Clip(r.bytes), r.width+min(len(r.bytes)/4, math.MaxInt16))
	}
	r.bytes = r.bytes[:len(r.bytes)+r.width]
	copy(r.bytes[at+r.width:], r.bytes[at:])
	r.put(i, n)
}

// widen keeps as much room as there was: for as many integers, or for those of 2 bytes that
// were expected.
func (r *intRow) widen(width int) {
	least := max(r.width, 2)
	if r.width == 0 && width == least {
		r.width = width
		return
	}
	wide := intRow{bytes: make([]byte, r.len()*width, cap(r.bytes)/least*width), width: width}
	for i := range r.len() {
		wide.put(i, r.at(i))
	}
	*r = wide
}

func (r *intRow) remove(i int) { r.bytes = slices.Delete(r.bytes, i*r.width, (i+1)*r.width) }

func (r *intRow) clone() intRow { return intRow{slices.Clone(r.bytes), r.width} }
