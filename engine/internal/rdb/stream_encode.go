package rdb

import (
	"encoding/binary"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// stream writes a stream as Redis 7.0 does; see stream_decode.go for the format.
func (e *encoder) stream(s *ds.Stream) {
	e.length(uint64(s.ChunkCount()))
	for chunk := range s.Chunks() {
		if e.err != nil {
			return
		}
		e.streamNode(chunk)
	}
	e.length(uint64(s.Len()))
	e.streamIDByLengths(s.LastID)
	e.streamIDByLengths(s.FirstID())
	e.streamIDByLengths(s.MaxDeletedID)
	e.length(uint64(s.EntriesAdded))
	e.length(uint64(s.GroupCount()))
	for name, g := range s.Groups() {
		if e.err != nil {
			return
		}
		e.textString(name)
		e.streamGroup(g)
	}
}

func (e *encoder) streamIDByLengths(id ds.StreamID) {
	e.length(id.Ms)
	e.length(id.Seq)
}

func appendStreamID(dst []byte, id ds.StreamID) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.Ms), id.Seq)
}

// streamNode writes a chunk as a node.
func (e *encoder) streamNode(chunk ds.StreamChunk) {
	e.busy += nodeBusy
	var id [streamIDBytes]byte
	e.text(appendStreamID(id[:0], chunk.FirstID()))
	p := &e.pack
	p.reset()
	p.addInteger(int64(chunk.Len()))
	p.addInteger(int64(chunk.Deleted()))
	p.addInteger(int64(len(chunk.SharedFields())))
	for _, field := range chunk.SharedFields() {
		p.add(view(field))
	}
	p.addInteger(0)
	for entry, present := range chunk.Entries() {
		p.addEntry(entry, present, chunk.FirstID())
	}
	e.text(p.finish())
}

// addEntry appends an entry of a stream's node.
func (l *listpackBuilder) addEntry(entry ds.StreamEntry, present bool, master ds.StreamID) {
	before := l.count
	flags, same := int64(0), entry.HasSharedFields()
	if same {
		flags |= entrySameFields
	}
	if !present {
		flags |= entryDeleted
	}
	l.addInteger(flags)
	l.addInteger(int64(entry.ID.Ms - master.Ms))
	l.addInteger(int64(entry.ID.Seq - master.Seq))
	if !same {
		l.addInteger(int64(entry.Len()))
	}
	for field, value := range entry.Fields() {
		if !same {
			l.add(view(field))
		}
		l.add(view(value))
	}
	l.add(strconv.Itoa(l.count - before))
}

func (e *encoder) streamGroup(g *ds.StreamGroup) {
	e.streamIDByLengths(g.LastID)
	e.length(uint64(g.EntriesRead))
	e.length(uint64(g.Pending().Len()))
	for p := range g.Pending().From(ds.StreamID{}) {
		e.buf = appendStreamID(e.buf, p.ID)
		e.timeMs(p.DeliveredMs)
		e.length(uint64(p.Deliveries))
		if e.relieve(); e.err != nil {
			return
		}
	}
	e.length(uint64(g.ConsumerCount()))
	for name, c := range g.Consumers() {
		e.textString(name)
		e.timeMs(c.SeenMs)
		e.length(uint64(c.Pending().Len()))
		for p := range c.Pending().From(ds.StreamID{}) {
			e.buf = appendStreamID(e.buf, p.ID)
			if e.relieve(); e.err != nil {
				return
			}
		}
	}
}

func (e *encoder) timeMs(ms int64) {
	e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(ms))
}
