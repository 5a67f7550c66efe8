package ds

import (
	"iter"
	"slices"
	"strings"
)

// A Deque is a directory of chunks, no chunk empty. A chunk holds as many elements as fit
// into 4096 bytes, one after the other (dequechunk.go); a large one has a chunk for itself.
// Work at an end touches one chunk. Work in the middle moves bytes within one chunk only,
// and has to find it first, by adding up the lengths in the directory from the nearer end:
// 24 bytes for some hundreds of elements.
//
// A million elements of 14 bytes take 18 bytes each, where strings of their own in arrays
// took 38, and are some thousand objects for the collector instead of a million. The price:
// what is popped is copied out, and an element in the middle of a chunk is found by
// walking over its lengths, a few ns each. Rejected: offsets in each chunk (2 bytes an
// element, 12 %, for what lists are seldom used for); chunks of 8192 bytes, as Redis has
// (no smaller, and a change in the middle moves twice as much); handing out what was popped
// without a copy (the room behind it could not be used again).
//
// A list of one chunk has no directory: its chunk lies in the list itself, 32 bytes in all,
// and its room is as long as the first command needs. Ten elements of 8 bytes take 112
// bytes of room; with a directory of one, and rooms that doubled, they took 128 and 112
// around them.
//
// The directory has room before its first chunk, so that it grows at both ends.

// Deque is a list of strings. Positions count from 0 at the front. Elements that are looked
// at lie in the list: they are valid until it changes.
type Deque struct {
	only [1]chunk   // all elements, as long as there is no directory
	many *directory // nil while one chunk is enough; none of its chunks is empty
}

type directory struct {
	all       []chunk // those in use are all[first:]
	first     int
	size      int // elements
	roomBytes int // of all chunks
}

// NewDeque returns an empty Deque.
func NewDeque() *Deque { return &Deque{} }

// Len returns the number of elements.
func (d *Deque) Len() int {
	if d.many != nil {
		return d.many.size
	}
	return int(d.only[0].length)
}

// Expect makes room for these elements, which are about to be pushed to one end, if the list
// is empty.
func (d *Deque) Expect(elements [][]byte, front bool) {
	c := &d.only[0]
	if d.Len() > 0 || c.roomBytes > 0 {
		return
	}
	size := 0
	for _, element := range elements {
		if size += elementSize(len(element)); size > chunkBytes {
			return
		}
	}
	c.hold(slices.Grow([]byte(nil), size), 0)
	if front {
		c.from, c.to = c.roomBytes, c.roomBytes
	}
}

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for any list.
func (d *Deque) Encoding() string { return "quicklist" }

// PushFront adds a copy of s before the first element. Amortized O(1).
func (d *Deque) PushFront(s string) {
	size := elementSize(len(s))
	c := &d.only[0]
	switch {
	case d.many != nil:
		if !d.many.all[d.many.first].takes(size, true) {
			d.openFront(size)
		}
		c = &d.many.all[d.many.first]
	case c.length > 0 && !c.takes(size, true):
		d.spread()
		d.openFront(size)
		c = &d.many.all[d.many.first]
	}
	d.added(1, c.pushFront(s))
}

// PushBack adds a copy of s after the last element. Amortized O(1).
func (d *Deque) PushBack(s string) {
	size := elementSize(len(s))
	c := &d.only[0]
	switch {
	case d.many != nil:
		c = &d.many.all[len(d.many.all)-1]
		if !c.takes(size, false) {
			c = d.openBack(size)
		}
	case c.length > 0 && !c.takes(size, false):
		d.spread()
		c = d.openBack(size)
	}
	d.added(1, c.pushBack(s))
}

// added counts elements that have come or gone, and what rooms have grown by.
func (d *Deque) added(elements, roomBytes int) {
	if d.many != nil {
		d.many.size += elements
		d.many.roomBytes += roomBytes
	}
}

// spread begins a directory.
func (d *Deque) spread() {
	only := d.only[0]
	d.only[0] = chunk{}
	d.many = &directory{all: []chunk{only}, size: int(only.length), roomBytes: int(only.roomBytes)}
}

// PopFront removes the first element; ok is false if there is none. O(1).
func (d *Deque) PopFront() (s string, ok bool) {
	if d.Len() == 0 {
		return "", false
	}
	s = strings.Clone(d.chunks()[0].at(0))
	d.removeFrom(0, 0)
	return s, true
}

// PopBack removes the last element; ok is false if there is none. O(1).
func (d *Deque) PopBack() (s string, ok bool) {
	if d.Len() == 0 {
		return "", false
	}
	last := len(d.chunks()) - 1
	c := &d.chunks()[last]
	s = strings.Clone(c.at(int(c.length) - 1))
	d.removeFrom(last, int(c.length)-1)
	return s, true
}

// At returns the element at position i, valid until the list changes; ok is false if there
// is none. O(1) near the ends, else O(n) with a very small factor.
func (d *Deque) At(i int) (s string, ok bool) {
	if i < 0 || i >= d.Len() {
		return "", false
	}
	c, offset := d.locate(i)
	return d.chunks()[c].at(offset), true
}

// Set replaces the element at position i and says whether there was one. It costs
// as much as At.
func (d *Deque) Set(i int, s string) bool {
	if i < 0 || i >= d.Len() {
		return false
	}
	c, offset := d.locate(i)
	if d.chunks()[c].set(offset, s) {
		return true
	}
	d.removeFrom(c, offset)
	return d.InsertAt(i, s)
}

// InsertAt puts s before position i, or at the back if i is Len; it says whether i
// is such a position. It costs as much as At.
func (d *Deque) InsertAt(i int, s string) bool {
	switch {
	case i < 0 || i > d.Len():
		return false
	case i == 0:
		d.PushFront(s)
		return true
	case i == d.Len():
		d.PushBack(s)
		return true
	}
	c, offset := d.locate(i)
	d.insertInto(c, offset, s)
	d.added(1, 0)
	return true
}

// RemoveAt removes the element at position i and says whether there was one. It
// costs as much as At.
func (d *Deque) RemoveAt(i int) bool {
	if i < 0 || i >= d.Len() {
		return false
	}
	c, offset := d.locate(i)
	d.removeFrom(c, offset)
	d.join(c)
	return true
}

// RemoveMatching removes the first limit elements for which match is true, or the last
// ones if backward, and returns how many. match is called once for an element, which it
// must not keep. O(n).
func (d *Deque) RemoveMatching(match func(string) bool, limit int, backward bool) (removed int) {
	const few = 16 // to be found again one by one
	positions := d.matching(match, limit, backward)
	if !backward {
		slices.Reverse(positions)
	}
	if len(positions) <= few {
		for _, i := range positions { // descending, so that those to come stay valid
			d.RemoveAt(i)
		}
		return len(positions)
	}
	var kept Deque
	next := len(positions) - 1
	for i, s := range d.Range(0, d.Len()-1) {
		if next >= 0 && positions[next] == i {
			next--
			continue
		}
		kept.PushBack(s)
	}
	*d = kept
	return len(positions)
}

func (d *Deque) matching(match func(string) bool, limit int, backward bool) (positions []int) {
	walk := d.Range
	if backward {
		walk = d.Backward
	}
	if limit <= 0 {
		return nil
	}
	for i, s := range walk(0, d.Len()-1) {
		if !match(s) {
			continue
		}
		positions = append(positions, i)
		if len(positions) == limit {
			break
		}
	}
	return positions
}

// Trim keeps the elements at positions start to stop, both included, and removes all
// others. Positions outside the list are cut to it. O(elements removed).
func (d *Deque) Trim(start, stop int) {
	start, stop = max(start, 0), min(stop, d.Len()-1)
	if start > stop {
		*d = Deque{}
		return
	}
	for range d.Len() - 1 - stop {
		d.PopBack()
	}
	for range start {
		d.PopFront()
	}
}

// Range walks over positions start to stop, both included and cut to the list, in
// ascending order. Nothing may change during the walk.
func (d *Deque) Range(start, stop int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		start, stop := max(start, 0), min(stop, d.Len()-1)
		if start > stop {
			return
		}
		c, offset := d.locate(start)
		current := d.chunks()[c]
		place := current.find(offset)
		for i := start; i <= stop; i++ {
			if place == int(current.to) {
				c++
				current = d.chunks()[c]
				place = int(current.from)
			}
			var s string
			if s, place = current.after(place); !yield(i, s) {
				return
			}
		}
	}
}

// Backward walks over the same positions as Range, in descending order.
func (d *Deque) Backward(start, stop int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		start, stop := max(start, 0), min(stop, d.Len()-1)
		if start > stop {
			return
		}
		c, offset := d.locate(stop)
		current := d.chunks()[c]
		place := current.find(offset + 1)
		for i := stop; i >= start; i-- {
			if place == int(current.from) {
				c--
				current = d.chunks()[c]
				place = int(current.to)
			}
			var s string
			if s, place = current.before(place); !yield(i, s) {
				return
			}
		}
	}
}

// Clone returns a copy. O(n).
func (d *Deque) Clone() *Deque {
	if d.many == nil {
		return &Deque{only: [1]chunk{d.only[0].clone()}}
	}
	c := &directory{all: slices.Clone(d.chunks()), size: d.many.size}
	for i := range c.all {
		c.all[i] = c.all[i].clone()
		c.roomBytes += int(c.all[i].roomBytes)
	}
	return &Deque{many: c}
}

func (d *Deque) chunks() []chunk {
	if d.many != nil {
		return d.many.all[d.many.first:]
	}
	return d.only[:]
}

// newChunk returns an empty chunk of a directory, for an element of this size.
func (d *Deque) newChunk(size int) (c chunk) {
	if size < chunkAlone {
		c.hold(make([]byte, chunkBytes), 0)
		d.many.roomBytes += chunkBytes
	}
	return c
}

// openBack puts an empty chunk after the last, and returns it.
func (d *Deque) openBack(size int) *chunk {
	d.many.all = append(d.many.all, d.newChunk(size))
	return &d.many.all[len(d.many.all)-1]
}

// openFront puts an empty chunk before the first. When the room before the first is
// used up, as much is made as there are chunks, so that each chunk is moved a bounded
// number of times.
func (d *Deque) openFront(size int) {
	m := d.many
	if m.first == 0 {
		room := len(m.all)/2 + 1
		all := make([]chunk, room+len(m.all))
		copy(all[room:], m.all)
		m.all, m.first = all, room
	}
	c := d.newChunk(size)
	c.from, c.to = c.roomBytes, c.roomBytes
	m.first--
	m.all[m.first] = c
}

// dropFront removes the first chunk, which is empty. The room left before the chunks
// is given back when it outgrows them.
func (m *directory) dropFront() {
	m.all[m.first] = chunk{}
	m.first++
	if used := m.all[m.first:]; m.first > 8 && m.first > 2*len(used) {
		m.all, m.first = slices.Clone(used), 0
	}
}

// removeFrom takes an element out of chunk c, and the chunk out when it becomes empty.
func (d *Deque) removeFrom(c, offset int) {
	chunk := &d.chunks()[c]
	chunk.remove(offset)
	d.added(-1, 0)
	if chunk.length > 0 {
		return
	}
	d.added(0, -int(chunk.roomBytes))
	switch m := d.many; {
	case d.Len() == 0:
		*d = Deque{}
	case c == 0:
		m.dropFront()
	default:
		m.all = slices.Delete(m.all, m.first+c, m.first+c+1)
	}
}

// insertInto puts s before an element of chunk c. If it does not fit there, the chunk is
// cut at that place, and s goes to the end of the first part, or between the parts.
func (d *Deque) insertInto(c, offset int, s string) {
	size := elementSize(len(s))
	left := &d.chunks()[c]
	if left.fits(size) {
		d.added(0, left.insert(offset, s))
		return
	}
	if d.many == nil {
		d.spread()
		left = &d.many.all[0]
	}
	m := d.many
	if offset > 0 {
		rest := left.cut(offset)
		m.roomBytes += int(rest.roomBytes)
		m.all = slices.Insert(m.all, m.first+c+1, rest)
		if left = &d.chunks()[c]; left.fits(size) {
			m.roomBytes += left.pushBack(s)
			return
		}
		c++
	}
	between := d.newChunk(size)
	m.roomBytes += between.pushBack(s)
	m.all = slices.Insert(m.all, m.first+c, between)
}

// join appends chunk c+1 to chunk c if both exist and fit in one with room to spare, so
// that removals in the middle do not leave a trail of nearly empty chunks. The chunk
// before c is left for a later removal.
func (d *Deque) join(c int) {
	chunks, m := d.chunks(), d.many
	if c+1 >= len(chunks) || chunks[c].used()+chunks[c+1].used() > chunkBytes/2 {
		return
	}
	m.roomBytes += chunks[c].append(&chunks[c+1]) - int(chunks[c+1].roomBytes)
	m.all = slices.Delete(m.all, m.first+c+1, m.first+c+2)
}

// locate returns the chunk of position i, which must exist, and the place in it.
func (d *Deque) locate(i int) (c, offset int) {
	chunks := d.chunks()
	if i < d.Len()/2 {
		for ; i >= int(chunks[c].length); c++ {
			i -= int(chunks[c].length)
		}
		return c, i
	}
	c = len(chunks) - 1
	fromEnd := d.Len() - i
	for ; fromEnd > int(chunks[c].length); c-- {
		fromEnd -= int(chunks[c].length)
	}
	return c, int(chunks[c].length) - fromEnd
}
