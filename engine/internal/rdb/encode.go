package rdb

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
)

const (
	compressAbove = 20 // strings of more bytes are compressed if that pays
	compressGain  = 4  // it does from so many bytes on
	integerDigits = 11 // no integer of 32 bits has more digits

	listNodeBytes    = 8 << 10 // a node of a list holds so much, or one element
	listNodeOverhead = 8       // an element's share of a node beyond its own bytes, as Redis reckons
)

// encoder writes the items and the values of the format to its sink.
type encoder struct {
	sink
	lzf      lzf
	squeezed []byte // a compressed string
	pack     listpackBuilder
}

// value writes a value without the number of its type, which kind tells.
func (e *encoder) value(value any) {
	switch v := value.(type) {
	case *keyspace.String:
		var digits [20]byte
		e.text(v.Text(digits[:]))
	case *ds.Deque:
		e.list(v)
	case *ds.Set:
		e.set(v)
	case *ds.Hash:
		e.hash(v)
	case *ds.SortedSet:
		e.sortedSet(v)
	case *ds.Stream:
		e.stream(v)
	}
}

// kind is the number of the type under which value is written.
func kind(value any) (byte, error) {
	switch v := value.(type) {
	case *keyspace.String:
		return typeString, nil
	case *ds.Deque:
		return typeQuicklist2, nil
	case *ds.Set:
		return choose(v.IsInts(), typeSetInts, typeSet), nil
	case *ds.Hash:
		return choose(isPacked(v), typeHashListpack, typeHash), nil
	case *ds.SortedSet:
		return choose(isPacked(v), typeSortedSetPack, typeSortedSet), nil
	case *ds.Stream:
		return typeStream2, nil
	}
	return 0, fmt.Errorf("rdb: a %T is no value", value)
}

func choose(packed bool, small, large byte) byte {
	if packed {
		return small
	}
	return large
}

// isPacked reports whether Redis keeps such a collection packed.
func isPacked(v interface{ Encoding() string }) bool { return v.Encoding() == "listpack" }

func (e *encoder) length(n uint64) {
	switch {
	case n < 1<<6:
		e.buf = append(e.buf, byte(n))
	case n < 1<<14:
		e.buf = append(e.buf, lengthIn14Bits<<6|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		e.buf = binary.BigEndian.AppendUint32(append(e.buf, lengthIn32Bits), uint32(n))
	default:
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, lengthIn64Bits), n)
	}
}

// text writes a string, as an integer if it is one of 32 bits, compressed if that
// makes it shorter.
func (e *encoder) text(b []byte) {
	switch {
	case len(b) <= integerDigits && e.integer(b):
	case len(b) > compressAbove && e.compressed(b):
	default:
		e.length(uint64(len(b)))
		e.put(b)
	}
	e.relieve()
}

func (e *encoder) textString(s string) { e.text(viewBytes(s)) }

func (e *encoder) integer(b []byte) bool {
	n, ok := ds.ParseInt(b)
	const special = lengthSpecial << 6
	switch {
	case !ok || n < math.MinInt32 || n > math.MaxInt32:
		return false
	case math.MinInt8 <= n && n <= math.MaxInt8:
		e.buf = append(e.buf, special+stringInt8, byte(n))
	case math.MinInt16 <= n && n <= math.MaxInt16:
		e.buf = binary.LittleEndian.AppendUint16(append(e.buf, special+stringInt16), uint16(n))
	default:
		e.buf = binary.LittleEndian.AppendUint32(append(e.buf, special+stringInt32), uint32(n))
	}
	return true
}

func (e *encoder) compressed(b []byte) bool {
	squeezed, ok := e.lzf.compress(slices.Grow(e.squeezed[:0], len(b)), b, len(b)-compressGain)
	e.squeezed = forgetLarge(squeezed)
	if !ok {
		return false
	}
	e.buf = append(e.buf, lengthSpecial<<6+stringCompressed)
	e.length(uint64(len(squeezed)))
	e.length(uint64(len(b)))
	e.put(squeezed)
	return true
}

// forgetLarge returns a buffer to be used again, unless it is so large that an
// encoder should not keep it.
func forgetLarge(b []byte) []byte {
	const keptBytes = 1 << 20
	if cap(b) > keptBytes {
		return nil
	}
	return b[:0]
}

// list writes a list as nodes. How many there will be stands before them, so the
// list is walked twice.
func (e *encoder) list(list *ds.Deque) {
	var bounds, counted nodeBounds
	nodes := uint64(0)
	for _, s := range list.Range(0, list.Len()-1) {
		if counted.before(s) {
			nodes++
			e.relieve()
		}
	}
	e.length(nodes)
	e.pack.reset()
	for _, s := range list.Range(0, list.Len()-1) {
		if e.err != nil {
			return
		}
		if bounds.before(s) {
			e.listNode()
		}
		e.pack.add(s)
	}
	e.listNode()
}

// nodeBounds cuts a list into nodes. Its zero value is before the first element.
type nodeBounds struct{ bytes int }

// before takes the next element and reports whether a node begins with it.
func (n *nodeBounds) before(s string) bool {
	size := len(s) + listNodeOverhead
	if n.bytes == 0 || n.bytes+size > listNodeBytes {
		n.bytes = packHeader + 1 + size
		return true
	}
	n.bytes += size
	return false
}

// listNode writes what has gathered, if anything, as a node.
func (e *encoder) listNode() {
	if e.pack.count == 0 {
		return
	}
	e.busy += nodeBusy
	e.length(nodePacked)
	e.text(e.pack.finish())
	e.pack.reset()
}

func (e *encoder) set(set *ds.Set) {
	if set.IsInts() {
		e.integers(set)
		return
	}
	e.length(uint64(set.Len()))
	for member := range set.All() {
		if e.err != nil {
			return
		}
		e.textString(member)
	}
}

func (e *encoder) integers(set *ds.Set) {
	integers := make([]int64, 0, set.Len())
	for member := range set.All() {
		n, _ := ds.ParseInt(viewBytes(member)) // it is one
		integers = append(integers, n)
	}
	e.text(appendIntset(nil, integers))
}

func (e *encoder) hash(hash *ds.Hash) {
	if isPacked(hash) {
		e.pack.reset()
		for field, value := range hash.All() {
			e.pack.add(field)
			e.pack.add(value)
		}
		e.text(e.pack.finish())
		return
	}
	e.length(uint64(hash.Len()))
	for field, value := range hash.All() {
		if e.err != nil {
			return
		}
		e.textString(field)
		e.textString(value)
	}
}

// sortedSet writes the highest score first if the set is not packed, as Redis
// does: so whoever reads it always inserts at the front.
func (e *encoder) sortedSet(z *ds.SortedSet) {
	if isPacked(z) {
		e.pack.reset()
		for member, score := range z.All() {
			e.pack.add(member)
			e.pack.addScore(score)
		}
		e.text(e.pack.finish())
		return
	}
	e.length(uint64(z.Len()))
	for member, score := range z.Descend(z.Len() - 1) {
		if e.err != nil {
			return
		}
		e.textString(member)
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(score))
	}
}
