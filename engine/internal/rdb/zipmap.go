package rdb

import "encoding/binary"

// A zipmap, which held small hashes before version 4, is
//
//	number of fields | field, value ... | 0xff
//
// where a number of 254 means that nobody knows. A string is its length,
// in one byte, or in 0xfe and four bytes, little endian; then, for a value, the
// number of unused bytes behind it; then its bytes.

const (
	mapEnd       = 0xff
	mapUncounted = 0xfe
	mapLong      = 0xfe // the length has four bytes
)

// zipmap walks over a zipmap, fields and values by turns, and checks all of it on
// the way.
type zipmap struct {
	b     []byte
	at    int
	seen  int
	wrong string
}

func newZipmap(b []byte) *zipmap {
	z := &zipmap{b: b, at: 1}
	if len(b) < 2 || b[0] == mapEnd || b[len(b)-1] != mapEnd {
		z.wrong = "a zipmap does not end"
	}
	return z
}

func (z *zipmap) fault() string { return z.wrong }

func (z *zipmap) next() (e element, ok bool) {
	if z.wrong != "" {
		return e, false
	}
	last := len(z.b) - 1
	if z.at == last {
		if counted := int(z.b[0]); counted < mapUncounted && z.seen != 2*counted {
			z.wrong = "a zipmap does not have as many fields as it says"
		}
		return e, false
	}
	entry := z.b[z.at:last]
	length, header := mapLength(entry)
	unused := 0
	if isValue := z.seen%2 == 1; isValue && header < len(entry) {
		unused = int(entry[header])
		header++
	} else if isValue {
		header = 0
	}
	if header == 0 || length+uint64(unused) > uint64(len(entry)-header) {
		z.wrong = "an entry of a zipmap is damaged"
		return e, false
	}
	size := header + int(length)
	z.at += size + unused
	z.seen++
	return element{text: entry[header:size]}, true
}

// mapLength reads the length of a string and returns how many bytes say it; 0 if
// they are wrong.
func mapLength(entry []byte) (length uint64, header int) {
	switch {
	case entry[0] < mapLong:
		return uint64(entry[0]), 1
	case entry[0] == mapLong && len(entry) >= 5:
		return uint64(binary.LittleEndian.Uint32(entry[1:])), 5
	}
	return 0, 0
}
