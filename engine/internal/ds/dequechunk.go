package ds

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

const (
	chunkBytes = 4096 // what a chunk has room for, unless a single element takes more
	chunkSlack = 16   // the least room for more that is made when a list grows
	chunkAlone = 1024 // an element that takes so much has a chunk for itself
)

// chunk is elements of a list one after the other, somewhere in a room that is larger:
// they grow at both ends. An element is its length, its bytes, and its length again with
// the digits in the other order, so that it can be read from behind as well.
//
// The room has no pointers in it: the collector looks at one object for some hundreds of
// elements, and never inside.
type chunk struct {
	start     *byte // of the room
	roomBytes uint32
	from, to  uint32 // the elements are room[from:to]
	length    uint32 // how many they are
}

func (c *chunk) room() []byte { return unsafe.Slice(c.start, int(c.roomBytes)) }

// hold makes all of b's capacity the room, and its first used bytes the elements.
func (c *chunk) hold(b []byte, used int) {
	c.start, c.roomBytes = unsafe.SliceData(b), uint32(cap(b))
	c.from, c.to = 0, uint32(used)
}

// elementSize is what a string takes in a chunk.
func elementSize(length int) int { return length + 2*uvarintSize(uint64(length)) }

func (c *chunk) used() int { return int(c.to - c.from) }

// after returns the element that begins at place, and where it ends.
func (c *chunk) after(place int) (s string, end int) {
	room := c.room()
	n, width := int(room[place]), 1
	if n >= 0x80 {
		long, w := binary.Uvarint(room[place:])
		n, width = int(long), w
	}
	start := place + width
	return view(room[start : start+n]), start + n + width
}

// before returns the element that ends at place, and where it begins.
func (c *chunk) before(place int) (s string, start int) {
	room := c.room()
	n, width := int(room[place-1]), 1
	if n >= 0x80 {
		n &= 0x7f
		for shift := 7; ; shift += 7 {
			width++
			digit := int(room[place-width])
			n |= digit & 0x7f << shift
			if digit < 0x80 {
				break
			}
		}
	}
	end := place - width
	return view(room[end-n : end]), end - n - width
}

// find returns where the i-th element begins, from the nearer end; i may be the length.
func (c *chunk) find(i int) (place int) {
	if i <= int(c.length)/2 {
		place = int(c.from)
		for range i {
			_, place = c.after(place)
		}
		return place
	}
	place = int(c.to)
	for range int(c.length) - i {
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
	room := c.room()
	width := binary.PutUvarint(room[place:], uint64(len(s)))
	place += width
	place += copy(room[place:], s)
	binary.PutUvarint(room[place:], uint64(len(s)))
	slices.Reverse(room[place : place+width])
}

// fits reports whether an element of this size may be added.
func (c *chunk) fits(size int) bool { return c.used()+size <= chunkBytes && size < chunkAlone }

// takes reports whether an element of this size is to be added at one end. A chunk of full
// size whose room is used up at that end takes no more while the rest of its room is small:
// to move everything there would be to move it again soon.
func (c *chunk) takes(size int, front bool) bool {
	gap := int(c.roomBytes - c.to)
	if front {
		gap = int(c.from)
	}
	return c.fits(size) && (gap >= size || c.roomBytes < chunkBytes || c.used() < chunkBytes/2)
}

// pushBack adds s, which fits, after the last element. It returns by how much the room has grown.
func (c *chunk) pushBack(s string) (grown int) {
	size := elementSize(len(s))
	if int(c.to)+size > int(c.roomBytes) {
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

// makeRoom moves the elements so that there is room for so many bytes at one end. If a
// fifth of the room is left then they stay in it, which gains a quarter of the bytes that
// are moved at least: a short queue goes round in its room.
func (c *chunk) makeRoom(size int, front bool) (grown int) {
	used, room := c.used(), c.room()
	elements, whole := room[c.from:c.to], used+size
	if free := len(room) - whole; free < whole/4 && (len(room) < chunkBytes || free < 0) {
		length := max(min(whole+max(whole/8, chunkSlack), chunkBytes), whole)
		if c.length == 0 || size >= chunkAlone {
			length = whole
		}
		room = slices.Grow([]byte(nil), length)
		room = room[:cap(room)]
		grown = len(room) - int(c.roomBytes)
	}
	place := 0
	if front {
		place = len(room) - used
	}
	copy(room[place:], elements)
	c.hold(room, used)
	c.from, c.to = uint32(place), uint32(place+used)
	return grown
}

// insert puts s, which fits, before the i-th element.
func (c *chunk) insert(i int, s string) (grown int) {
	switch i {
	case 0:
		return c.pushFront(s)
	case int(c.length):
		return c.pushBack(s)
	}
	size := elementSize(len(s))
	place := c.find(i) - int(c.from)
	if int(c.to)+size > int(c.roomBytes) {
		grown = c.makeRoom(size, false)
	}
	place += int(c.from)
	room := c.room()
	copy(room[place+size:], room[place:c.to])
	c.write(place, s)
	c.to += uint32(size)
	c.length++
	return grown
}

// remove takes the i-th element out.
func (c *chunk) remove(i int) {
	place := c.find(i)
	_, end := c.after(place)
	switch i {
	case 0:
		c.from = uint32(end)
	case int(c.length) - 1:
		c.to = uint32(place)
	default:
		room := c.room()
		copy(room[place:], room[end:c.to])
		c.to -= uint32(end - place)
	}
	c.length--
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
	tail := c.room()[place:c.to]
	room := make([]byte, chunkBytes)
	rest.hold(room, copy(room, tail))
	rest.length = c.length - uint32(i)
	c.to, c.length = uint32(place), uint32(i)
	return rest
}

// append moves the elements of other, which fit, behind those of c.
func (c *chunk) append(other *chunk) (grown int) {
	size := other.used()
	if int(c.to)+size > int(c.roomBytes) {
		grown = c.makeRoom(size, false)
	}
	copy(c.room()[c.to:], other.room()[other.from:other.to])
	c.to += uint32(size)
	c.length += other.length
	return grown
}

func (c *chunk) clone() chunk {
	elements := c.room()[c.from:c.to]
	copied := chunk{length: c.length}
	copied.hold(append([]byte(nil), elements...), len(elements))
	return copied
}
