package keyspace

import (
	"encoding/binary"
	"strconv"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// A string is its object: one allocation without pointers, of a size that the allocator
// has, in which the text follows what the keyspace knows of the key.
//
//	short    block of 24 to 512 bytes   16 bytes of Object | text
//	number   the same                   16 bytes of Object | int64
//	long     48 bytes and the text      24 bytes of heavy  | []byte
//
// So a string of 16 bytes takes 32, and GET reads no other memory than the table and the
// key before the value itself. An integer is kept as a number from the start, and INCR
// changes it where it is. Long is what does not fit into the largest block, and what
// APPEND and its like have made, which needs room to grow.
//
// A new text goes where the old one was if it fits without much waste; otherwise the key
// gets another object (DB.replace). Replies, scripts, and the log copy what they are
// given before the next command, and a snapshot has taken the object before (Inspect), so
// nobody else ever looks at the old bytes. What the allocator rounds up to is asked of
// the runtime, in newBlock, and not known by heart.

// String is a string value. It belongs to one key at most: Put gives one that another key
// has, or had, an object of its own.
type String Object

// longString is the object of a string whose text is elsewhere.
type longString struct {
	heavy
	text []byte
}

const (
	wordBytes     = 8
	textAt        = int(unsafe.Sizeof(Object{}))
	smallestBytes = 24 // of a block, so that a number fits into any
	largestBytes  = 512
	shortMax      = largestBytes - textAt // bytes of text in a block
)

var emptyBlock [largestBytes / wordBytes]uint64

// NewString makes a string of a copy of text.
func NewString(text []byte) *String { return newString(text, 0) }

// AdoptString is NewString that may keep text, which belongs to it from then on.
func AdoptString(text []byte) *String {
	if len(text) <= shortMax {
		return newString(text, 0)
	}
	return newLong(text, 0)
}

// NewRawString is AdoptString for what is raw in the sense of String.Raw.
func NewRawString(text []byte) *String {
	if len(text) <= shortMax {
		return newString(text, rawTag)
	}
	return newLong(text, rawTag)
}

// newString makes a string of a copy of text, and with a tag no number.
func newString(text []byte, also tag) *String {
	if n, isNumber := ds.ParseInt(text); isNumber && also == 0 {
		return newNumber(n)
	}
	if len(text) > shortMax {
		return newLong(append([]byte(nil), text...), also)
	}
	s := newBlock(len(text))
	s.tag |= also
	s.setLength(copy(s.block(), text))
	return s
}

func newNumber(n int64) *String {
	s := newBlock(wordBytes)
	s.putNumber(n)
	return s
}

func newLong(text []byte, also tag) *String {
	l := &longString{text: text}
	l.tag = tag(KindString) | longTag | also
	return (*String)(&l.Object)
}

// newBlock makes an empty short string with room for so many bytes.
func newBlock(textBytes int) *String {
	words := (max(textAt+textBytes, smallestBytes) + wordBytes - 1) / wordBytes
	block := append([]uint64(nil), emptyBlock[:words]...) // append, which takes all that the allocator gives
	s := (*String)(unsafe.Pointer(unsafe.SliceData(block)))
	s.tag, s.room = tag(KindString), uint8(cap(block))
	return s
}

func (s *String) setLength(n int) { s.length = s.length&^lengthBits | uint16(n) }

// block is the memory for the text of a short string.
func (s *String) block() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(s), textAt)), int(s.room)*wordBytes-textAt)
}

func (s *String) long() *longString { return (*longString)(unsafe.Pointer(s)) }

// Text is the bytes of the string, to be read only, and until its key is written to. Those
// of a number are written to digits, for which 20 bytes of room are enough.
func (s *String) Text(digits []byte) []byte {
	switch {
	case s.tag&numberTag != 0:
		return strconv.AppendInt(digits[:0], s.number(), 10)
	case s.tag&longTag != 0:
		return s.long().text
	}
	return s.block()[:s.length&lengthBits]
}

// Number is the value if it is kept as a number: OBJECT ENCODING calls it int.
func (s *String) Number() (n int64, ok bool) {
	if s.tag&numberTag == 0 {
		return 0, false
	}
	return s.number(), true
}

// Integer is the value if it reads as an integer, however it is kept.
func (s *String) Integer() (n int64, ok bool) {
	if s.tag&numberTag != 0 {
		return s.number(), true
	}
	return ds.ParseInt(s.Text(nil))
}

// Raw is whether the value was built by APPEND or SETRANGE, which is what OBJECT ENCODING
// calls raw however short it is. It is sticky.
func (s *String) Raw() bool { return s.tag&rawTag != 0 }

// LenBytes is the length of the string.
func (s *String) LenBytes() int {
	var digits [20]byte
	return len(s.Text(digits[:]))
}

func (s *String) number() int64 { return int64(binary.NativeEndian.Uint64(s.block())) }

func (s *String) putNumber(n int64) {
	binary.NativeEndian.PutUint64(s.block(), uint64(n))
	s.tag = s.tag&^(rawTag|floatTag) | numberTag
}

// setNumber makes the string a number, unless there is no room in it.
func (s *String) setNumber(n int64) (done bool) {
	if s.tag&longTag != 0 {
		return false
	}
	s.putNumber(n)
	return true
}

// setText makes the string a copy of text if it fits without wasting much. A tag says that
// it is no number.
func (s *String) setText(text []byte, also tag) (done bool) {
	if s.tag&longTag != 0 {
		l := s.long()
		if len(text) <= shortMax || !fits(cap(l.text), len(text)) {
			return false
		}
		l.text = append(l.text[:0], text...)
		s.tag = s.tag&^(rawTag|floatTag) | also
		return true
	}
	if n, isNumber := ds.ParseInt(text); isNumber && also == 0 {
		s.putNumber(n)
		return true
	}
	block := s.block()
	if !fits(len(block), len(text)) {
		return false
	}
	s.setLength(copy(block, text))
	s.tag = s.tag&^(numberTag|rawTag|floatTag) | also
	return true
}

// fits reports whether so many bytes go into a room without wasting much.
func fits(room, length int) bool { return length <= room && room <= 2*length+64 }

// again is the string for another key. One whose key has gone needs its text no more: to
// rename a long string copies nothing.
func (s *String) again() *String {
	if s.tag&longTag != 0 && (*Object)(s).isGone() {
		return newLong(s.long().text, s.tag&(rawTag|floatTag))
	}
	return s.clone()
}

func (s *String) clone() *String {
	if s.tag&numberTag != 0 {
		return newNumber(s.number())
	}
	return newString(s.Text(nil), s.tag&(rawTag|floatTag))
}

// memoryBytes is what the object takes, with the text.
func (s *String) memoryBytes() int {
	if s.tag&longTag != 0 {
		return int(unsafe.Sizeof(longString{})) + ds.StringBytes(cap(s.long().text))
	}
	return int(s.room) * wordBytes
}
