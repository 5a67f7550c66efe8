package replication

import "strings"

// A History is a stream of changes that has a name. Replicas that have heard a part of it go on
// from there if the server still has what they have missed, and if it is the same stream.
//
// Two servers with one ID have the same bytes at the same offsets. So a server that begins to write
// on its own, after it was a replica, takes a new ID (Fork), and remembers the one that it has heard
// up to there: its siblings have heard that, too.
//
// The bytes are in blocks, once for the backlog and for all replicas: what is on its way to a replica
// are Pieces of them. A slow replica keeps the blocks that it has not taken, and nothing else.
//
// Invariant R4: what was written to a block does not change, until nobody can have a piece of it.

// NoID stands for an ID where there is none.
var NoID = strings.Repeat("0", 40)

const (
	mostBlock  = 64 << 10
	leastBlock = 1 << 10
)

// History is the zero value's until Adopt or Rename gives it an ID.
type History struct {
	// ID names the stream, Offset is how many bytes of it there are.
	ID     string
	Offset int64
	// SecondID named it up to before SecondOffset; NoID and -1 if it never had another name.
	SecondID     string
	SecondOffset int64
	// Unused reports whether nobody has a piece of the stream between two offsets any more, so that its
	// memory can be used again. May be nil.
	Unused func(from, upTo int64) bool

	size   int64    // of the backlog, at most; 0: there is none
	blocks [][]byte // its bytes, in order; all but the last are full
	bytes  int64    // in blocks: up to a block more than size
	spare  []byte   // the memory of a block
	pieces [][]byte // of the last Append
}

// Rename begins a stream that nobody has heard: under a new name, at the same offset.
func (h *History) Rename(id string) {
	h.ID, h.SecondID, h.SecondOffset = id, NoID, -1
	h.clear()
}

// Adopt begins where another server's stream is.
func (h *History) Adopt(id string, offset int64) {
	h.Offset = offset
	h.Rename(id)
}

// Fork goes on under a new name. Who has heard no more than there is so far can go on, too.
func (h *History) Fork(id string) {
	h.SecondID, h.SecondOffset = h.ID, h.Offset+1
	h.ID = id
}

// Keep makes the history keep its last size bytes, or none. What is there beyond that is dropped.
func (h *History) Keep(size int64) {
	if h.size = size; size == 0 {
		h.clear()
	}
	h.trim(h.Offset)
}

// Keeps reports whether there is a backlog.
func (h *History) Keeps() bool { return h.size > 0 }

// Size is how long the backlog may be, Kept how long it is.
func (h *History) Size() int64 { return h.size }

// Kept is how many of the last bytes are there.
func (h *History) Kept() int64 { return min(h.bytes, h.size) }

// First is the offset of the oldest byte that is kept.
func (h *History) First() int64 { return h.Offset - h.Kept() + 1 }

// Append adds to the stream, and returns where the bytes are now; nothing without a backlog. The list is valid until
// the next Append, what it lists for as long as Unused says.
func (h *History) Append(b []byte) (pieces [][]byte) {
	if h.size == 0 {
		h.Offset += int64(len(b))
		return nil
	}
	clear(h.pieces)
	h.pieces = h.pieces[:0]
	began := h.Offset
	for len(b) > 0 {
		block := h.room()
		from := len(*block)
		n := min(len(b), cap(*block)-from)
		*block = append(*block, b[:n]...)
		h.pieces = append(h.pieces, (*block)[from:])
		b = b[n:]
		h.bytes += int64(n)
		h.Offset += int64(n)
	}
	h.trim(began)
	return h.pieces
}

// room is the last block, which has room.
func (h *History) room() *[]byte {
	if last := len(h.blocks) - 1; last < 0 || len(h.blocks[last]) == cap(h.blocks[last]) {
		block := h.spare
		if h.spare = nil; block == nil {
			block = make([]byte, 0, max(leastBlock, min(mostBlock, h.size)))
		}
		h.blocks = append(h.blocks, block)
	}
	return &h.blocks[len(h.blocks)-1]
}

// trim drops the oldest blocks that are not needed. Nobody has been given yet what is behind an offset.
func (h *History) trim(given int64) {
	for len(h.blocks) > 1 && h.bytes-int64(len(h.blocks[0])) >= h.size {
		oldest := h.blocks[0]
		before := h.Offset - h.bytes
		upTo := before + int64(len(oldest))
		h.blocks[0] = nil
		h.blocks = h.blocks[1:]
		h.bytes -= int64(len(oldest))
		if upTo <= given && h.Unused != nil && h.Unused(before, upTo) {
			h.spare = oldest[:0]
		}
	}
}

// CanContinue reports whether somebody who has heard the stream of that name up to before an
// offset can go on from there.
func (h *History) CanContinue(id string, from int64) bool {
	same := id == h.ID || id == h.SecondID && id != NoID && from <= h.SecondOffset
	return same && h.Keeps() && from >= h.First() && from <= h.Offset+1
}

// Since returns the stream from an offset on. CanContinue has said that it is there.
func (h *History) Since(from int64) (pieces Pieces) {
	skip := int(from - (h.Offset - h.bytes + 1))
	for _, block := range h.blocks {
		if skip >= len(block) {
			skip -= len(block)
			continue
		}
		pieces.Add(block[skip:])
		skip = 0
	}
	return pieces
}

func (h *History) clear() { h.blocks, h.bytes, h.spare = nil, 0, nil }
