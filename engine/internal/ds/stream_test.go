package ds

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// modelEntry is an entry of the slice that a stream is held against.
type modelEntry struct {
	id    StreamID
	pairs string // fields and values, each after its length
}

func flatten(pairs [][]byte) string {
	var b []byte
	for _, p := range pairs {
		b = append(strconv.AppendInt(b, int64(len(p)), 10), ' ')
		b = append(b, p...)
	}
	return string(b)
}

func flattenEntry(e StreamEntry) modelEntry {
	var pairs [][]byte
	for field, value := range e.Fields() {
		pairs = append(pairs, field, value)
	}
	if len(pairs) != 2*e.Len() {
		pairs = nil
	}
	return modelEntry{e.ID, flatten(pairs)}
}

// streamRun holds a Stream and the slice that it should be equal to.
type streamRun struct {
	s          *Stream
	model      []modelEntry
	last       StreamID
	maxDeleted StreamID
	added      int64
}

// idOf draws an ID that may be that of an entry, be close to one, or be far from all.
func (r *streamRun) idOf(t *rapid.T) StreamID {
	if len(r.model) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		id := r.model[rapid.IntRange(0, len(r.model)-1).Draw(t, "entry")].id
		switch rapid.IntRange(0, 4).Draw(t, "beside") {
		case 0:
			id, _ = id.Next()
		case 1:
			id, _ = id.Prev()
		}
		return id
	}
	return rapid.SampledFrom([]StreamID{{}, {0, 1}, {1, 0}, {50, 3}, r.last, MaxStreamID}).Draw(t, "id")
}

func (r *streamRun) append(t *rapid.T) {
	for range rapid.IntRange(1, 40).Draw(t, "count") {
		id := r.last
		if rapid.Bool().Draw(t, "newMs") {
			id.Ms += 1 << rapid.IntRange(0, 20).Draw(t, "step")
			id.Seq = rapid.SampledFrom([]uint64{0, 1, 300, 1 << 40}).Draw(t, "seq")
		} else {
			id.Seq += rapid.SampledFrom([]uint64{1, 2, 500}).Draw(t, "seqStep")
		}
		var pairs [][]byte
		for i := range rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(t, "fields") {
			field := rapid.SampledFrom([]string{"", "f", "other", fmt.Sprint("f", i)}).Draw(t, "field")
			size := rapid.SampledFrom([]int{0, 1, 20, 130, 1500}).Draw(t, "size")
			pairs = append(pairs, []byte(field), []byte(strings.Repeat("v", size)))
		}
		want := modelEntry{id, flatten(pairs)}
		if !r.s.Append(id, pairs) {
			t.Fatalf("an entry of %d fields is too large", len(pairs)/2)
		}
		for _, p := range pairs {
			clear(p) // the stream has copied them
		}
		r.model = append(r.model, want)
		r.last = id
		r.added++
	}
}

func (r *streamRun) delete(t *rapid.T) {
	for range rapid.IntRange(1, 40).Draw(t, "count") {
		id := r.idOf(t)
		at := slices.IndexFunc(r.model, func(e modelEntry) bool { return e.id == id })
		if r.s.Delete(id) != (at >= 0) {
			t.Fatalf("Delete(%v) is %v", id, at < 0)
		}
		if at < 0 {
			continue
		}
		r.model = slices.Delete(r.model, at, at+1)
		if r.maxDeleted.Less(id) {
			r.maxDeleted = id
		}
	}
}

// trim checks what holds for any chunks: never more goes than should, exactly as much if
// whole chunks are not asked for, and otherwise not less by more than a chunk.
func (r *streamRun) trim(t *rapid.T) {
	trim := StreamTrim{
		ByID: rapid.Bool().Draw(t, "byID"), MinID: r.idOf(t), MaxLen: int64(rapid.IntRange(0, 300).Draw(t, "maxLen")),
		Whole: rapid.Bool().Draw(t, "whole"),
	}
	due := max(len(r.model)-int(trim.MaxLen), 0)
	if trim.ByID {
		due = len(r.model)
		if at := slices.IndexFunc(r.model, func(e modelEntry) bool { return !e.id.Less(trim.MinID) }); at >= 0 {
			due = at
		}
	}
	if trim.Whole {
		trim.MostOut = int64(rapid.SampledFrom([]int{0, 50, 200}).Draw(t, "mostOut"))
	}
	removed := int(r.s.Trim(trim))
	switch {
	case removed > due || trim.MostOut > 0 && removed > int(trim.MostOut):
		t.Fatalf("%+v removes %d, and %d were due", trim, removed, due)
	case !trim.Whole && removed != due:
		t.Fatalf("%+v removes %d, want %d", trim, removed, due)
	case trim.MostOut == 0 && due-removed >= usual.StreamChunkEntries:
		t.Fatalf("%+v leaves %d that were due", trim, due-removed)
	}
	r.model = slices.Delete(r.model, 0, removed)
}

func (r *streamRun) clone(t *rapid.T) {
	old := r.s
	r.s = old.Clone()
	// Each gets an entry where the other has its own.
	id, _ := old.LastID.Next()
	old.Append(id, [][]byte{[]byte("must"), []byte("not reach the copy")})
	r.append(t)
	if e, ok := old.Entry(id); !ok || flattenEntry(e) != (modelEntry{id, "4 must18 not reach the copy"}) {
		t.Fatalf("an entry of the copy is in the original: %q", flattenEntry(e).pairs)
	}
	old.Delete(old.FirstID())
	old.Trim(StreamTrim{MaxLen: 0})
	if old.Len() != 0 || old.FirstID() != (StreamID{}) || old.LastEntryID() != (StreamID{}) {
		t.Fatalf("%d entries are left of none", old.Len())
	}
}

// ranges compares a random part of the stream with that of the model, in both directions.
func (r *streamRun) ranges(t *rapid.T) {
	from, to := r.idOf(t), r.idOf(t)
	var want, got, back []modelEntry
	for _, e := range r.model {
		if !e.id.Less(from) && !to.Less(e.id) {
			want = append(want, e)
		}
	}
	for e := range r.s.Range(from, to) {
		got = append(got, flattenEntry(e))
	}
	for e := range r.s.Backward(from, to) {
		back = append(back, flattenEntry(e))
	}
	slices.Reverse(back)
	if !slices.Equal(got, want) || !slices.Equal(back, want) {
		t.Fatalf("from %v to %v: got %d forward, %d backward, want %d", from, to, len(got), len(back), len(want))
	}
	most := rapid.IntRange(0, 300).Draw(t, "most")
	if n := r.s.Count(from, to, most); n != min(most, len(want)) {
		t.Fatalf("Count(%v, %v, %d) = %d, want that of %d", from, to, most, n, len(want))
	}
	e, ok := r.s.Entry(from)
	if at := slices.IndexFunc(r.model, func(e modelEntry) bool { return e.id == from }); ok != (at >= 0) || ok && flattenEntry(e) != r.model[at] {
		t.Fatalf("Entry(%v) is %v", from, ok)
	}
}

func (r *streamRun) check(t *rapid.T) {
	var all []modelEntry
	for e := range r.s.Range(StreamID{}, MaxStreamID) {
		all = append(all, flattenEntry(e))
	}
	if !slices.Equal(all, r.model) || r.s.Len() != len(r.model) {
		t.Fatalf("holds %d entries, Len() = %d, want %d", len(all), r.s.Len(), len(r.model))
	}
	var first, last StreamID
	if len(r.model) > 0 {
		first, last = r.model[0].id, r.model[len(r.model)-1].id
	}
	if r.s.FirstID() != first || r.s.LastEntryID() != last {
		t.Fatalf("from %v to %v, want %v to %v", r.s.FirstID(), r.s.LastEntryID(), first, last)
	}
	if r.s.LastID != r.last || r.s.MaxDeletedID != r.maxDeleted || r.s.EntriesAdded != r.added {
		t.Fatalf("counters %v %v %d, want %v %v %d", r.s.LastID, r.s.MaxDeletedID, r.s.EntriesAdded, r.last, r.maxDeleted, r.added)
	}
	requireChunks(t, r.s)
}

// requireChunks checks the promises of the directory.
func requireChunks(t fataler, s *Stream) {
	t.Helper()
	before, entries := StreamID{}, 0
	for i, c := range s.chunks {
		if i > 0 && !before.Less(c.first) || c.last.Less(c.first) {
			t.Fatalf("chunk %d begins at %v, after %v", i, c.first, before)
		}
		if len(c.index) == 0 && i > 0 || len(c.index) > c.added || c.added > usual.StreamChunkEntries {
			t.Fatalf("chunk %d has %d of %d entries", i, len(c.index), c.added)
		}
		before = c.last
		entries += len(c.index)
	}
	if entries != s.length {
		t.Fatalf("the chunks have %d entries, want %d", entries, s.length)
	}
}

func TestStreamIsASlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := &streamRun{s: NewStream()}
		t.Repeat(map[string]func(*rapid.T){
			"": r.check, "append": r.append, "delete": r.delete, "trim": r.trim, "clone": r.clone, "ranges": r.ranges,
		})
	})
}

func TestStreamSharesFieldNames(t *testing.T) {
	t.Parallel()
	s := NewStream()
	for i := range 1000 {
		s.Append(StreamID{uint64(i + 1), 0}, [][]byte{[]byte("a field of some length"), []byte("v")})
	}
	bytes := 0
	for _, c := range s.chunks {
		bytes += cap(c.data) + 4*cap(c.index)
		if &c.fields[0][0] != &s.chunks[0].fields[0][0] {
			t.Fatal("a chunk has a copy of the field's name")
		}
	}
	if bytes > 16*s.Len() {
		t.Errorf("%d bytes for %d entries", bytes, s.Len())
	}
}

func TestStreamTrimmedAllTheTimeKeepsNoMoreThanItHolds(t *testing.T) {
	t.Parallel()
	s := NewStream()
	for i := range 200_000 {
		s.Append(StreamID{uint64(i + 1), 0}, [][]byte{[]byte("f"), []byte("v")})
		s.Trim(StreamTrim{MaxLen: 1000})
	}
	if s.Len() != 1000 || s.ChunkCount() > 11 || cap(s.chunks) > 40 {
		t.Errorf("%d entries in %d chunks, with room for %d", s.Len(), s.ChunkCount(), cap(s.chunks))
	}
}

func TestStreamIDsAreInOrder(t *testing.T) {
	t.Parallel()
	ids := []StreamID{{}, {0, 1}, {0, 1<<64 - 1}, {1, 0}, {1 << 63, 0}, {1<<64 - 1, 0}, MaxStreamID}
	for i, a := range ids {
		for j, b := range ids {
			if a.Less(b) != (i < j) || (a.Compare(b) == 0) != (i == j) {
				t.Errorf("%v and %v compare as %d", a, b, a.Compare(b))
			}
		}
		next, ok := a.Next()
		if ok != (a != MaxStreamID) || ok && !a.Less(next) {
			t.Errorf("after %v comes %v, %v", a, next, ok)
		}
		if prev, ok := next.Prev(); prev != a || ok != (a != MaxStreamID) {
			t.Errorf("before %v comes %v, %v, want %v", next, prev, ok, a)
		}
	}
	if got := MaxStreamID.String(); got != "18446744073709551615-18446744073709551615" {
		t.Errorf("the largest ID is written %s", got)
	}
}

// groupRun holds a StreamGroup and who has what of it.
type groupRun struct {
	g     *StreamGroup
	owner map[uint64]string // by ID, which is Ms alone
	names []string
}

func (r *groupRun) consumer(t *rapid.T) *StreamConsumer {
	name := rapid.SampledFrom(r.names).Draw(t, "consumer")
	r.g.CreateConsumer([]byte(name), 0)
	return r.g.Consumer([]byte(name))
}

func (r *groupRun) assign(t *rapid.T) {
	c := r.consumer(t)
	from := rapid.Uint64Range(1, 1500).Draw(t, "from")
	step := rapid.Uint64Range(1, 7).Draw(t, "step")
	for i := range rapid.Uint64Range(1, 300).Draw(t, "count") {
		ms := from + i*step
		if p := r.g.Assign(StreamID{Ms: ms}, c, int64(ms)); p.Deliveries != 1 || p.DeliveredMs != int64(ms) || p.Consumer != c {
			t.Fatalf("assigned as %+v", p)
		}
		r.owner[ms] = c.Name
	}
}

func (r *groupRun) ack(t *rapid.T) {
	from, step := rapid.Uint64Range(1, 1500).Draw(t, "from"), rapid.Uint64Range(1, 3).Draw(t, "step")
	for i := range rapid.Uint64Range(1, 400).Draw(t, "count") {
		ms := from + i*step
		if _, had := r.owner[ms]; r.g.Ack(StreamID{Ms: ms}) != had {
			t.Fatalf("Ack(%d) is %v", ms, !had)
		}
		delete(r.owner, ms)
	}
}

func (r *groupRun) transfer(t *rapid.T) {
	c := r.consumer(t)
	from := StreamID{Ms: rapid.Uint64Range(0, 2000).Draw(t, "from")}
	p := r.g.Pending().AtOrAfter(from)
	for ms := range r.owner {
		if ms >= from.Ms && (p == nil || ms < p.ID.Ms) {
			t.Fatalf("%d is pending, and not found from %v", ms, from)
		}
	}
	if p != nil {
		r.g.Transfer(p, c)
		r.owner[p.ID.Ms] = c.Name
	}
}

func (r *groupRun) deleteConsumer(t *rapid.T) {
	c := r.consumer(t)
	r.g.DeleteConsumer(c)
	maps.DeleteFunc(r.owner, func(_ uint64, name string) bool { return name == c.Name })
	if r.g.Consumer([]byte(c.Name)) != nil {
		t.Fatalf("%s is still there", c.Name)
	}
}

func (r *groupRun) check(t *rapid.T) {
	requirePending(t, r.g.Pending(), slices.Sorted(maps.Keys(r.owner)))
	for name, c := range r.g.Consumers() {
		var own []uint64
		for ms, owner := range r.owner {
			if owner == name {
				own = append(own, ms)
			}
		}
		slices.Sort(own)
		requirePending(t, c.Pending(), own)
		for p := range c.Pending().From(StreamID{}) {
			if p.Consumer != c || r.g.Pending().Find(p.ID) != p {
				t.Fatalf("%v of %s is not the group's", p.ID, name)
			}
		}
	}
}

func requirePending(t fataler, l *PendingList, want []uint64) {
	t.Helper()
	var got []uint64
	for p := range l.From(StreamID{}) {
		got = append(got, p.ID.Ms)
	}
	if !slices.Equal(got, want) || l.Len() != len(want) {
		t.Fatalf("%d pending, Len() = %d, want %d", len(got), l.Len(), len(want))
	}
	if len(want) > 0 && (l.First().ID.Ms != want[0] || l.Last().ID.Ms != want[len(want)-1]) {
		t.Fatalf("pending from %v to %v", l.First().ID, l.Last().ID)
	}
	if len(want) == 0 && (l.First() != nil || l.Last() != nil) {
		t.Fatalf("something is pending in an empty list")
	}
	for i, b := range l.blocks {
		if len(b) == 0 || len(b) > pendingMax || i > 0 && len(b)+len(l.blocks[i-1]) <= pendingMax/2 {
			t.Fatalf("block %d of %d has %d", i, len(l.blocks), len(b))
		}
	}
}

func TestStreamGroupIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stream := NewStream()
		stream.CreateGroup([]byte("g"), StreamID{}, 0)
		r := &groupRun{g: stream.Group([]byte("g")), owner: map[uint64]string{}, names: []string{"a", "b", "c"}}
		t.Repeat(map[string]func(*rapid.T){
			"": r.check, "assign": r.assign, "ack": r.ack, "transfer": r.transfer, "deleteConsumer": r.deleteConsumer,
			"clone": func(*rapid.T) {
				old := r.g
				r.g = old.stream.Clone().Group([]byte("g"))
				for _, c := range old.Consumers() {
					old.DeleteConsumer(c)
				}
			},
		})
	})
}

func TestStreamEntryHasALimit(t *testing.T) {
	t.Parallel()
	half := make([]byte, MaxStreamEntryBytes/2)
	s := NewStream()
	if s.Append(StreamID{1, 0}, [][]byte{half, half, half, nil}) || s.Len() != 0 || s.ChunkCount() != 0 {
		t.Error("an entry above the limit was added")
	}
}
