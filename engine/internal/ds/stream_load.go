package ds

import (
	"iter"
	"math"
)

// A stream in Redis's file format has the same chunks as in memory, with the entries that
// were deleted still in them: where the next chunk begins depends on them. What is here
// takes a stream apart that way and puts it together again, without a second structure.

// StreamChunk is a chunk as a file has it. It is valid until the stream changes.
type StreamChunk struct{ c *streamChunk }

// Chunks walks over the chunks, in order of their IDs.
func (s *Stream) Chunks() iter.Seq[StreamChunk] {
	return func(yield func(StreamChunk) bool) {
		for _, c := range s.chunks {
			if !yield(StreamChunk{c}) {
				return
			}
		}
	}
}

// FirstID is the ID of the first entry that the chunk ever had.
func (c StreamChunk) FirstID() StreamID { return c.c.first }

// SharedFields are the fields of that entry, which are not to be changed.
func (c StreamChunk) SharedFields() [][]byte { return c.c.fields }

// Len is the number of entries that are present.
func (c StreamChunk) Len() int { return len(c.c.index) }

// Deleted is the number of those that are not.
func (c StreamChunk) Deleted() int { return c.c.added - len(c.c.index) }

// Entries walks over all entries the chunk ever had, and says which are present.
func (c StreamChunk) Entries() iter.Seq2[StreamEntry, bool] {
	return func(yield func(entry StreamEntry, present bool) bool) {
		index := c.c.index
		for at := 0; at < len(c.c.data); {
			entry := c.c.entryAt(at)
			present := len(index) > 0 && int(index[0]) == at
			if present {
				index = index[1:]
			}
			if !yield(entry, present) {
				return
			}
			at = len(c.c.data) - len(entry.rest())
		}
	}
}

// HasSharedFields reports whether the entry has the fields of its chunk, and in that order.
func (e StreamEntry) HasSharedFields() bool { return e.fields != nil }

// rest is what is in the chunk after the entry.
func (e StreamEntry) rest() []byte {
	texts := e.count
	if e.fields == nil {
		texts *= 2
	}
	rest := e.data
	for range texts {
		_, rest = cutBytes(rest)
	}
	return rest
}

// LoadChunk begins a chunk at the end, which has no entry yet. Its first ID must be above
// that of the chunk before and of every entry there; of fields there must be one or more.
// They are copied.
func (s *Stream) LoadChunk(first StreamID, fields [][]byte) {
	pairs := make([][]byte, 2*len(fields))
	for i, field := range fields {
		pairs[2*i] = field
	}
	var last *streamChunk
	if n := len(s.chunks); n > 0 {
		last = s.chunks[n-1]
	}
	s.beginChunk(first, pairs, last)
}

// LoadEntry adds an entry to the last chunk, which must not be without one: a present
// entry, whose ID must not be below that of the chunk and must be above that of the present
// entry before, or a deleted one. Of pairs, fields and values in turn, there must be one or
// more. They are copied. It reports whether the chunk could take the entry: it may be
// too large. LastID and EntriesAdded stay what they are.
func (s *Stream) LoadEntry(id StreamID, pairs [][]byte, present bool) bool {
	c := s.chunks[len(s.chunks)-1]
	if len(c.data) > math.MaxUint32 {
		return false
	}
	c.add(id, pairs)
	if present {
		s.length++
	} else {
		c.index = c.index[:len(c.index)-1]
	}
	s.weigh(c)
	return true
}
