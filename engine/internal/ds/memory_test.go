package ds

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTheBytesOfStringsAreExact: what a Hash adds up as fields come, change and
// go is what its strings take, and so with the keys of every Dict.
func TestTheBytesOfStringsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := NewHash()
	h.Set([]byte("large"), bytes.Repeat([]byte("v"), rowBytes))
	for i := range 20_000 {
		field := []byte(strings.Repeat("f", r.IntN(40)) + fmt.Sprint(r.IntN(300)))
		switch r.IntN(3) {
		case 0:
			h.Delete(field)
		default:
			h.Set(field, bytes.Repeat([]byte("v"), r.IntN(2000)))
		}
		if i == 15_000 {
			h = h.Clone()
		}
		if i%100 != 0 {
			continue
		}
		var fields, values int
		for field, value := range h.All() {
			fields += StringBytes(len(field))
			values += StringBytes(len(value))
		}
		if h.row.large().keyBytes != fields || h.row.large().valueBytes != values {
			t.Fatalf("after %d changes: %d and %d bytes are counted, %d and %d are there", i, h.row.large().keyBytes, h.row.large().valueBytes, fields, values)
		}
	}
	for field := range h.Clone().All() {
		h.Delete([]byte(field))
	}
	if h.row.large().keyBytes != 0 || h.row.large().valueBytes != 0 {
		t.Errorf("%d and %d bytes are left of nothing", h.row.large().keyBytes, h.row.large().valueBytes)
	}
}

// TestTheBytesOfStreamsAreExact: what a Stream counts as entries, groups, consumers and
// pending entries come and go is what adding it up gives.
func TestTheBytesOfStreamsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := NewStream()
	id := func() StreamID { return StreamID{Ms: s.LastID.Ms - min(s.LastID.Ms, r.Uint64N(300))} }
	group := func() *StreamGroup {
		name := []byte(fmt.Sprint("group", r.IntN(3)))
		s.CreateGroup(name, StreamID{}, 0)
		return s.Group(name)
	}
	consumer := func(g *StreamGroup) *StreamConsumer {
		name := []byte(strings.Repeat("c", 1+r.IntN(40)))
		g.CreateConsumer(name, 0)
		return g.Consumer(name)
	}
	for i := range 20_000 {
		switch r.IntN(20) {
		case 0:
			s.Delete(id())
		case 1:
			s.Trim(StreamTrim{MaxLen: r.Int64N(1000), Whole: r.IntN(2) == 0})
		case 2, 3, 4, 5:
			g := group()
			g.Assign(id(), consumer(g), 0)
		case 6, 7:
			group().Ack(id())
		case 8:
			g := group()
			g.DeleteConsumer(consumer(g))
		default:
			s.Append(StreamID{Ms: s.LastID.Ms + 1}, [][]byte{[]byte(fmt.Sprint("f", i/700)), []byte(strings.Repeat("v", r.IntN(200)))})
		}
		if i%1000 == 999 {
			s.DeleteGroup([]byte("group1"))
		}
		if i == 15_000 {
			s = s.Clone()
		}
		if i%100 == 0 {
			checkStreamBytes(t, i, s)
		}
	}
	s.Trim(StreamTrim{})
	for _, name := range []string{"group0", "group1", "group2"} {
		s.DeleteGroup([]byte(name))
	}
	if s.chunkBytes != 0 || s.groupBytes != 0 {
		t.Errorf("%d and %d bytes are left of nothing", s.chunkBytes, s.groupBytes)
	}
}

func checkStreamBytes(t *testing.T, i int, s *Stream) {
	t.Helper()
	chunks, groups := 0, 0
	for _, c := range s.chunks {
		chunks += c.bytes
	}
	for name, g := range s.Groups() {
		groups += g.memoryBytes([]byte(name))
		for _, c := range g.Consumers() {
			groups += c.memoryBytes()
		}
	}
	if s.chunkBytes != chunks || s.groupBytes != groups {
		t.Fatalf("after %d changes: %d and %d bytes are counted, %d and %d are there", i, s.chunkBytes, s.groupBytes, chunks, groups)
	}
}
