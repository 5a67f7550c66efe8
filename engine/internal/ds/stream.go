package ds

import (
	"iter"
	"math/bits"
	"slices"
	"sort"
)

// A Stream is a directory of chunks in order of their IDs, each of up to a hundred entries
// (Limits) packed into one piece of memory (stream_chunk.go). IDs only grow, so entries are added
// at the end of the last chunk; an ID is found by binary search, first for the chunk, then
// in it. Beside the entries a stream remembers what was once there, and has the consumer
// groups (stream_group.go) that read it.
//
// Where a chunk ends is visible from outside, so all that decides it is as in Redis: the
// limits of a chunk, the size that entries have there, and that deleted entries count.
// For the same reason a chunk goes when its last entry is deleted, yet stays, empty, when
// trimming by ID empties it while an entry deleted before was beyond that ID.

// MaxStreamEntryBytes bounds the fields and values of one entry.
const MaxStreamEntryBytes = 1 << 30

// Stream is a log of entries, each a list of fields and values under an ID.
type Stream struct {
	// LastID is the largest ID that an entry ever had, or that was set. It is never below
	// that of an entry.
	LastID StreamID
	// MaxDeletedID is the largest ID that was deleted one by one, not by trimming, or 0-0.
	MaxDeletedID StreamID
	// EntriesAdded counts the entries ever added.
	EntriesAdded int64

	chunks []*streamChunk
	length int
	limits *Limits // never nil
	groups map[string]*StreamGroup

	chunkBytes, groupBytes int // of the heap; see MemoryBytes
}

// NewStream returns an empty Stream.
func NewStream() *Stream { return &Stream{limits: &usual} }

// Within makes the stream begin chunks as the limits say, which stay the caller's, from now on.
func (s *Stream) Within(limits *Limits) { s.limits = limits }

// Len returns the number of entries.
func (s *Stream) Len() int { return s.length }

// Encoding returns the name that OBJECT ENCODING has for any stream.
func (s *Stream) Encoding() string { return "stream" }

// ChunkCount returns the number of chunks.
func (s *Stream) ChunkCount() int { return len(s.chunks) }

// Append adds an entry at the end. Its ID must be above LastID, and pairs are its fields
// and values in turn, at least one of each, which are copied. It reports whether the entry
// is within MaxStreamEntryBytes. O(bytes).
func (s *Stream) Append(id StreamID, pairs [][]byte) bool {
	size := 0
	for _, b := range pairs {
		size += len(b)
	}
	if size > MaxStreamEntryBytes {
		return false
	}
	var last *streamChunk
	if n := len(s.chunks); n > 0 {
		last = s.chunks[n-1]
	}
	if last == nil || last.isFull(size, s.limits) {
		last = s.beginChunk(id, pairs, last)
	}
	last.add(id, pairs)
	s.weigh(last)
	s.length++
	s.EntriesAdded++
	s.LastID = id
	return true
}

// beginChunk adds a chunk behind the last one, which may be nil.
func (s *Stream) beginChunk(id StreamID, pairs [][]byte, last *streamChunk) *streamChunk {
	if last != nil {
		last.close()
		s.weigh(last)
	}
	c := newStreamChunk(id, pairs, last)
	s.chunks = append(s.chunks, c)
	s.weigh(c)
	return c
}

// seek returns the place of the first entry that is not before id: its chunk, and its
// position in the chunk, which may be the one after its last. O(log n).
func (s *Stream) seek(id StreamID) (chunk, i int) {
	chunk = sort.Search(len(s.chunks), func(i int) bool { return id.Less(s.chunks[i].first) }) - 1
	if chunk < 0 {
		return 0, 0
	}
	return chunk, s.chunks[chunk].search(id)
}

// find returns the place of the entry with this ID.
func (s *Stream) find(id StreamID) (chunk, i int, found bool) {
	chunk, i = s.seek(id)
	if chunk < len(s.chunks) && i < len(s.chunks[chunk].index) {
		at, _ := s.chunks[chunk].id(i)
		found = at == id
	}
	return chunk, i, found
}

// Entry returns the entry with this ID; ok is false if there is none. O(log n).
func (s *Stream) Entry(id StreamID) (entry StreamEntry, ok bool) {
	chunk, i, found := s.find(id)
	if !found {
		return StreamEntry{}, false
	}
	return s.chunks[chunk].entry(i), true
}

// FirstID returns the ID of the first entry, or 0-0. O(1).
func (s *Stream) FirstID() StreamID {
	for e := range s.Range(StreamID{}, MaxStreamID) {
		return e.ID
	}
	return StreamID{}
}

// LastEntryID returns the ID of the last entry, or 0-0. Other than LastID it is never that
// of an entry deleted since. O(1).
func (s *Stream) LastEntryID() StreamID {
	for e := range s.Backward(StreamID{}, MaxStreamID) {
		return e.ID
	}
	return StreamID{}
}

// Range walks over the entries from one ID to another, both included. The stream must not
// change on the way.
func (s *Stream) Range(from, to StreamID) iter.Seq[StreamEntry] {
	return func(yield func(StreamEntry) bool) {
		chunk, i := s.seek(from)
		for ; chunk < len(s.chunks); chunk, i = chunk+1, 0 {
			for ; i < len(s.chunks[chunk].index); i++ {
				if e := s.chunks[chunk].entry(i); to.Less(e.ID) || !yield(e) {
					return
				}
			}
		}
	}
}

// Backward walks over the same entries as Range, the last one first.
func (s *Stream) Backward(from, to StreamID) iter.Seq[StreamEntry] {
	return func(yield func(StreamEntry) bool) {
		chunk, i := s.end(to)
		for {
			for i--; i >= 0; i-- {
				if e := s.chunks[chunk].entry(i); e.ID.Less(from) || !yield(e) {
					return
				}
			}
			if chunk--; chunk < 0 {
				return
			}
			i = len(s.chunks[chunk].index)
		}
	}
}

// end returns the place after the last entry that is not after id.
func (s *Stream) end(id StreamID) (chunk, i int) {
	if next, ok := id.Next(); ok {
		return s.seek(next)
	}
	if chunk = len(s.chunks) - 1; chunk < 0 {
		return 0, 0
	}
	return chunk, len(s.chunks[chunk].index)
}

// Count returns how many entries Range walks over, but not more than most.
// O(log n + most/100).
func (s *Stream) Count(from, to StreamID, most int) int {
	if to.Less(from) {
		return 0
	}
	chunk, i := s.seek(from)
	last, end := s.end(to)
	n := -i
	for ; chunk < last && n < most; chunk++ {
		n += len(s.chunks[chunk].index)
	}
	if chunk == last {
		n += end
	}
	return min(n, most)
}

// Delete removes the entry with this ID and says whether there was one. O(log n), and
// moves part of the directory when a chunk goes.
func (s *Stream) Delete(id StreamID) bool {
	chunk, i, found := s.find(id)
	if !found {
		return false
	}
	c := s.chunks[chunk]
	if c.index = slices.Delete(c.index, i, i+1); len(c.index) == 0 {
		s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
		s.chunkBytes -= c.bytes
	}
	s.length--
	if s.MaxDeletedID.Less(id) {
		s.MaxDeletedID = id
	}
	return true
}

// StreamTrim says what to remove from the front of a stream.
type StreamTrim struct {
	ByID    bool
	MinID   StreamID // ByID: entries before it go
	MaxLen  int64    // otherwise: entries go until no more than so many are left
	Whole   bool     // only whole chunks go, so more may stay
	MostOut int64    // no chunk goes that would make it more than so many; 0 is no limit
}

// enough reports whether the stream is as short as it has to be.
func (t *StreamTrim) enough(s *Stream) bool { return !t.ByID && int64(s.length) <= t.MaxLen }

// takes reports whether all entries of a chunk have to go.
func (t *StreamTrim) takes(s *Stream, c *streamChunk) bool {
	if t.ByID {
		return c.last.Less(t.MinID)
	}
	return int64(s.length-len(c.index)) >= t.MaxLen
}

// Trim removes entries from the front and returns how many. O(chunks removed).
func (s *Stream) Trim(t StreamTrim) (removed int64) {
	for len(s.chunks) > 0 && !t.enough(s) {
		c := s.chunks[0]
		size := int64(len(c.index))
		if t.MostOut > 0 && removed+size > t.MostOut {
			break
		}
		if t.takes(s, c) {
			s.chunks[0] = nil
			s.chunks = s.chunks[1:]
			s.chunkBytes -= c.bytes
			s.length -= int(size)
			removed += size
			continue
		}
		if !t.Whole {
			removed += s.trimChunk(t, c)
		}
		break
	}
	return removed
}

// trimChunk removes what has to go of the first chunk, which is not all of it.
func (s *Stream) trimChunk(t StreamTrim, c *streamChunk) (removed int64) {
	n := s.length - int(min(t.MaxLen, int64(s.length)))
	if t.ByID {
		n = c.search(t.MinID)
	}
	c.index = c.index[n:]
	s.length -= n
	return int64(n)
}

// TreeNodes returns the number of nodes of the radix tree in which Redis keeps the chunks
// of such a stream, under the 16 bytes of their first IDs: one for each chunk, one for
// each place where keys part, and one for each run of bytes in between. O(chunks).
func (s *Stream) TreeNodes() int {
	const keyBytes = 16
	if len(s.chunks) == 0 {
		return 1 // the root
	}
	nodes := 0
	count := func(depth, parent int) {
		if nodes++; depth-parent > 1 {
			nodes++ // the bytes between the two
		}
	}
	parted := []int{-1} // the depths of the places where keys part, on the way to this chunk
	for i, c := range s.chunks {
		depth := -1
		if i+1 < len(s.chunks) {
			depth = c.first.commonBytes(s.chunks[i+1].first)
		}
		last := len(parted) - 1
		count(keyBytes, max(parted[last], depth))
		for ; parted[last] > depth; last-- {
			count(parted[last], max(parted[last-1], depth))
		}
		if parted = parted[:last+1]; parted[last] < depth {
			parted = append(parted, depth)
		}
	}
	return nodes
}

// commonBytes is how many bytes two IDs have in common, the most significant ones first.
func (id StreamID) commonBytes(other StreamID) int {
	if id.Ms != other.Ms {
		return bits.LeadingZeros64(id.Ms^other.Ms) / 8
	}
	return 8 + bits.LeadingZeros64(id.Seq^other.Seq)/8
}

// Clone returns a copy, groups and all. O(n), though the bytes of the entries are shared.
func (s *Stream) Clone() *Stream {
	clone := *s
	clone.chunks = make([]*streamChunk, len(s.chunks))
	for i, c := range s.chunks {
		clone.chunks[i] = c.clone()
	}
	clone.groups, clone.groupBytes = nil, 0
	for name, g := range s.groups {
		clone.CreateGroup([]byte(name), g.LastID, g.EntriesRead)
		g.copyTo(clone.groups[name])
	}
	return &clone
}
