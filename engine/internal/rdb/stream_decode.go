package rdb

import (
	"encoding/binary"
	"slices"
)

// A stream is written as its nodes, its counters and its groups. A node is the ID
// of its master entry and a listpack:
//
//	live entries | deleted entries | n | field ... (n times) | 0 | entry ...
//
// where the fields are those of the master, the first entry that the node ever
// had. An entry is
//
//	flags | ms | seq | value ... (n times)                  | elements of the entry
//	flags | ms | seq | m | field, value ... (m times)       | elements of the entry
//
// with ms and seq relative to the master; the first form, with the fields of the
// master, is told by a flag. Deleted entries stay until the whole node is.

const (
	streamIDBytes = 16

	entryDeleted    = 1
	entrySameFields = 2
)

func (d *decoder) stream(kind byte) *Stream {
	s := &Stream{}
	last := StreamID{}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		if node := d.streamNode(&last); len(node) > 0 {
			s.Nodes = append(s.Nodes, node)
		}
	}
	length := d.length()
	if !d.failed() && length != uint64(s.Len()) {
		d.fail("a stream does not have as many entries as it says")
	}
	s.LastID = d.streamIDByLengths()
	if !d.failed() && s.LastID.Compare(last) < 0 {
		d.fail("a stream has entries behind its last ID")
	}
	s.EntriesAdded = length
	if kind >= typeStream2 {
		d.streamIDByLengths() // of the first entry, which is there to see
		s.MaxDeletedID = d.streamIDByLengths()
		s.EntriesAdded = d.length()
	}
	names := map[string]bool{}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		g := d.streamGroup(s, kind)
		if names[g.Name] && !d.failed() {
			d.fail("a stream has two groups of the same name")
		}
		names[g.Name] = true
		s.Groups = append(s.Groups, g)
	}
	return s
}

// streamIDByLengths reads an ID that is written as two lengths.
func (d *decoder) streamIDByLengths() StreamID {
	ms := d.length()
	return StreamID{Ms: ms, Seq: d.length()}
}

// streamIDRaw reads an ID that is written as it is sorted.
func (d *decoder) streamIDRaw() StreamID {
	d.begin()
	return parseStreamID(d.fixed(streamIDBytes))
}

func parseStreamID(b []byte) StreamID {
	return StreamID{Ms: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}
}

// streamNode reads a node. Its live entries have to come after last, which then
// is the last of them.
func (d *decoder) streamNode(last *StreamID) []StreamEntry {
	key, _ := d.text()
	if len(key) != streamIDBytes && !d.failed() {
		d.fail("a node of a stream has no ID")
	}
	if d.failed() {
		return nil
	}
	node := streamNode{master: parseStreamID(key)}
	node.l = newListpack(d.piece())
	entries := node.entries()
	d.conclude(node.l)
	for _, e := range entries {
		if e.ID.Compare(*last) <= 0 && !d.failed() {
			d.fail("a stream is not in order")
		}
		*last = e.ID
	}
	return entries
}

// streamNode walks over the listpack of a node. It notes what is wrong there.
type streamNode struct {
	l      *listpack
	master StreamID
	fields []string
}

func (n *streamNode) failed() bool { return n.l.wrong != "" }

func (n *streamNode) fail(wrong string) {
	if !n.failed() {
		n.l.wrong = wrong
	}
}

func (n *streamNode) text() string {
	e, ok := n.l.next()
	if !ok {
		n.fail("a node of a stream ends too early")
	}
	return e.String()
}

// entries reads the whole node and returns the entries that are not deleted.
func (n *streamNode) entries() []StreamEntry {
	live, deleted := n.l.number(), n.l.number()
	for fields := n.l.number(); fields > 0 && !n.failed(); fields-- {
		n.fields = append(n.fields, n.text())
	}
	if n.l.number() != 0 {
		n.fail("the master entry of a stream's node does not end")
	}
	if live < 0 || deleted < 0 {
		n.fail("a node of a stream has fewer than no entries")
	}
	var entries []StreamEntry
	for (live > 0 || deleted > 0) && !n.failed() {
		e, isDeleted := n.entry()
		if isDeleted {
			deleted--
			continue
		}
		live--
		entries = append(entries, e)
	}
	if live != 0 || deleted != 0 {
		n.fail("a node of a stream does not have as many entries as it says")
	}
	if _, more := n.l.next(); more {
		n.fail("a node of a stream does not end after its entries")
	}
	return entries
}

func (n *streamNode) entry() (e StreamEntry, deleted bool) {
	flags := n.l.number()
	e.ID.Ms = n.master.Ms + uint64(n.l.number())
	e.ID.Seq = n.master.Seq + uint64(n.l.number())
	var elements int64 // of the entry, its flags and IDs included
	if flags&entrySameFields != 0 {
		for _, field := range n.fields {
			if n.failed() {
				break
			}
			e.Fields = append(e.Fields, field, n.text())
		}
		elements = 3 + int64(len(n.fields))
	} else {
		fields := n.l.number()
		for i := int64(0); i < fields && !n.failed(); i++ {
			e.Fields = append(e.Fields, n.text(), n.text())
		}
		elements = 4 + 2*fields
	}
	if n.l.number() != elements {
		n.fail("an entry of a stream does not end")
	}
	return e, flags&entryDeleted != 0
}

func (d *decoder) streamGroup(s *Stream, kind byte) StreamGroup {
	g := StreamGroup{Name: d.goString(), LastID: d.streamIDByLengths()}
	if kind >= typeStream2 {
		g.EntriesRead = int64(d.length())
	} else {
		g.EntriesRead = s.estimateRead(g.LastID)
	}
	pending := map[StreamID]int{} // to their index in the list
	for n := d.length(); n > 0 && !d.failed(); n-- {
		p := StreamPending{ID: d.streamIDRaw(), DeliveredMs: d.timeMs(), Deliveries: d.length()}
		if _, twice := pending[p.ID]; twice && !d.failed() {
			d.fail("a group of a stream has an entry pending twice")
		}
		pending[p.ID] = len(g.Pending)
		g.Pending = append(g.Pending, p)
	}
	names := map[string]bool{}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		c := d.streamConsumer(&g, kind, pending)
		if names[c.Name] && !d.failed() {
			d.fail("a group of a stream has two consumers of the same name")
		}
		names[c.Name] = true
		g.Consumers = append(g.Consumers, c)
	}
	if len(pending) > 0 && !d.failed() {
		d.fail("an entry is pending for no consumer")
	}
	slices.SortFunc(g.Pending, func(a, b StreamPending) int { return a.ID.Compare(b.ID) })
	return g
}

// streamConsumer reads a consumer and takes what is pending for it out of pending.
func (d *decoder) streamConsumer(g *StreamGroup, kind byte, pending map[StreamID]int) StreamConsumer {
	c := StreamConsumer{Name: d.goString(), SeenMs: d.timeMs()}
	c.ActiveMs = c.SeenMs
	if kind >= typeStream3 {
		c.ActiveMs = d.timeMs()
	}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		id := d.streamIDRaw()
		i, ok := pending[id]
		if !ok && !d.failed() {
			d.fail("an entry is pending for two consumers, or for a consumer and not for its group")
		}
		if !d.failed() {
			g.Pending[i].Consumer = c.Name
			delete(pending, id)
		}
	}
	return c
}

// estimateRead is how many entries a group has read whose last ID is id, in a
// stream that was written before that was counted; -1 if that cannot be told.
func (s *Stream) estimateRead(id StreamID) int64 {
	total, left := int64(s.EntriesAdded), int64(s.Len())
	switch first := s.firstID(); {
	case total == 0:
		return 0
	case left == 0 && id.Compare(s.LastID) <= 0, id == s.LastID:
		return total
	case id.Compare(s.LastID) > 0:
		return -1
	case id.Compare(first) < 0:
		return total - left
	case id == first:
		return total - left + 1
	default:
		return -1
	}
}
