package ds

import (
	"encoding/binary"
	"slices"
)

const (
	chunkBytes = 4096 // what a chunk has room for, unless a single element takes more
	chunkFirst = 64   // the room that a list begins with
	chunkAlone = 1024 // an element that takes so much has a chunk for itself
)

// chunk is elements of a list one after the other, somewhere in a room that is larger:
// they grow at both ends. An element is its length, its bytes, and its length again with
// the digits in the other order, so that it can be read from behind as well.
//
// The room has no pointers in it: the collector looks at one object for some hundreds of
// elements, and never inside.
type chunk struct {
	room     []byte
	from, to uint32 // the elements are room[from:to]
	length   int    // how many they are
}

// elementSize is what a string takes in a chunk.
func elementSize(length int) int { return length + 2*uvarintSize(uint64(length)) }

func (c *chunk) used() int { return int(c.to - c.from) }

// after returns the element that begins at place, and where it ends.
func (c *chunk) after(place int) (s string, end int) {
	n, width := int(c.room[place]), 1
	if n >= 0x80 {
		long, w := binary.Uvarint(c.room[place:])
		n, width = int(long), w
	}
	start := place + width
	return view(c.room[start : start+n]), start + n + width
}

// before returns the element that ends at place, and where it begins.
func (c *chunk) before(place int) (s string, start int) {
	n, width := int(c.room[place-1]), 1
	if n >= 0x80 {
		n &= 0x7f
		for shift := 7; ; shift += 7 {
			width++
			digit := int(c.room[place-width])
			n |= digit & 0x7f << shift
			if digit < 0x80 {
				break
			}
		}
	}
	end := place - width
	return view(c.room[end-n : end]), end - n - width
}

// find returns where the i-th element begins, from the nearer end; i may be the length.
func (c *chunk) find(i int) (place int) {
	if i <= c.length/2 {
		place = int(c.from)
		for range i {
			_, place = c.after(place)
		}
		return place
	}
	place = int(c.to)
	for range c.length - i {
		_, place = c.before(place)
	}
	return place
}

// at returns the i-th element, which is valid until the chunk is changed.
func (c *chunk) at(i int) string {
	s, _ := c.after(c.find(i))
	return s
}

// write puts an element at place, where there is room for it.
func (c *chunk) write(place int, s string) {
	width := binary.PutUvarint(c.room[place:], uint64(len(s)))
	place += width
	place += copy(c.room[place:], s)
	binary.PutUvarint(c.room[place:], uint64(len(s)))
	slices.Reverse(c.room[place : place+width])
}

// fits reports whether an element of this size may be added.
func (c *chunk) fits(size int) bool { return c.used()+size <= chunkBytes && size < chunkAlone }

// takes reports whether an element of this size is to be added at one end. A chunk of full
// size whose room is used up at that end takes no more while the rest of its room is small:
// to move everything there would be to move it again soon.
func (c *chunk) takes(size int, front bool) bool {
	gap := len(c.room) - int(c.to)
	if front {
		gap = int(c.from)
	}
	return c.fits(size) && (gap >= size || len(c.room) < chunkBytes || c.used() < chunkBytes/2)
}

// pushBack adds s, which fits, after the last element. It returns by how much the room has grown.
func (c *chunk) pushBack(s string) (grown int) {
	size := elementSize(len(s))
	if int(c.to)+size > len(c.room) {
		grown = c.makeRoom(size, false)
	}
	c.write(int(c.to), s)
	c.to += uint32(size)
	c.length++
	return grown
}

// pushFront adds s, which fits, before the first element.
func (c *chunk) pushFront(s string) (grown int) {
	size := elementSize(len(s))
	if int(c.from) < size {
		grown = c.makeRoom(size, true)
	}
	c.from -= uint32(size)
	c.write(int(c.from), s)
	c.length++
	return grown
}

// makeRoom moves the elements so that there is room for so many bytes at one end. If the
// room is less than half used they stay in it, which gains as many bytes as are moved:
// a short queue goes round in its room.
func (c *chunk) makeRoom(size int, front bool) (grown int) {
	used := c.used()
	old, room := c.room, c.room
	if 2*(used+size) > len(room) && (len(room) < chunkBytes || used+size > len(room)) {
		length := min(max(2*len(room), chunkFirst), chunkBytes)
		for length < used+size {
			length *= 2
		}
		if size >= chunkAlone {
			length = used + size
		}
		room = slices.Grow([]byte(nil), length)
		room = room[:cap(room)]
		grown = len(room) - len(old)
	}
	place := 0
	if front {
		place = len(room) - used
	}
	copy(room[place:], old[c.from:c.to])
	c.room, c.from, c.to = room, uint32(place), uint32(place+used)
	return grown
}

// insert puts s, which fits, before the i-th element.
func (c *chunk) insert(i int, s string) (grown int) {
	switch i {
	case 0:
		return c.pushFront(s)
	case c.length:
		return c.pushBack(s)
	}
	size := elementSize(len(s))
	place := c.find(i) - int(c.from)
	if int(c.to)+size > len(c.room) {
		grown = c.makeRoom(size, false)
	}
	place += int(c.from)
	copy(c.room[place+size:], c.room[place:c.to])
	c.write(place, s)
	c.to += uint32(size)
	c.length++
	return grown
}

// remove takes the i-th element out and returns how long it was.
func (c *chunk) remove(i int) (length int) {
	place := c.find(i)
	s, end := c.after(place)
	length = len(s)
	switch i {
	case 0:
		c.from = uint32(end)
	case c.length - 1:
		c.to = uint32(place)
	default:
		copy(c.room[place:], c.room[end:c.to])
		c.to -= uint32(end - place)
	}
	c.length--
	return length
}

// set replaces the i-th element if the new one takes as much.
func (c *chunk) set(i int, s string) (done bool) {
	place := c.find(i)
	old, _ := c.after(place)
	if len(old) != len(s) {
		return false
	}
	c.write(place, s)
	return true
}

// cut takes the elements from the i-th on away, and returns them as a chunk that shares
// nothing with c.
func (c *chunk) cut(i int) (rest chunk) {
	place := c.find(i)
	tail := c.room[place:c.to]
	rest = chunk{room: make([]byte, chunkBytes), length: c.length - i, to: uint32(len(tail))}
	copy(rest.room, tail)
	c.to, c.length = uint32(place), i
	return rest
}

// append moves the elements of other, which fit, behind those of c.
func (c *chunk) append(other *chunk) (grown int) {
	size := other.used()
	if int(c.to)+size > len(c.room) {
		grown = c.makeRoom(size, false)
	}
	copy(c.room[c.to:], other.room[other.from:other.to])
	c.to += uint32(size)
	c.length += other.length
	return grown
}

func (c *chunk) clone() chunk {
	room := append([]byte(nil), c.room[c.from:c.to]...)
	room = room[:cap(room)]
	return chunk{room: room, to: uint32(c.used()), length: c.length}
}
