package ds

import (
	"iter"
	"slices"
)

// A Deque is a directory of chunks of up to chunkMax elements each, no chunk empty.
// Work at an end touches one chunk. Work in the middle moves elements within one
// chunk only, and has to find it first: by arithmetic while all chunks but the first
// and the last are full (what pushes and pops alone always keep), by adding up the
// lengths in the directory from the nearer end after elements were inserted or
// removed in the middle.
//
// The directory has room before its first chunk, so that it grows at both ends.

// Deque is a list of strings. Positions count from 0 at the front.
type Deque struct {
	directory []chunk // the chunks in use are directory[first:]
	first     int
	size      int
	bytes     int
	ragged    bool // a chunk that is neither first nor last may be less than full
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
	chunks := d.chunks()
	if len(chunks) == 0 || chunks[0].length == chunkMax {
		d.openFront()
		chunks = d.chunks()
	}
	chunks[0].insert(0, s)
	d.size++
	d.bytes += len(s)
}

// PushBack adds s after the last element. Amortized O(1).
func (d *Deque) PushBack(s string) {
	last := len(d.directory) - 1
	if last < d.first || d.directory[last].length == chunkMax {
		d.directory = append(d.directory, newChunk(d.size))
		last++
	}
	c := &d.directory[last]
	c.insert(c.length, s)
	d.size++
	d.bytes += len(s)
}

// PopFront removes the first element; ok is false if there is none. O(1).
func (d *Deque) PopFront() (s string, ok bool) {
	if d.size == 0 {
		return "", false
	}
	return d.removeFrom(0, 0), true
}

// PopBack removes the last element; ok is false if there is none. O(1).
func (d *Deque) PopBack() (s string, ok bool) {
	if d.size == 0 {
		return "", false
	}
	last := len(d.chunks()) - 1
	return d.removeFrom(last, d.chunks()[last].length-1), true
}

// At returns the element at position i; ok is false if there is none. O(1), or O(n)
// with a very small factor after changes in the middle.
func (d *Deque) At(i int) (s string, ok bool) {
	if i < 0 || i >= d.size {
		return "", false
	}
	c, offset := d.locate(i)
	return *d.chunks()[c].at(offset), true
}

// Set replaces the element at position i and says whether there was one. It costs
// as much as At.
func (d *Deque) Set(i int, s string) bool {
	if i < 0 || i >= d.size {
		return false
	}
	c, offset := d.locate(i)
	place := d.chunks()[c].at(offset)
	d.bytes += len(s) - len(*place)
	*place = s
	return true
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
	if d.chunks()[c].length == chunkMax {
		d.split(c)
		if offset > chunkMax/2 {
			c, offset = c+1, offset-chunkMax/2
		}
	}
	d.chunks()[c].insert(offset, s)
	d.size++
	d.bytes += len(s)
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
	if d.ragged {
		d.join(c)
	}
	return true
}

// RemoveMatching removes the first limit elements for which match is true, or the last
// ones if backward, and returns how many. match is called once for an element. O(n).
func (d *Deque) RemoveMatching(match func(string) bool, limit int, backward bool) (removed int) {
	positions := d.matching(match, limit, backward)
	if !backward {
		slices.Reverse(positions)
	}
	if len(positions) <= chunkMax/8 {
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
// ascending order. During the walk elements may be replaced with Set, and nothing
// else may change.
func (d *Deque) Range(start, stop int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		start, stop := max(start, 0), min(stop, d.size-1)
		if start > stop {
			return
		}
		c, offset := d.locate(start)
		for i := start; i <= stop; i++ {
			current := &d.chunks()[c]
			if !yield(i, *current.at(offset)) {
				return
			}
			if offset++; offset == current.length {
				c, offset = c+1, 0
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
		for i := stop; i >= start; i-- {
			if !yield(i, *d.chunks()[c].at(offset)) {
				return
			}
			if offset--; offset < 0 && i > start {
				c--
				offset = d.chunks()[c].length - 1
			}
		}
	}
}

// Clone returns a copy. O(n).
func (d *Deque) Clone() *Deque {
	c := *d
	c.first = 0
	c.directory = make([]chunk, len(d.chunks()))
	for i := range c.directory {
		c.directory[i] = d.chunks()[i].clone()
	}
	return &c
}
