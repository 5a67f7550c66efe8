package ds

import (
	"iter"
	"maps"
	"slices"
)

// UnknownReads is the number of entries a group has read when that cannot be told, which
// is so after it was set to an ID in the middle of the stream.
const UnknownReads = -1

// StreamGroup is a consumer group: how far it has read the stream, and who has what that
// it has handed out.
//
// Each pending entry is in the list of the group and in that of its consumer; only the
// methods below change either.
type StreamGroup struct {
	// LastID is the largest ID handed out.
	LastID StreamID
	// EntriesRead is how many entries were added up to LastID, or UnknownReads.
	EntriesRead int64

	stream    *Stream
	pending   PendingList
	consumers map[string]*StreamConsumer
}

// StreamConsumer is a member of a group.
type StreamConsumer struct {
	Name   string
	SeenMs int64 // since the epoch: when it last did something

	pending PendingList
}

// Pending is what was handed out to the consumer.
func (c *StreamConsumer) Pending() *PendingList { return &c.pending }

// Group returns the group of this name, or nil. O(1).
func (s *Stream) Group(name []byte) *StreamGroup { return s.groups[string(name)] }

// Groups walks over the groups in order of their names. O(n log n).
func (s *Stream) Groups() iter.Seq2[string, *StreamGroup] { return inNameOrder(s.groups) }

// GroupCount returns the number of groups.
func (s *Stream) GroupCount() int { return len(s.groups) }

// CreateGroup makes a group that has read up to lastID, and says whether the name was free.
func (s *Stream) CreateGroup(name []byte, lastID StreamID, entriesRead int64) bool {
	if s.Group(name) != nil {
		return false
	}
	if s.groups == nil {
		s.groups = map[string]*StreamGroup{}
	}
	g := &StreamGroup{LastID: lastID, EntriesRead: entriesRead, stream: s}
	s.groups[string(name)] = g
	s.groupBytes += g.memoryBytes(name)
	return true
}

// DeleteGroup removes a group and says whether there was one.
func (s *Stream) DeleteGroup(name []byte) bool {
	g := s.Group(name)
	if g == nil {
		return false
	}
	s.groupBytes -= g.memoryBytes(name)
	for _, c := range g.consumers {
		s.groupBytes -= c.memoryBytes()
	}
	delete(s.groups, string(name))
	return true
}

func inNameOrder[T any](named map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if !yield(name, named[name]) {
				return
			}
		}
	}
}

// Advance notes that g has handed out the entry with this ID, if it is above all before.
// As long as the number of entries read is known and nothing was deleted ahead it counts
// on; otherwise it is worked out anew, where that is possible.
func (s *Stream) Advance(g *StreamGroup, id StreamID) {
	if !g.LastID.Less(id) {
		return
	}
	if g.EntriesRead != UnknownReads && !s.deletedFrom(id) {
		g.EntriesRead++
	} else {
		g.EntriesRead = s.EntriesUpTo(id)
	}
	g.LastID = id
}

// Lag returns how many entries g has not read yet; ok is false if that cannot be told.
func (s *Stream) Lag(g *StreamGroup) (lag int64, ok bool) {
	if s.EntriesAdded == 0 {
		return 0, true
	}
	if g.EntriesRead != UnknownReads && !s.deletedFrom(g.LastID) {
		return s.EntriesAdded - g.EntriesRead, true
	}
	if read := s.EntriesUpTo(g.LastID); read != UnknownReads {
		return s.EntriesAdded - read, true
	}
	return 0, false
}

// deletedFrom reports whether an entry was deleted out of the stream at id or after it, so
// that the entries from there on are fewer than were added.
func (s *Stream) deletedFrom(id StreamID) bool {
	return s.length > 0 && !s.MaxDeletedID.IsZero() &&
		!s.MaxDeletedID.Less(s.FirstID()) && !s.MaxDeletedID.Less(id)
}

// EntriesUpTo returns how many entries were added up to id. It is known at the ends of the
// stream only, and UnknownReads anywhere else.
func (s *Stream) EntriesUpTo(id StreamID) int64 {
	if s.EntriesAdded == 0 {
		return 0
	}
	if s.length == 0 && !s.LastID.Less(id) {
		return s.EntriesAdded
	}
	switch id.Compare(s.LastID) {
	case 0:
		return s.EntriesAdded
	case 1:
		return UnknownReads
	}
	first := s.FirstID()
	if !s.MaxDeletedID.IsZero() && !s.MaxDeletedID.Less(first) {
		return UnknownReads
	}
	switch id.Compare(first) {
	case -1:
		return s.EntriesAdded - int64(s.length)
	case 0:
		return s.EntriesAdded - int64(s.length) + 1
	default:
		return UnknownReads
	}
}

// Pending is everything that the group has handed out and nobody has acknowledged.
func (g *StreamGroup) Pending() *PendingList { return &g.pending }

// Consumer returns the consumer of this name, or nil. O(1).
func (g *StreamGroup) Consumer(name []byte) *StreamConsumer { return g.consumers[string(name)] }

// Consumers walks over the consumers in order of their names. O(n log n).
func (g *StreamGroup) Consumers() iter.Seq2[string, *StreamConsumer] { return inNameOrder(g.consumers) }

// ConsumerCount returns the number of consumers.
func (g *StreamGroup) ConsumerCount() int { return len(g.consumers) }

// CreateConsumer makes a consumer, seen now, and returns it, or nil if there was one.
func (g *StreamGroup) CreateConsumer(name []byte, nowMs int64) *StreamConsumer {
	if g.Consumer(name) != nil {
		return nil
	}
	if g.consumers == nil {
		g.consumers = map[string]*StreamConsumer{}
	}
	c := &StreamConsumer{Name: string(name), SeenMs: nowMs}
	g.consumers[c.Name] = c
	g.stream.groupBytes += c.memoryBytes()
	return c
}

// DeleteConsumer removes a consumer and what is pending for it. O(m log n) for m such
// entries.
func (g *StreamGroup) DeleteConsumer(c *StreamConsumer) {
	g.stream.groupBytes -= c.memoryBytes()
	for p := range c.pending.From(StreamID{}) {
		g.pending.remove(p.ID)
	}
	g.stream.groupBytes -= c.pending.length * pendingBytes
	delete(g.consumers, c.Name)
}

// Assign makes the entry with this ID pending for c, delivered once, whether it was
// pending for somebody before or not. O(log n).
func (g *StreamGroup) Assign(id StreamID, c *StreamConsumer, nowMs int64) *StreamPending {
	p := g.pending.Find(id)
	if p == nil {
		p = &StreamPending{ID: id, Consumer: c}
		g.pending.insert(p)
		c.pending.insert(p)
		g.stream.groupBytes += pendingBytes
	}
	g.Transfer(p, c)
	p.DeliveredMs, p.Deliveries = nowMs, 1
	return p
}

// Transfer makes p, which is pending in this group, pending for c. O(log n).
func (g *StreamGroup) Transfer(p *StreamPending, c *StreamConsumer) {
	if p.Consumer == c {
		return
	}
	p.Consumer.pending.remove(p.ID)
	p.Consumer = c
	c.pending.insert(p)
}

// Ack takes an entry off the pending ones and says whether it was one. O(log n).
func (g *StreamGroup) Ack(id StreamID) bool {
	p := g.pending.Find(id)
	if p == nil {
		return false
	}
	g.pending.remove(id)
	p.Consumer.pending.remove(id)
	g.stream.groupBytes -= pendingBytes
	return true
}

// copyTo gives another group, which is new, the same consumers with the same entries.
func (g *StreamGroup) copyTo(clone *StreamGroup) {
	for name, c := range g.consumers {
		clone.CreateConsumer([]byte(name), c.SeenMs)
	}
	for p := range g.pending.From(StreamID{}) {
		copied := clone.Assign(p.ID, clone.consumers[p.Consumer.Name], p.DeliveredMs)
		copied.Deliveries = p.Deliveries
	}
}
