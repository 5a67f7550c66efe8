package rdb

import (
	"encoding/binary"
	"math"
)

// An intset is
//
//	width of an integer in bytes (4) | number of integers (4) | integer ...
//
// all little endian, the integers in ascending order. The width is 2, 4 or 8.

const intsetHeader = 8

// intset walks over an intset and checks all of it on the way.
type intset struct {
	rest  []byte
	width int
	last  int64
	seen  int
	wrong string
}

func newIntset(b []byte) *intset {
	const bad = "an intset does not have the length that it says"
	if len(b) < intsetHeader {
		return &intset{wrong: bad}
	}
	width, count := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if width != 2 && width != 4 && width != 8 {
		return &intset{wrong: "an intset has integers of no known width"}
	}
	if uint64(len(b)-intsetHeader) != uint64(width)*uint64(count) {
		return &intset{wrong: bad}
	}
	return &intset{rest: b[intsetHeader:], width: int(width)}
}

func (s *intset) fault() string { return s.wrong }

func (s *intset) next() (e element, ok bool) {
	if len(s.rest) == 0 || s.wrong != "" {
		return e, false
	}
	n := signedInteger(s.rest[:s.width])
	if s.seen > 0 && n <= s.last {
		s.wrong = "an intset is not in order"
		return e, false
	}
	s.rest, s.last = s.rest[s.width:], n
	s.seen++
	return numberElement(n), true
}

// appendIntset appends an intset of integers in ascending order.
func appendIntset(dst []byte, integers []int64) []byte {
	width := 2
	for _, n := range integers {
		switch {
		case n < math.MinInt32 || n > math.MaxInt32:
			width = 8
		case n < math.MinInt16 || n > math.MaxInt16:
			width = max(width, 4)
		}
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(integers)))
	for _, n := range integers {
		for i := range width {
			dst = append(dst, byte(n>>(8*i)))
		}
	}
	return dst
}
