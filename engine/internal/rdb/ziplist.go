package rdb

import (
	"encoding/binary"
	"math"
)

// A ziplist is
//
//	length in bytes (4) | offset of the last entry (4) | number of entries (2) | entry ... | 0xff
//
// with all numbers little endian but the lengths of strings. A number of entries
// of 65535 means that nobody knows. An entry begins with the length of the one
// before it, in one byte, or in 0xfe and four bytes; then an encoding byte:
//
//	00nnnnnn                   a string of n bytes
//	01nnnnnn nnnnnnnn          a string of n bytes
//	0x80 and 4 bytes           a string of so many bytes
//	0xc0 0xd0 0xe0             an integer of 2, 4, 8 bytes
//	0xf0 0xfe                  an integer of 3 bytes, of 1 byte
//	0xf1 to 0xfd               the integers 0 to 12

const (
	zipEnd       = 0xff
	zipHeader    = 10
	zipUncounted = math.MaxUint16
	zipLongBack  = 0xfe // the length of the entry before has four bytes
	zipString32  = 0x80
	zipInt16     = 0xc0
	zipInt32     = 0xd0
	zipInt64     = 0xe0
	zipInt24     = 0xf0
	zipInt8      = 0xfe
)

// ziplist walks over a ziplist and checks all of it on the way.
type ziplist struct {
	b      []byte
	at     int
	before int // the length of the entry before
	seen   int
	wrong  string
}

func newZiplist(b []byte) *ziplist {
	z := &ziplist{b: b, at: zipHeader}
	if len(b) < zipHeader+1 || binary.LittleEndian.Uint32(b) != uint32(len(b)) || b[len(b)-1] != zipEnd {
		z.wrong = "a ziplist does not have the length that it says"
	}
	return z
}

func (z *ziplist) fault() string { return z.wrong }

func (z *ziplist) next() (e element, ok bool) {
	if z.wrong != "" {
		return e, false
	}
	last := len(z.b) - 1
	if z.at == last {
		z.checkHeader()
		return e, false
	}
	entry := z.b[z.at:last]
	header := z.lengthBefore(entry)
	if header == 0 || header >= len(entry) {
		z.wrong = "the entries of a ziplist are not linked"
		return e, false
	}
	e, size, ok := zipElement(entry[header:])
	if !ok {
		z.wrong = "an entry of a ziplist is damaged"
		return element{}, false
	}
	z.before = header + size
	z.at += z.before
	z.seen++
	return e, true
}

func (z *ziplist) checkHeader() {
	if counted := int(binary.LittleEndian.Uint16(z.b[8:])); counted != z.seen && counted != zipUncounted {
		z.wrong = "a ziplist does not have as many entries as it says"
	}
	if tail := binary.LittleEndian.Uint32(z.b[4:]); z.seen > 0 && uint64(tail) != uint64(z.at-z.before) {
		z.wrong = "a ziplist does not end where it says"
	}
}

// lengthBefore returns how many bytes say the length of the entry before; 0 if
// they are wrong.
func (z *ziplist) lengthBefore(entry []byte) (header int) {
	switch {
	case entry[0] < zipLongBack && int(entry[0]) == z.before:
		return 1
	case entry[0] == zipLongBack && len(entry) >= 5 && uint64(binary.LittleEndian.Uint32(entry[1:])) == uint64(z.before):
		return 5
	}
	return 0
}

// zipElement reads the element at the start of b.
func zipElement(b []byte) (e element, size int, ok bool) {
	first := b[0]
	switch first >> 6 {
	case 0:
		return packString(b, 1, uint32(first&0x3f))
	case 1:
		if len(b) < 2 {
			return e, 0, false
		}
		return packString(b, 2, uint32(first&0x3f)<<8|uint32(b[1]))
	}
	switch {
	case first == zipString32 && len(b) >= 5:
		return packString(b, 5, binary.BigEndian.Uint32(b[1:]))
	case first == zipInt16:
		return packInteger(b, 2)
	case first == zipInt32:
		return packInteger(b, 4)
	case first == zipInt64:
		return packInteger(b, 8)
	case first == zipInt24:
		return packInteger(b, 3)
	case first == zipInt8:
		return packInteger(b, 1)
	case zipInt24 < first && first < zipInt8:
		return numberElement(int64(first&0x0f) - 1), 1, true
	}
	return e, 0, false
}
