package rdb_test

import (
	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// plainStream is a stream that can be written down and compared: all that a stream is,
// in no structure that would make it fast to use.
type plainStream struct {
	Chunks               [][]plainEntry
	LastID, MaxDeletedID ds.StreamID
	EntriesAdded         int64
	Groups               []plainGroup
}

type plainEntry struct {
	ID      ds.StreamID
	Pairs   []string // fields and values by turns
	Deleted bool
}

type plainGroup struct {
	Name        string
	LastID      ds.StreamID
	EntriesRead int64
	Pending     []plainPending
	Consumers   []plainConsumer
}

type plainPending struct {
	ID                      ds.StreamID
	Consumer                string
	DeliveredMs, Deliveries int64
}

type plainConsumer struct {
	Name   string
	SeenMs int64
}

// plain takes a stream apart.
func plain(s *ds.Stream) *plainStream {
	told := &plainStream{LastID: s.LastID, MaxDeletedID: s.MaxDeletedID, EntriesAdded: s.EntriesAdded}
	for chunk := range s.Chunks() {
		entries := []plainEntry{}
		for e, present := range chunk.Entries() {
			entry := plainEntry{ID: e.ID, Deleted: !present}
			for field, value := range e.Fields() {
				entry.Pairs = append(entry.Pairs, string(field), string(value))
			}
			entries = append(entries, entry)
		}
		told.Chunks = append(told.Chunks, entries)
	}
	for name, g := range s.Groups() {
		group := plainGroup{Name: name, LastID: g.LastID, EntriesRead: g.EntriesRead}
		for p := range g.Pending().From(ds.StreamID{}) {
			group.Pending = append(group.Pending, plainPending{p.ID, p.Consumer.Name, p.DeliveredMs, p.Deliveries})
		}
		for name, c := range g.Consumers() {
			group.Consumers = append(group.Consumers, plainConsumer{name, c.SeenMs})
		}
		told.Groups = append(told.Groups, group)
	}
	return told
}

// build puts a stream together. It need not be one that makes sense.
func (p *plainStream) build() *ds.Stream {
	s := ds.NewStream()
	for _, chunk := range p.Chunks {
		var fields [][]byte
		for i := 0; i < len(chunk[0].Pairs); i += 2 {
			fields = append(fields, []byte(chunk[0].Pairs[i]))
		}
		s.LoadChunk(chunk[0].ID, fields)
		for _, entry := range chunk {
			var pairs [][]byte
			for _, text := range entry.Pairs {
				pairs = append(pairs, []byte(text))
			}
			s.LoadEntry(entry.ID, pairs, !entry.Deleted)
		}
	}
	s.LastID, s.MaxDeletedID, s.EntriesAdded = p.LastID, p.MaxDeletedID, p.EntriesAdded
	for _, group := range p.Groups {
		s.CreateGroup([]byte(group.Name), group.LastID, group.EntriesRead)
		g := s.Group([]byte(group.Name))
		for _, c := range group.Consumers {
			g.CreateConsumer([]byte(c.Name), c.SeenMs)
		}
		for _, pending := range group.Pending {
			g.Assign(pending.ID, g.Consumer([]byte(pending.Consumer)), pending.DeliveredMs).Deliveries = pending.Deliveries
		}
	}
	return s
}
