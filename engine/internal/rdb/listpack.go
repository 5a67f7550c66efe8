package rdb

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// A listpack is
//
//	length in bytes (4) | number of elements (2) | element ... | 0xff
//
// with all numbers little endian. A number of elements of 65535 means that nobody
// knows. An element is an encoding byte with the upper bits set as below, the
// data, and the length of both backwards, so that the listpack can be walked from
// its end: groups of seven bits, the last byte the lowest, all but the first byte
// with the highest bit set.
//
//	0nnnnnnn                   an integer of 7 bits, not negative
//	10nnnnnn                   a string of n bytes
//	110nnnnn nnnnnnnn          an integer of 13 bits
//	1110nnnn nnnnnnnn          a string of n bytes
//	0xf0 and 4 bytes           a string of so many bytes
//	0xf1 to 0xf4               an integer of 2, 3, 4, 8 bytes

const (
	packEnd        = 0xff
	packHeader     = 6
	packUncounted  = math.MaxUint16
	packString32   = 0xf0
	packInt16      = 0xf1
	packInt24      = 0xf2
	packInt32      = 0xf3
	packInt64      = 0xf4
	packBacklenMax = 5
)

// listpack walks over a listpack and checks all of it on the way.
type listpack struct {
	b     []byte
	at    int
	seen  int
	wrong string
}

func newListpack(b []byte) *listpack {
	l := &listpack{b: b, at: packHeader}
	if len(b) < packHeader+1 || binary.LittleEndian.Uint32(b) != uint32(len(b)) || b[len(b)-1] != packEnd {
		l.wrong = "a listpack does not have the length that it says"
	}
	return l
}

func (l *listpack) fault() string { return l.wrong }

func (l *listpack) next() (e element, ok bool) {
	if l.wrong != "" {
		return e, false
	}
	last := len(l.b) - 1
	if l.at == last {
		if counted := int(binary.LittleEndian.Uint16(l.b[4:])); counted != l.seen && counted != packUncounted {
			l.wrong = "a listpack does not have as many elements as it says"
		}
		return e, false
	}
	e, size, ok := packElement(l.b[l.at:last])
	var buf [packBacklenMax]byte
	back := appendBacklen(buf[:0], size)
	if !ok || !bytes.HasPrefix(l.b[l.at+size:last], back) {
		l.wrong = "an element of a listpack is damaged"
		return element{}, false
	}
	l.at += size + len(back)
	l.seen++
	return e, true
}

// number returns the next element, which has to be an integer.
func (l *listpack) number() int64 {
	e, ok := l.next()
	if l.wrong == "" && (!ok || !e.isNumber) {
		l.wrong = "a listpack lacks an integer"
	}
	return e.integer
}

// packElement reads the element at the start of b; size is without its length
// backwards, and never more than b has.
func packElement(b []byte) (e element, size int, ok bool) {
	switch first := b[0]; {
	case first < 0x80:
		return numberElement(int64(first)), 1, true
	case first < 0xc0:
		return packString(b, 1, uint32(first&0x3f))
	case len(b) < 2:
		return e, 0, false
	case first < 0xe0:
		n := uint16(first&0x1f)<<8 | uint16(b[1])
		return numberElement(int64(int16(n<<3) >> 3)), 2, true
	case first < packString32:
		return packString(b, 2, uint32(first&0x0f)<<8|uint32(b[1]))
	case first == packString32 && len(b) >= 5:
		return packString(b, 5, binary.LittleEndian.Uint32(b[1:]))
	case first == packInt16:
		return packInteger(b, 2)
	case first == packInt24:
		return packInteger(b, 3)
	case first == packInt32:
		return packInteger(b, 4)
	case first == packInt64:
		return packInteger(b, 8)
	}
	return e, 0, false
}

func packString(b []byte, header int, length uint32) (e element, size int, ok bool) {
	if uint64(length) > uint64(len(b)-header) {
		return e, 0, false
	}
	size = header + int(length)
	return element{text: b[header:size]}, size, true
}

// packInteger reads an integer of so many bytes behind the encoding byte.
func packInteger(b []byte, width int) (e element, size int, ok bool) {
	if len(b) < 1+width {
		return e, 0, false
	}
	return numberElement(signedInteger(b[1 : 1+width])), 1 + width, true
}

// signedInteger is the little endian integer in b, of one to eight bytes.
func signedInteger(b []byte) int64 {
	var n uint64
	for i, octet := range b {
		n |= uint64(octet) << (8 * i)
	}
	unused := 64 - 8*len(b)
	return int64(n<<unused) >> unused
}

// appendBacklen writes the length of an element backwards. At the upper end of
// each width Redis takes one byte more than it needs; readers rely on that.
func appendBacklen(dst []byte, size int) []byte {
	groups := 5
	switch {
	case size <= 127:
		groups = 1
	case size < 1<<14-1:
		groups = 2
	case size < 1<<21-1:
		groups = 3
	case size < 1<<28-1:
		groups = 4
	}
	more := byte(0)
	for i := groups - 1; i >= 0; i-- {
		dst = append(dst, byte(size>>(7*i))&0x7f|more)
		more = 0x80
	}
	return dst
}

// listpackBuilder makes listpacks, one after the other, in one buffer. Its zero
// value has to be reset first.
type listpackBuilder struct {
	b     []byte
	count int
}

func (l *listpackBuilder) reset() {
	l.b = append(forgetLarge(l.b), 0, 0, 0, 0, 0, 0)
	l.count = 0
}

// add appends an element; an integer if s is one.
func (l *listpackBuilder) add(s string) {
	if n, ok := ds.ParseInt(viewBytes(s)); ok {
		l.addInteger(n)
		return
	}
	start := len(l.b)
	switch n := len(s); {
	case n < 1<<6:
		l.b = append(l.b, 0x80|byte(n))
	case n < 1<<12:
		l.b = append(l.b, 0xe0|byte(n>>8), byte(n))
	default:
		l.b = binary.LittleEndian.AppendUint32(append(l.b, packString32), uint32(n))
	}
	l.b = append(l.b, s...)
	l.close(start)
}

// addScore appends a score; as an integer if it is one that a double holds
// exactly, up to the size to which Redis does the same.
func (l *listpackBuilder) addScore(score float64) {
	const most = math.MaxInt64 / 2
	if math.Abs(score) <= most && score == math.Trunc(score) {
		l.addInteger(int64(score))
		return
	}
	var text [32]byte
	l.add(view(appendScore(text[:0], score)))
}

// addInteger appends an integer in the shortest form.
func (l *listpackBuilder) addInteger(n int64) {
	start := len(l.b)
	width := 8
	switch {
	case 0 <= n && n < 1<<7:
		l.b = append(l.b, byte(n))
		l.close(start)
		return
	case -1<<12 <= n && n < 1<<12:
		l.b = append(l.b, 0xc0|byte(n>>8)&0x1f, byte(n))
		l.close(start)
		return
	case -1<<15 <= n && n < 1<<15:
		l.b, width = append(l.b, packInt16), 2
	case -1<<23 <= n && n < 1<<23:
		l.b, width = append(l.b, packInt24), 3
	case -1<<31 <= n && n < 1<<31:
		l.b, width = append(l.b, packInt32), 4
	default:
		l.b = append(l.b, packInt64)
	}
	for i := range width {
		l.b = append(l.b, byte(n>>(8*i)))
	}
	l.close(start)
}

// close ends the element that began at start.
func (l *listpackBuilder) close(start int) {
	l.b = appendBacklen(l.b, len(l.b)-start)
	l.count++
}

// finish returns the listpack, valid until the next reset.
func (l *listpackBuilder) finish() []byte {
	l.b = append(l.b, packEnd)
	binary.LittleEndian.PutUint32(l.b, uint32(len(l.b)))
	binary.LittleEndian.PutUint16(l.b[4:], uint16(min(l.count, packUncounted)))
	return l.b
}
