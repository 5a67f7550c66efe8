package ds

import "slices"

const (
	chunkMax = 128
	chunkMin = 4 // what the only chunk of a short list begins with
)

// chunk is a ring of up to chunkMax strings. The length of the ring is a power of two,
// and doubles as needed: a short list is a short ring.
type chunk struct {
	ring   []string
	head   int
	length int
}

// newChunk returns a chunk for a list of this size: whole if the list is long.
func newChunk(size int) chunk {
	if size >= chunkMax {
		return chunk{ring: make([]string, chunkMax)}
	}
	return chunk{ring: make([]string, chunkMin)}
}

func (c *chunk) at(i int) *string { return &c.ring[(c.head+i)&(len(c.ring)-1)] }

// insert puts s before the i-th element, moving the fewer of those before and after.
func (c *chunk) insert(i int, s string) {
	if c.length == len(c.ring) {
		c.grow()
	}
	if i < c.length-i {
		c.head = (c.head - 1) & (len(c.ring) - 1)
		for j := range i {
			*c.at(j) = *c.at(j + 1)
		}
	} else {
		for j := c.length; j > i; j-- {
			*c.at(j) = *c.at(j - 1)
		}
	}
	*c.at(i) = s
	c.length++
}

func (c *chunk) remove(i int) string {
	s := *c.at(i)
	if i < c.length-1-i {
		for j := i; j > 0; j-- {
			*c.at(j) = *c.at(j - 1)
		}
		*c.at(0) = ""
		c.head = (c.head + 1) & (len(c.ring) - 1)
	} else {
		for j := i; j < c.length-1; j++ {
			*c.at(j) = *c.at(j + 1)
		}
		*c.at(c.length - 1) = ""
	}
	c.length--
	return s
}

func (c *chunk) grow() {
	ring := make([]string, 2*len(c.ring))
	n := copy(ring, c.ring[c.head:])
	copy(ring[n:], c.ring[:c.head])
	c.ring, c.head = ring, 0
}

func (c *chunk) clone() chunk {
	return chunk{ring: slices.Clone(c.ring), head: c.head, length: c.length}
}

func (d *Deque) chunks() []chunk { return d.directory[d.first:] }

// openFront puts an empty chunk before the first. When the room before the first is
// used up, as much is made as there are chunks, so that each chunk is moved a bounded
// number of times.
func (d *Deque) openFront() {
	if d.first == 0 {
		room := len(d.directory)/2 + 1
		directory := make([]chunk, room+len(d.directory), room+len(d.directory)+1)
		copy(directory[room:], d.directory)
		d.directory, d.first = directory, room
	}
	d.first--
	d.directory[d.first] = newChunk(d.size)
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
func (d *Deque) removeFrom(c, offset int) string {
	chunks := d.chunks()
	s := chunks[c].remove(offset)
	d.size--
	d.bytes -= len(s)
	if c > 0 && c < len(chunks)-1 {
		d.ragged = true
	}
	switch {
	case chunks[c].length > 0:
	case d.size == 0:
		*d = Deque{}
	case c == 0:
		d.dropFront()
	default:
		d.directory = slices.Delete(d.directory, d.first+c, d.first+c+1)
	}
	if len(d.chunks()) <= 2 {
		d.ragged = false
	}
	return s
}

// split moves the second half of chunk c, which is full, to a new chunk after it.
func (d *Deque) split(c int) {
	d.directory = slices.Insert(d.directory, d.first+c+1, newChunk(chunkMax))
	left, right := &d.chunks()[c], &d.chunks()[c+1]
	for i := chunkMax / 2; i < chunkMax; i++ {
		*right.at(i - chunkMax/2) = *left.at(i)
		*left.at(i) = ""
	}
	left.length, right.length = chunkMax/2, chunkMax/2
	d.ragged = len(d.chunks()) > 2
}

// join appends chunk c+1 to chunk c if both exist and fit in one with room to spare, so
// that removals in the middle do not leave a trail of nearly empty chunks. The chunk
// before c is left for a later removal.
func (d *Deque) join(c int) {
	chunks := d.chunks()
	if c+1 >= len(chunks) || chunks[c].length+chunks[c+1].length > chunkMax/2 {
		return
	}
	left, right := &chunks[c], &chunks[c+1]
	for i := range right.length {
		left.insert(left.length, *right.at(i))
	}
	d.directory = slices.Delete(d.directory, d.first+c+1, d.first+c+2)
	d.ragged = len(d.chunks()) > 2
}

// locate returns the chunk of position i, which must exist, and the place in it.
func (d *Deque) locate(i int) (c, offset int) {
	chunks := d.chunks()
	if i < chunks[0].length {
		return 0, i
	}
	if !d.ragged {
		i -= chunks[0].length
		return 1 + i/chunkMax, i % chunkMax
	}
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
