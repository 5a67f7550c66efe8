package rdb

import (
	"encoding/binary"
	"strconv"
)

// stream writes a stream as Redis 7.0 does; see stream_decode.go for the format.
func (e *encoder) stream(s *Stream) {
	nodes := uint64(0)
	for _, node := range s.Nodes {
		if len(node) > 0 {
			nodes++
		}
	}
	e.length(nodes)
	for _, node := range s.Nodes {
		if len(node) > 0 {
			e.streamNode(node)
		}
	}
	e.length(uint64(s.Len()))
	e.streamIDByLengths(s.LastID)
	e.streamIDByLengths(s.firstID())
	e.streamIDByLengths(s.MaxDeletedID)
	e.length(s.EntriesAdded)
	e.length(uint64(len(s.Groups)))
	for i := range s.Groups {
		e.streamGroup(&s.Groups[i])
	}
}

func (e *encoder) streamIDByLengths(id StreamID) {
	e.length(id.Ms)
	e.length(id.Seq)
}

func appendStreamID(dst []byte, id StreamID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.Ms), id.Seq)
}

// streamNode writes entries, at least one, as a node with the first of them as
// its master.
func (e *encoder) streamNode(entries []StreamEntry) {
	master := entries[0]
	var id [streamIDBytes]byte
	e.text(appendStreamID(id[:0], master.ID))
	p := &e.pack
	p.reset()
	p.addInteger(int64(len(entries)))
	p.addInteger(0) // none of them deleted
	p.addInteger(int64(len(master.Fields) / 2))
	for i := 0; i < len(master.Fields); i += 2 {
		p.add(master.Fields[i])
	}
	p.addInteger(0)
	for _, entry := range entries {
		same := sameFields(entry.Fields, master.Fields)
		p.addEntry(entry, master.ID, same)
	}
	e.text(p.finish())
}

// sameFields reports whether two entries have the same fields in the same order.
func sameFields(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i += 2 {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// addEntry appends an entry of a stream's node.
func (l *listpackBuilder) addEntry(entry StreamEntry, master StreamID, same bool) {
	before := l.count
	flags := int64(0)
	if same {
		flags = entrySameFields
	}
	l.addInteger(flags)
	l.addInteger(int64(entry.ID.Ms - master.Ms))
	l.addInteger(int64(entry.ID.Seq - master.Seq))
	if !same {
		l.addInteger(int64(len(entry.Fields) / 2))
	}
	for i, text := range entry.Fields {
		if isField := i%2 == 0; !isField || !same {
			l.add(text)
		}
	}
	l.add(strconv.Itoa(l.count - before))
}

func (e *encoder) streamGroup(g *StreamGroup) {
	e.textString(g.Name)
	e.streamIDByLengths(g.LastID)
	e.length(uint64(g.EntriesRead))
	e.length(uint64(len(g.Pending)))
	byConsumer := map[string][]StreamID{}
	for _, p := range g.Pending {
		byConsumer[p.Consumer] = append(byConsumer[p.Consumer], p.ID)
		e.buf = appendStreamID(e.buf, p.ID)
		e.timeMs(p.DeliveredMs)
		e.length(p.Deliveries)
		e.relieve()
	}
	e.length(uint64(len(g.Consumers)))
	for _, c := range g.Consumers {
		e.textString(c.Name)
		e.timeMs(c.SeenMs)
		e.length(uint64(len(byConsumer[c.Name])))
		for _, id := range byConsumer[c.Name] {
			e.buf = appendStreamID(e.buf, id)
			e.relieve()
		}
	}
}

func (e *encoder) timeMs(ms int64) {
	e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(ms))
}
