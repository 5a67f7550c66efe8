package ds

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// The index of a Dict: a power of two of buckets, each the start of a chain of
// entries linked by position. To change the number of buckets, a second table is
// put beside the first, and every later write moves a few buckets over, in bucket
// order. An element is always in exactly one chain: in the second table if its bucket
// of the first has been moved, else in the first. So a look-up during the move still
// reads one chain.
//
// The buckets are cut into segments that are allocated when first written to and
// dropped when moved: neither the start nor the end of a move costs more than a
// directory of segments, and the two tables together never weigh much more than one.

const (
	segmentBits = 13
	segmentSize = 1 << segmentBits
	segmentMask = segmentSize - 1

	bucketsMin  = 2 * smallMax
	sparseness  = 8 // shrink when there are this many buckets for each element
	movePerStep = 4 // buckets moved by one write: a move ends long before the next is due
)

// link is the position of an entry plus one; 0 is the end of a chain.
type link uint32

type index struct {
	main   table
	target table  // where the elements move to; no segments if nothing moves
	moved  uint32 // the buckets of main below this one have been moved

	expected bool // elements are: see Expect
}

type table struct {
	segments [][]link // a nil segment is one whose buckets are all empty
	mask     uint32   // number of buckets - 1
}

func newTable(buckets int) table {
	n := max(1, buckets>>segmentBits)
	return table{segments: make([][]link, n), mask: uint32(buckets - 1)}
}

func (t *table) head(bucket uint32) link {
	segment := t.segments[bucket>>segmentBits]
	if segment == nil {
		return 0
	}
	return segment[bucket&segmentMask]
}

// slot returns the place of a bucket's head, to be written to.
func (t *table) slot(bucket uint32) *link {
	segment := &t.segments[bucket>>segmentBits]
	if *segment == nil {
		*segment = make([]link, min(segmentSize, int(t.mask)+1))
	}
	return &(*segment)[bucket&segmentMask]
}

func (t *table) clone() table {
	c := table{segments: slices.Clone(t.segments), mask: t.mask}
	for i, segment := range c.segments {
		c.segments[i] = slices.Clone(segment)
	}
	return c
}

func (x *index) clone() *index {
	return &index{main: x.main.clone(), target: x.target.clone(), moved: x.moved, expected: x.expected}
}

func (x *index) moving() bool { return x.target.segments != nil }

// locate returns the one table and bucket where elements with this hash are.
func (x *index) locate(hash uint32) (*table, uint32) {
	bucket := hash & x.main.mask
	if bucket < x.moved {
		return &x.target, hash & x.target.mask
	}
	return &x.main, bucket
}

func (x *index) first(hash uint32) link {
	t, bucket := x.locate(hash)
	return t.head(bucket)
}

// buildIndex begins to index a Dict that was small until now.
func (d *Dict[V]) buildIndex() {
	if d.seed == (maphash.Seed{}) {
		d.seed = maphash.MakeSeed()
	}
	d.index = &index{main: newTable(bucketsMin)}
	for at := link(1); at <= link(d.size); at++ {
		e := d.at(at)
		e.hash = d.hash(e.key)
		d.chain(at)
	}
}

// chain puts the entry at this position at the head of its bucket.
func (d *Dict[V]) chain(at link) {
	e := d.at(at)
	head := d.headOf(e.hash)
	e.next, *head = *head, at
}

func (d *Dict[V]) headOf(hash uint32) *link {
	t, bucket := d.index.locate(hash)
	return t.slot(bucket)
}

// linkTo returns the link that leads to the entry at this position.
func (d *Dict[V]) linkTo(at link) *link {
	l := d.headOf(d.at(at).hash)
	for *l != at {
		l = &d.at(*l).next
	}
	return l
}

// resize starts a move when the number of buckets no longer fits the size, and drops
// the index when few elements are left.
func (d *Dict[V]) resize() {
	x := d.index
	buckets := int(x.main.mask) + 1
	switch {
	case d.size <= smallMax/2 && !x.expected:
		d.index = nil
	case x.moving():
	case d.size > buckets:
		x.target = newTable(2 * buckets)
	case x.expected:
	case buckets > bucketsMin && d.size < buckets/sparseness:
		x.target = newTable(max(bucketsMin, 1<<bits.Len(uint(2*d.size))))
	}
}

// moveSome moves a few buckets if a move is under way. Each write calls it first.
func (d *Dict[V]) moveSome() {
	x := d.index
	if x == nil || !x.moving() {
		return
	}
	for range movePerStep {
		d.moveBucket()
		x.moved++
		if x.moved&segmentMask == 0 {
			x.main.segments[(x.moved-1)>>segmentBits] = nil
		}
		if x.moved == x.main.mask+1 {
			*x = index{main: x.target, expected: x.expected}
			d.resize() // the size may have gone elsewhere meanwhile
			return
		}
	}
}

// moveBucket chains the entries of the next bucket of main into the target.
func (d *Dict[V]) moveBucket() {
	x := d.index
	at := x.main.head(x.moved)
	if at == 0 {
		return
	}
	*x.main.slot(x.moved) = 0
	for at != 0 {
		e := d.at(at)
		next := e.next
		head := x.target.slot(e.hash & x.target.mask)
		e.next, *head = *head, at
		at = next
	}
}

// Scan is one step of a walk that may be spread over any number of calls, with any
// changes to d between them. The walk begins with cursor 0; each call visits the
// elements of one bucket and returns the cursor of the next call, 0 when the walk is
// done. Every element that is present during the whole walk is visited at least once;
// elements may be visited more than once. Any cursor is valid. visit must not change d.
//
// The cursor counts the buckets with its bits reversed, as Redis's SCAN does: the
// high bits of the bucket number count fastest. When the table doubles, bucket b
// becomes b and b+n, and both are in the count exactly where b was; so what lies
// before the cursor stays before it in any table size.
func (d *Dict[V]) Scan(cursor uint64, visit func(key string, v V)) (next uint64) {
	x := d.index
	if x == nil {
		for key, v := range d.All() {
			visit(key, v)
		}
		return 0
	}
	if !x.moving() {
		d.visitBucket(&x.main, cursor, visit)
		return advance(cursor, x.main.mask)
	}
	small, large := &x.main, &x.target
	if small.mask > large.mask {
		small, large = large, small
	}
	d.visitBucket(small, cursor, visit)
	for {
		d.visitBucket(large, cursor, visit)
		cursor = advance(cursor, large.mask)
		// All buckets of the large table that share a bucket of the small one belong
		// to this step: the step ends when the bits that tell them apart are back at 0.
		if cursor&uint64(small.mask^large.mask) == 0 {
			return cursor
		}
	}
}

func (d *Dict[V]) visitBucket(t *table, cursor uint64, visit func(key string, v V)) {
	at := t.head(uint32(cursor) & t.mask)
	for at != 0 {
		e := d.at(at)
		visit(e.key, e.value)
		at = e.next
	}
}

// advance adds one to the bits of the cursor under mask, read from high to low.
func advance(cursor uint64, mask uint32) uint64 {
	cursor |= ^uint64(mask)
	return bits.Reverse64(bits.Reverse64(cursor) + 1)
}
