package keyspace

import "github.com/signalbox-io/signalbox/engine/internal/ds"

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

// String is a string value. Commands change Bytes in place; whoever hands the
// bytes out to something that outlives the command copies them first.
type String struct {
	Bytes []byte
	// Raw is sticky: the value was built by APPEND or SETRANGE, which is what
	// OBJECT ENCODING calls raw however short it is.
	Raw bool
	// Text is sticky too: INCRBYFLOAT built the value, which OBJECT ENCODING
	// never calls int, even if it reads as one.
	Text bool
}

// Object is what a key holds. Value is one of *String, *ds.Deque, *ds.Set,
// *ds.SortedSet, *ds.Hash and *ds.Stream.
type Object struct {
	Value    any
	expireAt int64  // ms since the epoch; 0 is never. Written by DB only.
	access   uint32 // see access.go
	weight   uint32 // as it was last weighed, or goneWeight; see memory.go. The highest bit is markBit.
}

// ExpireAt is when the object expires, in ms since the epoch; 0 is never.
func (o *Object) ExpireAt() int64 { return o.expireAt }

// MemoryBytes is what the object and its value take of memory. O(1).
func (o *Object) MemoryBytes() int64 { return weigh(o.Value) }

// Kind is the type of the object's value.
func (o *Object) Kind() Kind {
	switch o.Value.(type) {
	case *String:
		return KindString
	case *ds.Deque:
		return KindList
	case *ds.Set:
		return KindSet
	case *ds.SortedSet:
		return KindSortedSet
	case *ds.Hash:
		return KindHash
	case *ds.Stream:
		return KindStream
	default:
		return None
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
	}
}

// CloneValue copies the object's value deeply; for COPY.
func (o *Object) CloneValue() any {
	switch v := o.Value.(type) {
	case *String:
		return &String{Bytes: append([]byte(nil), v.Bytes...), Raw: v.Raw, Text: v.Text}
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
	if c, ok := o.Value.(interface{ Len() int }); ok {
		return c.Len()
	}
	return 0
}
