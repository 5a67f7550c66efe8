package rdb

import "cmp"

// Stream is a stream as the format has it: all of its state, in no structure that
// would make it fast to use.
type Stream struct {
	// Nodes are the entries, in ascending order, in the groups in which they are
	// kept. The bounds between groups matter to approximate trimming only.
	Nodes        [][]StreamEntry
	LastID       StreamID
	MaxDeletedID StreamID
	EntriesAdded uint64
	Groups       []StreamGroup
}

// Len is the number of entries.
func (s *Stream) Len() int {
	n := 0
	for _, node := range s.Nodes {
		n += len(node)
	}
	return n
}

// firstID is the ID of the first entry; zero if there is none.
func (s *Stream) firstID() StreamID {
	for _, node := range s.Nodes {
		if len(node) > 0 {
			return node[0].ID
		}
	}
	return StreamID{}
}

// StreamID is the ID of an entry: ms since the epoch, and a number to tell
// entries of the same ms apart.
type StreamID struct{ Ms, Seq uint64 }

// Compare orders IDs; its result is as of cmp.Compare.
func (id StreamID) Compare(other StreamID) int {
	return cmp.Or(cmp.Compare(id.Ms, other.Ms), cmp.Compare(id.Seq, other.Seq))
}

// StreamEntry is an entry: fields and their values by turns.
type StreamEntry struct {
	ID     StreamID
	Fields []string
}

// StreamGroup is a consumer group.
type StreamGroup struct {
	Name   string
	LastID StreamID // of what was delivered
	// EntriesRead counts what was delivered; -1 if that is not known.
	EntriesRead int64
	Pending     []StreamPending // in ascending order of ID
	Consumers   []StreamConsumer
}

// StreamPending is an entry that was delivered and not acknowledged.
type StreamPending struct {
	ID          StreamID
	Consumer    string // one of the group's
	DeliveredMs int64  // ms since the epoch of the last delivery
	Deliveries  uint64
}

// StreamConsumer is a consumer of a group.
type StreamConsumer struct {
	Name   string
	SeenMs int64 // ms since the epoch of its last attempt
	// ActiveMs is ms since the epoch of its last success, -1 if there was none.
	// Redis 7.0 does not know it; it is then the same as SeenMs, and is not written.
	ActiveMs int64
}
