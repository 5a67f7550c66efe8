package ds

import "unsafe"

// What a container takes of the heap, as an estimate in O(1): what it has made
// room for, which it knows, and the bytes of its strings, which it adds up as
// they come and go. The collector's own bookkeeping, and garbage that it has not
// yet found, are not in it. Tests hold the estimates against the real heap.

// StringBytes is how much of the heap a string of n bytes takes: the allocator
// rounds up.
func StringBytes(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 8:
		return 8
	case n <= 512:
		return (n + 15) &^ 15
	default:
		return n + n/16 // its sizes are about an eighth apart
	}
}

// MemoryBytes is how much of the heap the Dict takes, without what its values
// point to.
func (d *Dict[V]) MemoryBytes() int {
	entries := pageSize * len(d.pages)
	if len(d.pages) == 1 {
		entries = len(d.pages[0])
	}
	total := entries*int(unsafe.Sizeof(entry[V]{})) + cap(d.pages)*int(unsafe.Sizeof([]entry[V]{})) + d.keyBytes
	if x := d.index; x != nil {
		total += int(unsafe.Sizeof(*x)) + x.main.memoryBytes() + x.target.memoryBytes()
	}
	return total
}

// KeyBytes is the part of MemoryBytes that the bytes of the keys take.
func (d *Dict[V]) KeyBytes() int { return d.keyBytes }

// memoryBytes counts segments that are not there yet, or no longer: they are soon.
func (t *table) memoryBytes() int {
	if t.segments == nil {
		return 0
	}
	return (int(t.mask) + 1) * int(unsafe.Sizeof(link(0)))
}

// MemoryBytes is how much of the heap the hash takes. O(1).
func (h *Hash) MemoryBytes() int {
	total := int(unsafe.Sizeof(*h)) + h.row.memoryBytes()
	if l := h.row.large(); l != nil {
		total += int(unsafe.Sizeof(*l)) + l.MemoryBytes() + l.valueBytes
	}
	return total
}

// MemoryBytes is how much of the heap the set takes. O(1).
func (s *Set) MemoryBytes() int {
	total := int(unsafe.Sizeof(*s)) + s.row.memoryBytes()
	l := s.row.large()
	if l == nil {
		return total
	}
	total += int(unsafe.Sizeof(*l)) + StringBytes(cap(l.ints.bytes))
	if l.members != nil {
		total += int(unsafe.Sizeof(*l.members)) + l.members.MemoryBytes()
	}
	return total
}

// MemoryBytes is how much of the heap the sorted set takes. O(1). Of a tree of
// many nodes it is taken that they are three quarters full.
func (z *SortedSet) MemoryBytes() int {
	total := int(unsafe.Sizeof(*z)) + z.row.memoryBytes()
	large := z.row.large()
	if large == nil {
		return total
	}
	total += int(unsafe.Sizeof(*large)) + large.scores.MemoryBytes()
	root := large.order.root
	switch {
	case root == nil:
		return total
	case root.kids == nil:
		return total + int(unsafe.Sizeof(*root)) + cap(root.items)*int(unsafe.Sizeof(ranked{}))
	}
	return total + z.Len()*int(unsafe.Sizeof(ranked{}))*4/3
}

// MemoryBytes is how much of the heap the list takes. O(1).
func (d *Deque) MemoryBytes() int {
	total := int(unsafe.Sizeof(*d)) + int(d.only[0].roomBytes)
	if m := d.many; m != nil {
		total += int(unsafe.Sizeof(*m)) + cap(m.all)*int(unsafe.Sizeof(chunk{})) + m.roomBytes
	}
	return total
}

// MemoryBytes is how much of the heap the stream takes. O(1): what a chunk takes is added
// up whenever it changes, and what groups take as their parts come and go.
func (s *Stream) MemoryBytes() int {
	return int(unsafe.Sizeof(*s)) + cap(s.chunks)*int(unsafe.Sizeof(s.chunks[0])) + s.chunkBytes + s.groupBytes
}

// weigh counts what a chunk of the stream takes by now.
func (s *Stream) weigh(c *streamChunk) {
	total := int(unsafe.Sizeof(*c)) + StringBytes(cap(c.data)) + StringBytes(cap(c.index)*int(unsafe.Sizeof(c.index[0])))
	if !c.shares {
		total += cap(c.fields) * int(unsafe.Sizeof(c.fields[0]))
		for _, field := range c.fields {
			total += StringBytes(len(field))
		}
	}
	s.chunkBytes += total - c.bytes
	c.bytes = total
}

const (
	namedBytes = 48 // one of a few in a map by name
	// pendingBytes is an entry that is pending, with its places in the list of the group
	// and that of its consumer.
	pendingBytes = (int(unsafe.Sizeof(StreamPending{}))+15)&^15 + 2*10
)

// memoryBytes is what a group takes without its consumers, and what is pending.
func (g *StreamGroup) memoryBytes(name []byte) int {
	return int(unsafe.Sizeof(*g)) + namedBytes + StringBytes(len(name)) + g.pending.length*pendingBytes
}

// memoryBytes is what a consumer takes without what is pending.
func (c *StreamConsumer) memoryBytes() int {
	return int(unsafe.Sizeof(*c)) + namedBytes + StringBytes(len(c.Name))
}
