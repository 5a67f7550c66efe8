package ds

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
)

// When a chunk is full is for others to see: trimming with ~ removes whole chunks only,
// and XINFO counts them. So the limits are those of Redis's configuration, and
// the size that counts is the one the entries would have in Redis (stream_listpack.go).

// streamChunkMost is the largest that a chunk may become before the next one begins,
// whatever the configuration says.
const streamChunkMost = 1 << 30

// streamChunk holds neighbouring entries, one after another in data. An entry is
//
//	how much its Ms is above that of the chunk's first ID   uvarint
//	how much its Seq is above that of the chunk's first ID  varint, since it may be below
//	0, or the number of its fields                          uvarint
//	0: the values of the chunk's fields, each as length and bytes
//	n: n times a field and a value, each as length and bytes
//
// An entry that is deleted leaves the index, while its bytes stay until the chunk goes:
// they count for whether the chunk is full. So data is only ever appended to, and a clone
// of the chunk can share it.
type streamChunk struct {
	first  StreamID // of the first entry ever added
	last   StreamID // of the last entry ever added, present or not
	fields [][]byte // of the first entry ever added
	data   []byte
	index  []uint32 // where the entries that are present begin in data
	added  int      // how many entries were ever added
	packed int      // the bytes that they would take in Redis
	bytes  int      // of the heap, as the stream has counted them
	shares bool     // the fields with the chunk before
}

// newStreamChunk returns a chunk for entries from id on. If the fields of its first entry
// are those of the chunk before, which may be nil, the two share them.
func newStreamChunk(id StreamID, pairs [][]byte, before *streamChunk) *streamChunk {
	c := &streamChunk{first: id}
	if before != nil && sameFields(before.fields, pairs) {
		c.fields, c.shares = before.fields, true
	} else {
		c.fields = cloneFields(pairs)
	}
	c.packed = packedChunk(c.fields)
	return c
}

func sameFields(fields, pairs [][]byte) bool {
	if len(fields) != len(pairs)/2 {
		return false
	}
	for i, field := range fields {
		if !bytes.Equal(field, pairs[2*i]) {
			return false
		}
	}
	return true
}

func cloneFields(pairs [][]byte) [][]byte {
	fields := make([][]byte, len(pairs)/2)
	for i := range fields {
		fields[i] = slices.Clone(pairs[2*i])
	}
	return fields
}

// isFull reports whether an entry of this many bytes has to go to a chunk of its own.
func (c *streamChunk) isFull(bytes int, limits *Limits) bool {
	mostBytes := limits.StreamChunkBytes
	if mostBytes == 0 || mostBytes > streamChunkMost {
		mostBytes = streamChunkMost
	}
	return c.packed+bytes >= mostBytes || limits.StreamChunkEntries > 0 && c.added >= limits.StreamChunkEntries
}

// close gives back the room for more entries.
func (c *streamChunk) close() {
	c.data = append(make([]byte, 0, len(c.data)), c.data...)
	c.index = append(make([]uint32, 0, len(c.index)), c.index...)
}

// add appends an entry. Its ID is above all others, and pairs are its fields and values
// in turn, which are copied.
func (c *streamChunk) add(id StreamID, pairs [][]byte) {
	c.index = append(c.index, uint32(len(c.data)))
	c.data = binary.AppendUvarint(c.data, id.Ms-c.first.Ms)
	c.data = binary.AppendVarint(c.data, int64(id.Seq-c.first.Seq))
	shared := sameFields(c.fields, pairs)
	if shared {
		c.data = append(c.data, 0)
	} else {
		c.data = binary.AppendUvarint(c.data, uint64(len(pairs)/2))
	}
	for i, b := range pairs {
		if shared && i%2 == 0 {
			continue
		}
		c.data = binary.AppendUvarint(c.data, uint64(len(b)))
		c.data = append(c.data, b...)
	}
	c.packed += packedEntry(c.first, id, pairs, shared)
	c.last = id
	c.added++
}

// id returns the ID of the i-th entry that is present, and where its fields begin.
func (c *streamChunk) id(i int) (id StreamID, rest []byte) { return c.idAt(int(c.index[i])) }

// idAt returns the same of the entry that begins at a place in data.
func (c *streamChunk) idAt(at int) (id StreamID, rest []byte) {
	rest = c.data[at:]
	ms, n := binary.Uvarint(rest)
	seq, m := binary.Varint(rest[n:])
	return StreamID{c.first.Ms + ms, c.first.Seq + uint64(seq)}, rest[n+m:]
}

// entry returns the i-th entry that is present.
func (c *streamChunk) entry(i int) StreamEntry { return c.entryAt(int(c.index[i])) }

// entryAt returns the entry that begins at a place in data.
func (c *streamChunk) entryAt(at int) StreamEntry {
	id, rest := c.idAt(at)
	own, n := binary.Uvarint(rest)
	e := StreamEntry{ID: id, count: int(own), data: rest[n:]}
	if own == 0 {
		e.fields, e.count = c.fields, len(c.fields)
	}
	return e
}

// search returns the position of the first entry that is present and not before id.
func (c *streamChunk) search(id StreamID) int {
	return sort.Search(len(c.index), func(i int) bool {
		at, _ := c.id(i)
		return !at.Less(id)
	})
}

func (c *streamChunk) clone() *streamChunk {
	clone := *c
	clone.data = slices.Clip(c.data)
	clone.index = slices.Clone(c.index)
	return &clone
}

// StreamEntry is an entry of a stream. It is valid until the stream changes.
type StreamEntry struct {
	ID     StreamID
	fields [][]byte // nil if the entry has fields of its own
	count  int
	data   []byte
}

// Len returns the number of fields.
func (e StreamEntry) Len() int { return e.count }

// Fields walks over the fields and their values, in the order in which they were given.
// The bytes are the stream's: they must not be changed, nor kept.
func (e StreamEntry) Fields() iter.Seq2[[]byte, []byte] {
	return func(yield func(field, value []byte) bool) {
		data := e.data
		for i := range e.count {
			var field, value []byte
			if e.fields != nil {
				field = e.fields[i]
			} else {
				field, data = cutBytes(data)
			}
			if value, data = cutBytes(data); !yield(field, value) {
				return
			}
		}
	}
}

// cutBytes reads a length and that many bytes off the front of data.
func cutBytes(data []byte) (b, rest []byte) {
	size, n := binary.Uvarint(data)
	end := n + int(size)
	return data[n:end:end], data[end:]
}
