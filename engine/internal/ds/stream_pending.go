package ds

import (
	"iter"
	"slices"
	"sort"
)

// StreamPending is an entry that a group has handed out to a consumer who has not
// acknowledged it. The entry itself may have been deleted since.
type StreamPending struct {
	ID          StreamID
	Consumer    *StreamConsumer
	DeliveredMs int64 // since the epoch
	Deliveries  int64
}

// pendingMax is how many a block of a PendingList holds.
const pendingMax = 128

// PendingList is a set of pending entries in order of their IDs: blocks in a directory,
// none of them empty, and no two neighbours so small that they would fill only half a
// block together. IDs mostly come at the end and go at the front, which touches one
// block; anywhere else it is O(log n), and moves part of the directory when a block comes
// or goes. The zero value is an empty list.
//
// A group has one with everything that is pending, and each of its consumers one with its
// own part of the same entries.
type PendingList struct {
	blocks [][]*StreamPending
	length int
}

// Len returns the number of pending entries.
func (l *PendingList) Len() int { return l.length }

// seek returns the place of the first entry not before id; i may be the position after the
// last of the block.
func (l *PendingList) seek(id StreamID) (block, i int) {
	block = sort.Search(len(l.blocks), func(i int) bool { return id.Less(l.blocks[i][0].ID) }) - 1
	if block < 0 {
		return 0, 0
	}
	b := l.blocks[block]
	return block, sort.Search(len(b), func(i int) bool { return !b[i].ID.Less(id) })
}

// From walks over the pending entries from an ID on. The list must not change on the way.
func (l *PendingList) From(id StreamID) iter.Seq[*StreamPending] {
	return func(yield func(*StreamPending) bool) {
		block, i := l.seek(id)
		for ; block < len(l.blocks); block, i = block+1, 0 {
			for ; i < len(l.blocks[block]); i++ {
				if !yield(l.blocks[block][i]) {
					return
				}
			}
		}
	}
}

// AtOrAfter returns the first pending entry that is not before id, or nil. O(log n).
func (l *PendingList) AtOrAfter(id StreamID) *StreamPending {
	for p := range l.From(id) {
		return p
	}
	return nil
}

// Find returns the pending entry with this ID, or nil. O(log n).
func (l *PendingList) Find(id StreamID) *StreamPending {
	if p := l.AtOrAfter(id); p != nil && p.ID == id {
		return p
	}
	return nil
}

// First returns the first pending entry, or nil. O(1).
func (l *PendingList) First() *StreamPending { return l.AtOrAfter(StreamID{}) }

// Last returns the last pending entry, or nil. O(1).
func (l *PendingList) Last() *StreamPending {
	if l.length == 0 {
		return nil
	}
	b := l.blocks[len(l.blocks)-1]
	return b[len(b)-1]
}

// insert adds p, whose ID must not be in the list.
func (l *PendingList) insert(p *StreamPending) {
	l.length++
	block, i := l.seek(p.ID)
	if block == len(l.blocks) {
		l.blocks = append(l.blocks, []*StreamPending{p})
		return
	}
	b := l.blocks[block]
	switch {
	case len(b) < pendingMax:
		l.blocks[block] = slices.Insert(b, i, p)
	case i == pendingMax && block+1 < len(l.blocks) && len(l.blocks[block+1]) < pendingMax:
		l.blocks[block+1] = slices.Insert(l.blocks[block+1], 0, p)
	case i == pendingMax:
		// The blocks of a list that grows at its end stay full.
		l.blocks = slices.Insert(l.blocks, block+1, []*StreamPending{p})
	default:
		right := slices.Clone(b[pendingMax/2:])
		clear(b[pendingMax/2:])
		l.blocks[block] = b[:pendingMax/2]
		l.blocks = slices.Insert(l.blocks, block+1, right)
		if i > pendingMax/2 {
			block, i = block+1, i-pendingMax/2
		}
		l.blocks[block] = slices.Insert(l.blocks[block], i, p)
	}
}

// remove takes out the entry with this ID, which must be in the list.
func (l *PendingList) remove(id StreamID) {
	l.length--
	block, i := l.seek(id)
	b := slices.Delete(l.blocks[block], i, i+1)
	l.blocks[block] = b
	switch {
	case len(b) == 0 && block == 0:
		l.blocks[0] = nil
		l.blocks = l.blocks[1:]
	case len(b) == 0:
		l.blocks = slices.Delete(l.blocks, block, block+1)
	default:
		l.join(block)
		l.join(block - 1)
	}
}

// join appends the block after this one to it, if both exist and are small enough.
func (l *PendingList) join(block int) {
	if block < 0 || block+1 >= len(l.blocks) || len(l.blocks[block])+len(l.blocks[block+1]) > pendingMax/2 {
		return
	}
	l.blocks[block] = append(l.blocks[block], l.blocks[block+1]...)
	l.blocks = slices.Delete(l.blocks, block+1, block+2)
}
