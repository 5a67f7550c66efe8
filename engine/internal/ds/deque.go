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
// 40 bytes for some hundreds of elements.
//
// A million elements of 14 bytes take 18 bytes each, where strings of their own in arrays
// took 38, and are some thousand objects for the collector instead of a million. The price:
// what is popped is copied out, and an element in the middle of a chunk is found by
// walking over its lengths, a few ns each. Rejected: offsets in each chunk (2 bytes an
// element, 12 %, for what lists are seldom used for); chunks of 8192 bytes, as Redis has
// (no smaller, and a change in the middle moves twice as much); handing out what was popped
// without a copy (the room behind it could not be used again).
//
// The directory has room before its first chunk, so that it grows at both ends.

// Deque is a list of strings. Positions count from 0 at the front. Elements that are looked
// at lie in the list: they are valid until it changes.
type Deque struct {
	directory []chunk // the chunks in use are directory[first:]
	first     int
	size      int
	bytes     int
	roomBytes int // of all chunks
}

// NewDeque returns an empty Deque.
func NewDeque() *Deque { return &Deque{} }

// Len returns the number of elements.
func (d *Deque) Len() int { return d.size }

// Bytes returns the sum of the lengths of all elements.
func (d *Deque) Bytes() int { return d.bytes }

// Encoding returns the name that OBJECT ENCODING of Redis 7.0 has for any list.
func (d *Deque) Encoding() string { return "quicklist" }

// PushFront adds s before the first element. Amortized O(1).
func (d *Deque) PushFront(s string) {
	size := elementSize(len(s))
	if d.size == 0 || !d.chunks()[0].takes(size, true) {
		d.openFront(size)
	}
	d.roomBytes += d.chunks()[0].pushFront(s)
	d.added(s)
}

// PushBack adds s after the last element. Amortized O(1).
func (d *Deque) PushBack(s string) {
	size := elementSize(len(s))
	if d.size == 0 || !d.directory[len(d.directory)-1].takes(size, false) {
		d.directory = append(d.directory, d.newChunk(size))
	}
	d.roomBytes += d.directory[len(d.directory)-1].pushBack(s)
	d.added(s)
}

func (d *Deque) added(s string) {
	d.size++
	d.bytes += len(s)
}

// PopFront removes the first element; ok is false if there is none. O(1).
func (d *Deque) PopFront() (s string, ok bool) {
	if d.size == 0 {
		return "", false
	}
	s = strings.Clone(d.chunks()[0].at(0))
	d.removeFrom(0, 0)
	return s, true
}

// PopBack removes the last element; ok is false if there is none. O(1).
func (d *Deque) PopBack() (s string, ok bool) {
	if d.size == 0 {
		return "", false
	}
	last := len(d.chunks()) - 1
	c := &d.chunks()[last]
	s = strings.Clone(c.at(c.length - 1))
	d.removeFrom(last, c.length-1)
	return s, true
}

// At returns the element at position i, valid until the list changes; ok is false if there
// is none. O(1) near the ends, else O(n) with a very small factor.
func (d *Deque) At(i int) (s string, ok bool) {
	if i < 0 || i >= d.size {
		return "", false
	}
	c, offset := d.locate(i)
	return d.chunks()[c].at(offset), true
}

// Set replaces the element at position i and says whether there was one. It costs
// as much as At.
func (d *Deque) Set(i int, s string) bool {
	if i < 0 || i >= d.size {
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
	case i < 0 || i > d.size:
		return false
	case i == 0:
		d.PushFront(s)
		return true
	case i == d.size:
		d.PushBack(s)
		return true
	}
	c, offset := d.locate(i)
	d.insertInto(c, offset, s)
	d.added(s)
	return true
}

// RemoveAt removes the element at position i and says whether there was one. It
// costs as much as At.
func (d *Deque) RemoveAt(i int) bool {
	if i < 0 || i >= d.size {
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
	for i, s := range d.Range(0, d.size-1) {
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
	for i, s := range walk(0, d.size-1) {
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
	start, stop = max(start, 0), min(stop, d.size-1)
	if start > stop {
		*d = Deque{}
		return
	}
	for range d.size - 1 - stop {
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
		start, stop := max(start, 0), min(stop, d.size-1)
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
		start, stop := max(start, 0), min(stop, d.size-1)
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
	c := *d
	c.first, c.roomBytes = 0, 0
	c.directory = make([]chunk, len(d.chunks()))
	for i := range c.directory {
		c.directory[i] = d.chunks()[i].clone()
		c.roomBytes += len(c.directory[i].room)
	}
	return &c
}

func (d *Deque) chunks() []chunk { return d.directory[d.first:] }

// newChunk returns a chunk for an element of this size: whole if there are others.
func (d *Deque) newChunk(size int) (c chunk) {
	if d.size > 0 && size < chunkAlone {
		c.room = make([]byte, chunkBytes)
		d.roomBytes += chunkBytes
	}
	return c
}

// openFront puts an empty chunk before the first. When the room before the first is
// used up, as much is made as there are chunks, so that each chunk is moved a bounded
// number of times.
func (d *Deque) openFront(size int) {
	if d.first == 0 {
		room := len(d.directory)/2 + 1
		directory := make([]chunk, room+len(d.directory))
		copy(directory[room:], d.directory)
		d.directory, d.first = directory, room
	}
	c := d.newChunk(size)
	c.from, c.to = uint32(len(c.room)), uint32(len(c.room))
	d.first--
	d.directory[d.first] = c
}

// dropFront removes the first chunk, which is empty. The room left before the chunks
// is given back when it outgrows them.
func (d *Deque) dropFront() {
	d.directory[d.first] = chunk{}
	d.first++
	if d.first > 8 && d.first > 2*len(d.chunks()) {
		d.directory = slices.Clone(d.chunks())
		d.first = 0
	}
}

// removeFrom takes an element out of chunk c, and the chunk out when it becomes empty.
func (d *Deque) removeFrom(c, offset int) {
	chunk := &d.chunks()[c]
	d.bytes -= chunk.remove(offset)
	d.size--
	if chunk.length > 0 {
		return
	}
	d.roomBytes -= len(chunk.room)
	switch {
	case d.size == 0:
		*d = Deque{}
	case c == 0:
		d.dropFront()
	default:
		d.directory = slices.Delete(d.directory, d.first+c, d.first+c+1)
	}
}

// insertInto puts s before an element of chunk c. If it does not fit there, the chunk is
// cut at that place, and s goes to the end of the first part, or between the parts.
func (d *Deque) insertInto(c, offset int, s string) {
	size := elementSize(len(s))
	left := &d.chunks()[c]
	if left.fits(size) {
		d.roomBytes += left.insert(offset, s)
		return
	}
	if offset > 0 {
		rest := left.cut(offset)
		d.roomBytes += len(rest.room)
		d.directory = slices.Insert(d.directory, d.first+c+1, rest)
		if left = &d.chunks()[c]; left.fits(size) {
			d.roomBytes += left.pushBack(s)
			return
		}
		c++
	}
	between := d.newChunk(size)
	d.roomBytes += between.pushBack(s)
	d.directory = slices.Insert(d.directory, d.first+c, between)
}

// join appends chunk c+1 to chunk c if both exist and fit in one with room to spare, so
// that removals in the middle do not leave a trail of nearly empty chunks. The chunk
// before c is left for a later removal.
func (d *Deque) join(c int) {
	chunks := d.chunks()
	if c+1 >= len(chunks) || chunks[c].used()+chunks[c+1].used() > chunkBytes/2 {
		return
	}
	d.roomBytes += chunks[c].append(&chunks[c+1]) - len(chunks[c+1].room)
	d.directory = slices.Delete(d.directory, d.first+c+1, d.first+c+2)
}

// locate returns the chunk of position i, which must exist, and the place in it.
func (d *Deque) locate(i int) (c, offset int) {
	chunks := d.chunks()
	if i < d.size/2 {
		for ; i >= chunks[c].length; c++ {
			i -= chunks[c].length
		}
		return c, i
	}
	c = len(chunks) - 1
	fromEnd := d.size - i
	for ; fromEnd > chunks[c].length; c-- {
		fromEnd -= chunks[c].length
	}
	return c, chunks[c].length - fromEnd
}
