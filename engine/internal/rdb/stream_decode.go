package rdb

import (
	"encoding/binary"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
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
//
// A node is a chunk of ds.Stream. What deleted entries were is read and written like
// the rest: how full a node is depends on them.

const (
	streamIDBytes = 16

	entryDeleted    = 1
	entrySameFields = 2
)

func (d *decoder) stream(kind byte) *ds.Stream {
	s := ds.NewStream()
	last := ds.StreamID{}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		d.streamNode(s, &last)
	}
	length := d.length()
	if !d.failed() && length != uint64(s.Len()) {
		d.fail("a stream does not have as many entries as it says")
	}
	s.LastID = d.streamIDByLengths()
	if !d.failed() && s.LastID.Less(last) {
		d.fail("a stream has entries behind its last ID")
	}
	s.EntriesAdded = int64(length)
	if kind >= typeStream2 {
		d.streamIDByLengths() // of the first entry, which is there to see
		s.MaxDeletedID = d.streamIDByLengths()
		s.EntriesAdded = int64(d.length())
	}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		d.streamGroup(s, kind)
	}
	return s
}

// streamIDByLengths reads an ID that is written as two lengths.
func (d *decoder) streamIDByLengths() ds.StreamID {
	ms := d.length()
	return ds.StreamID{Ms: ms, Seq: d.length()}
}

// streamIDRaw reads an ID that is written as it is sorted.
func (d *decoder) streamIDRaw() ds.StreamID {
	d.begin()
	return parseStreamID(d.fixed(streamIDBytes))
}

func parseStreamID(b []byte) ds.StreamID {
	return ds.StreamID{Ms: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}
}

// streamNode reads a node. It has to come after last, which then is the last ID that
// the node takes up.
func (d *decoder) streamNode(s *ds.Stream, last *ds.StreamID) {
	key, _ := d.text()
	if len(key) != streamIDBytes && !d.failed() {
		d.fail("a node of a stream has no ID")
	}
	if d.failed() {
		return
	}
	node := streamNode{stream: s, master: parseStreamID(key)}
	if !last.Less(node.master) {
		d.fail("a stream is not in order")
		return
	}
	*last, _ = node.master.Prev()
	node.last = last
	node.l = newListpack(d.piece())
	node.load()
	d.conclude(node.l)
	if last.Less(node.master) {
		*last = node.master
	}
}

// streamNode walks over the listpack of a node and puts what is there into the last
// chunk of the stream. It notes in the listpack what is wrong.
type streamNode struct {
	l      *listpack
	stream *ds.Stream
	master ds.StreamID
	last   *ds.StreamID // of the entries that are present
	fields [][]byte
	pairs  [][]byte // those of an entry, used again for the next
}

func (n *streamNode) failed() bool { return n.l.wrong != "" }

func (n *streamNode) fail(wrong string) {
	if !n.failed() {
		n.l.wrong = wrong
	}
}

// text is the next element, valid as long as the listpack is.
func (n *streamNode) text() []byte {
	e, ok := n.l.next()
	if !ok {
		n.fail("a node of a stream ends too early")
	}
	var own [20]byte
	return e.bytes(&own)
}

// load reads the whole node.
func (n *streamNode) load() {
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
	if len(n.fields) == 0 {
		n.fail("an entry of a stream has no fields")
	}
	if n.failed() {
		return
	}
	n.stream.LoadChunk(n.master, n.fields)
	for (live > 0 || deleted > 0) && !n.failed() {
		if present := n.entry(); present {
			live--
		} else {
			deleted--
		}
	}
	if live != 0 || deleted != 0 {
		n.fail("a node of a stream does not have as many entries as it says")
	}
	if _, more := n.l.next(); more {
		n.fail("a node of a stream does not end after its entries")
	}
}

// entry reads an entry and reports whether it is present.
func (n *streamNode) entry() (present bool) {
	flags := n.l.number()
	id := n.master
	id.Ms += uint64(n.l.number())
	id.Seq += uint64(n.l.number())
	if elements := n.readPairs(flags&entrySameFields != 0); n.l.number() != elements {
		n.fail("an entry of a stream does not end")
	}
	if len(n.pairs) == 0 {
		n.fail("an entry of a stream has no fields")
	}
	present = flags&entryDeleted == 0
	if present && !n.last.Less(id) {
		n.fail("a stream is not in order")
	}
	if n.failed() {
		return present
	}
	if !n.stream.LoadEntry(id, n.pairs, present) {
		n.fail("a node of a stream is too large")
	}
	if present {
		*n.last = id
	}
	return present
}

// readPairs reads the fields and values of an entry, and returns how many elements the
// entry is in all.
func (n *streamNode) readPairs(sameFields bool) (elements int64) {
	n.pairs = n.pairs[:0]
	if sameFields {
		for _, field := range n.fields {
			if n.failed() {
				break
			}
			n.pairs = append(n.pairs, field, n.text())
		}
		return 3 + int64(len(n.fields))
	}
	fields := n.l.number()
	for i := int64(0); i < fields && !n.failed(); i++ {
		n.pairs = append(n.pairs, n.text(), n.text())
	}
	return 4 + 2*fields
}

// delivery is what a group says of an entry that is pending, before it says for whom.
type delivery struct{ atMs, count int64 }

func (d *decoder) streamGroup(s *ds.Stream, kind byte) {
	name := d.goString()
	lastID := d.streamIDByLengths()
	entriesRead := s.EntriesUpTo(lastID)
	if kind >= typeStream2 {
		entriesRead = int64(d.length())
	}
	if d.failed() {
		return
	}
	if !s.CreateGroup(viewBytes(name), lastID, entriesRead) {
		d.fail("a stream has two groups of the same name")
		return
	}
	pending := map[ds.StreamID]delivery{}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		id := d.streamIDRaw()
		if _, twice := pending[id]; twice && !d.failed() {
			d.fail("a group of a stream has an entry pending twice")
		}
		pending[id] = delivery{atMs: d.timeMs(), count: int64(d.length())}
	}
	g := s.Group(viewBytes(name))
	for n := d.length(); n > 0 && !d.failed(); n-- {
		d.streamConsumer(g, kind, pending)
	}
	if len(pending) > 0 && !d.failed() {
		d.fail("an entry is pending for no consumer")
	}
}

// streamConsumer reads a consumer and takes what is pending for it out of pending.
func (d *decoder) streamConsumer(g *ds.StreamGroup, kind byte, pending map[ds.StreamID]delivery) {
	name := d.goString()
	seenMs := d.timeMs()
	if kind >= typeStream3 {
		d.timeMs() // of its last success, which Redis 7.0 does not know
	}
	if d.failed() {
		return
	}
	c := g.CreateConsumer(viewBytes(name), seenMs)
	if c == nil {
		d.fail("a group of a stream has two consumers of the same name")
		return
	}
	for n := d.length(); n > 0 && !d.failed(); n-- {
		id := d.streamIDRaw()
		was, ok := pending[id]
		if !ok && !d.failed() {
			d.fail("an entry is pending for two consumers, or for a consumer and not for its group")
		}
		if !d.failed() {
			g.Assign(id, c, was.atMs).Deliveries = was.count
			delete(pending, id)
		}
	}
}
