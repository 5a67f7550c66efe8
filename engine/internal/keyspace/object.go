package keyspace

import (
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// Kind is the type of a value, as TYPE names it.
type Kind uint8

// The kinds of value.
const (
	None Kind = iota
	KindString
	KindList
	KindSet
	KindSortedSet
	KindHash
	KindStream
)

// String is the name that the TYPE command and SCAN's TYPE option use.
func (k Kind) String() string {
	switch k {
	case KindString:
		return "string"
	case KindList:
		return "list"
	case KindSet:
		return "set"
	case KindSortedSet:
		return "zset"
	case KindHash:
		return "hash"
	case KindStream:
		return "stream"
	default:
		return "none"
	}
}

// Object is what a key holds: what the keyspace knows of it, and its value. The value
// is either behind it, of a collection, or within it, of a string; see string.go. So the
// type itself has no pointer, and a string no part that the collector would read.
//
// Whoever has an Object has the beginning of one of three allocations, and the tag says
// of which: a collection, a longString, or a block of words with the text in it.
type Object struct {
	expireAt int64  // ms since the epoch; 0 is never. Written by DB only.
	access   uint32 // see access.go
	tag      tag
	room     uint8  // words of the block; 0 of what is none
	length   uint16 // of the text in it, in bytes; the highest bits are goneBit and markBit
}

// heavy is an object that is no block: it remembers its weight, which a block has by its room.
type heavy struct {
	Object
	weight uint32 // as it was last weighed; see memory.go
}

// tag is the kind of an object, and what else is to be known of a string.
type tag uint8

const (
	kindTag tag = 1<<3 - 1

	numberTag tag = 1 << (iota + 2) // the value is a number, as 8 bytes where the text would be
	longTag                         // a longString
	rawTag                          // see Raw
	floatTag                        // see StoreFloat
	takenTag                        // by a key: it is not to be put under another
)

// collection is the object of every value but a string.
type collection struct {
	heavy
	value unsafe.Pointer // to what the tag says
}

// newObject makes an object of a value, which is one of *String, *ds.Deque, *ds.Set,
// *ds.SortedSet, *ds.Hash and *ds.Stream. A string is its object, so that one that a key
// has, or had, gets another.
func newObject(value any) *Object {
	if s, isString := value.(*String); isString {
		if s.tag&takenTag != 0 {
			s = s.again()
		}
		s.tag |= takenTag
		return (*Object)(s)
	}
	c := &collection{}
	c.hold(value)
	return &c.Object
}

// hold makes value, which is no string, that of an object.
func (c *collection) hold(value any) {
	switch v := value.(type) {
	case *ds.Deque:
		c.tag, c.value = tag(KindList), unsafe.Pointer(v)
	case *ds.Set:
		c.tag, c.value = tag(KindSet), unsafe.Pointer(v)
	case *ds.SortedSet:
		c.tag, c.value = tag(KindSortedSet), unsafe.Pointer(v)
	case *ds.Hash:
		c.tag, c.value = tag(KindHash), unsafe.Pointer(v)
	case *ds.Stream:
		c.tag, c.value = tag(KindStream), unsafe.Pointer(v)
	}
}

func (o *Object) heavy() *heavy { return (*heavy)(unsafe.Pointer(o)) }

func (o *Object) collection() *collection { return (*collection)(unsafe.Pointer(o)) }

// ExpireAt is when the object expires, in ms since the epoch; 0 is never.
func (o *Object) ExpireAt() int64 { return o.expireAt }

// MemoryBytes is what the object and its value take of memory. O(1).
func (o *Object) MemoryBytes() int64 { return weigh(o) }

// Kind is the type of the object's value.
func (o *Object) Kind() Kind { return Kind(o.tag & kindTag) }

// Value is one of *String, *ds.Deque, *ds.Set, *ds.SortedSet, *ds.Hash and *ds.Stream. A
// string is valid until its key is written to the next time.
func (o *Object) Value() any {
	switch o.Kind() {
	case KindString:
		return (*String)(o)
	case KindList:
		return (*ds.Deque)(o.collection().value)
	case KindSet:
		return (*ds.Set)(o.collection().value)
	case KindSortedSet:
		return (*ds.SortedSet)(o.collection().value)
	case KindHash:
		return (*ds.Hash)(o.collection().value)
	case KindStream:
		return (*ds.Stream)(o.collection().value)
	default:
		return nil
	}
}

// limit makes a value follow the limits of the space.
func (s *Space) limit(value any) {
	switch v := value.(type) {
	case *ds.Set:
		v.Within(&s.Limits)
	case *ds.SortedSet:
		v.Within(&s.Limits)
	case *ds.Hash:
		v.Within(&s.Limits)
	case *ds.Stream:
		v.Within(&s.Limits)
	}
}

// CloneValue copies the object's value deeply; for COPY.
func (o *Object) CloneValue() any {
	switch v := o.Value().(type) {
	case *String:
		return v.clone()
	case *ds.Deque:
		return v.Clone()
	case *ds.Set:
		return v.Clone()
	case *ds.SortedSet:
		return v.Clone()
	case *ds.Hash:
		return v.Clone()
	case *ds.Stream:
		return v.Clone()
	default:
		return nil
	}
}

// Len is the number of elements of a collection; a string has none.
func (o *Object) Len() int {
	if c, ok := o.Value().(interface{ Len() int }); ok {
		return c.Len()
	}
	return 0
}
