package keyspace

import (
	"math"
	"unsafe"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// How much memory the data takes: the sum of what every object says of itself
// (its weight), and of what the tables of keys take. Nobody has to report that a
// value has grown. Whatever a writing command has looked up may have changed, so
// it is put on a list, and the engine weighs the list after the command: that is
// the one place where the sum changes, but for keys that go away.
//
// The figures are estimates of the live heap, each in O(1); see MemoryBytes of
// the containers. What nobody needs any more and the collector has not taken yet
// is not in them.

// weightUnit is the unit in which an object remembers its weight: so it fits in
// 32 bits, and no allocation is smaller.
const weightUnit = 8

// What Object.length has besides.
const (
	lengthBits = 1<<13 - 1
	goneBit    = 1 << 13 // no key holds the object any more
)

// weighed is what an object was last weighed at: nothing at first, but a block weighs the same all
// its life.
func (o *Object) weighed() int64 {
	if o.room != 0 {
		return (int64(o.room)*wordBytes + weightUnit - 1) / weightUnit
	}
	return int64(o.heavy().weight)
}

func (o *Object) setWeight(weight int64) {
	if o.room == 0 {
		o.heavy().weight = uint32(weight)
	}
}

func (o *Object) isGone() bool { return o.length&goneBit != 0 }

// lookedUp is an object that a writing command has seen.
type lookedUp struct {
	db *DB
	o  *Object
}

// note puts an object on the list, unless a read-only command runs.
func (db *DB) note(o *Object) {
	if s := db.space; !s.Unchanging {
		s.noted = append(s.noted, lookedUp{db, o})
	}
}

// Weigh brings the sum up to date. The engine calls it after every command;
// whoever fills a database by other means calls it now and then, too.
func (s *Space) Weigh() {
	const keep = 1 << 10
	for _, n := range s.noted {
		if n.o.isGone() {
			continue
		}
		weight := units(n.o)
		n.db.weight += weight - n.o.weighed()
		n.o.setWeight(weight)
	}
	clear(s.noted)
	s.noted = s.noted[:0]
	if cap(s.noted) > keep {
		s.noted = nil
	}
}

// units is the weight of an object.
func units(o *Object) int64 {
	return min((weigh(o)+weightUnit-1)/weightUnit, math.MaxUint32)
}

// weigh is the size of an object with its value, in bytes.
func weigh(o *Object) int64 {
	total := int64(unsafe.Sizeof(collection{}))
	switch v := o.Value().(type) {
	case *String:
		return int64(v.memoryBytes())
	case interface{ MemoryBytes() int }:
		total += int64(v.MemoryBytes())
	case interface{ Len() int }: // a container that does not say
		const guess = 64
		total += int64(v.Len()) * guess
	}
	return total
}

// UsedBytes is what the data takes.
func (s *Space) UsedBytes() (total int64) {
	for _, db := range s.dbs {
		if db.objects.Len() > 0 || db.weight > 0 {
			total += db.weight*weightUnit + db.TableBytes()
		}
	}
	return total
}

// TableBytes is what the tables of keys take, without the values.
func (db *DB) TableBytes() int64 {
	shared := db.volatile.KeyBytes() // with the other table
	return int64(db.objects.MemoryBytes()) + int64(db.volatile.MemoryBytes()) - int64(shared)
}

// SizeOf is what one key and its value take; 0 if there is no such key.
func (db *DB) SizeOf(key []byte, nowMs int64) int64 {
	const entry = 40 // in a table that is full to about four fifths
	o := db.Peek(key, nowMs)
	if o == nil {
		return 0
	}
	total := weigh(o) + entry + int64(ds.StringBytes(len(key)))
	if o.expireAt != 0 {
		total += entry
	}
	return total
}
