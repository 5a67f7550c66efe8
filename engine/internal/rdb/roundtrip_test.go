package rdb_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
)

// anyText is text as it is found in data: short, a number, long, repetitive.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(texts()),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")) }),
		rapid.Custom(func(t *rapid.T) string {
			word := rapid.StringN(0, 10, 20).Draw(t, "word")
			return string(bytes.Repeat([]byte(word), rapid.IntRange(0, 50).Draw(t, "times")))
		}),
	)
}

// anyValue is a value of any type but stream, never empty.
func anyValue(t *rapid.T) any {
	texts := rapid.SliceOfN(anyText(), 1, 40).Draw(t, "texts")
	switch rapid.IntRange(0, 5).Draw(t, "type") {
	case 0:
		return keyspace.NewString([]byte(texts[0]))
	case 1:
		return list(texts...)
	case 2:
		return set(texts...)
	case 3:
		s := ds.NewSet()
		for _, n := range rapid.SliceOfN(rapid.Int64(), 1, 600).Draw(t, "integers") {
			s.Add([]byte(strconv.FormatInt(n, 10)))
		}
		return s
	case 4:
		return hash(append(texts, texts...)[:len(texts)/2*2+2]...)
	default:
		z := ds.NewSortedSet()
		for _, member := range texts {
			z.Add(member, rapid.Float64().Draw(t, "score"))
		}
		return z
	}
}

func anyStream(t *rapid.T) *plainStream {
	id := ds.StreamID{}
	s := &plainStream{EntriesAdded: rapid.Int64Min(0).Draw(t, "added"), MaxDeletedID: anyID(t)}
	for range rapid.IntRange(0, 4).Draw(t, "chunks") {
		var chunk []plainEntry
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			if rapid.Bool().Draw(t, "same ms") {
				id.Seq += rapid.Uint64Range(1, 1<<40).Draw(t, "seq")
			} else {
				id = ds.StreamID{Ms: id.Ms + rapid.Uint64Range(1, 1<<60).Draw(t, "ms"), Seq: rapid.Uint64Range(0, 1<<63).Draw(t, "seq")}
			}
			entry := plainEntry{ID: id, Deleted: rapid.Bool().Draw(t, "deleted")}
			for _, field := range rapid.SliceOfN(rapid.SampledFrom([]string{"f", "g", "", "17"}), 1, 3).Draw(t, "fields") {
				entry.Pairs = append(entry.Pairs, field, anyText().Draw(t, "value"))
			}
			chunk = append(chunk, entry)
		}
		s.Chunks = append(s.Chunks, chunk)
	}
	s.LastID = id
	if rapid.Bool().Draw(t, "group") {
		s.Groups = []plainGroup{{
			Name: anyText().Draw(t, "name"), LastID: anyID(t), EntriesRead: rapid.Int64Min(-1).Draw(t, "read"),
			Pending: []plainPending{
				{ID: ds.StreamID{Ms: 1}, Consumer: "b", DeliveredMs: rapid.Int64().Draw(t, "delivered"), Deliveries: rapid.Int64().Draw(t, "deliveries")},
				{ID: ds.StreamID{Ms: 2, Seq: 1}, Consumer: "a"},
				{ID: ds.StreamID{Ms: 2, Seq: 2}, Consumer: "b"},
			},
			Consumers: []plainConsumer{{Name: "a", SeenMs: 1}, {Name: "b", SeenMs: 2}, {Name: "c"}},
		}}
	}
	return s
}

func anyID(t *rapid.T) ds.StreamID {
	return ds.StreamID{Ms: rapid.Uint64().Draw(t, "ms"), Seq: rapid.Uint64().Draw(t, "seq")}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var file bytes.Buffer
		w := rdb.NewWriter(&file)
		var want []rdb.Record
		for range rapid.IntRange(0, 5).Draw(t, "keys") {
			key := rdb.Key{
				DB: rapid.IntRange(0, 15).Draw(t, "db"), Name: []byte(anyText().Draw(t, "name")), Value: anyValue(t),
				ExpireAtMs: rapid.Int64().Draw(t, "expiry"), IdleSec: rapid.Uint64().Draw(t, "idle"), Freq: rapid.Uint8().Draw(t, "freq"),
			}
			want = append(want, key)
			if err := w.Write(key); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := readRecords(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, compareValues); diff != "" {
			t.Fatalf("-written +read:\n%s", diff)
		}
	})
}

func TestStreamThatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyStream(t)
		payload, err := rdb.AppendPayload(nil, want.build())
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plain(got.(*ds.Stream))); diff != "" {
			t.Fatalf("-written +read:\n%s", diff)
		}
	})
}

// FuzzPayload decodes anything. What means something must mean the same when it
// has been written again.
func FuzzPayload(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := decode(sealed(body))
		if err == nil {
			checkRewrite(t, value)
		}
	})
}

func checkRewrite(t *testing.T, value any) {
	t.Helper()
	payload, err := rdb.AppendPayload(nil, value)
	if err != nil {
		t.Fatal(err)
	}
	again, err := decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	if stream, ok := value.(*ds.Stream); ok {
		if diff := cmp.Diff(plain(stream), plain(again.(*ds.Stream))); diff != "" {
			t.Fatalf("-read +written again:\n%s", diff)
		}
	}
	if digestOf(value) != digestOf(again) {
		t.Fatal("not the same value when it is written again")
	}
}

// FuzzFile reads anything as a file.
func FuzzFile(f *testing.F) {
	for _, body := range bodies(f) {
		f.Add([]byte("REDIS0010\xfe\x01\xfb\x01\x00" + string(body[:1]) + "\x01k" + string(body[1:]) + "\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := rdb.NewReader(bytes.NewReader(file), &usual)
		for {
			record, err := r.Next()
			if err != nil {
				break
			}
			if key, ok := record.(rdb.Key); ok {
				checkRewrite(t, key.Value)
			}
		}
		if r.Offset() > int64(len(file)) {
			t.Fatalf("at byte %d of %d", r.Offset(), len(file))
		}
	})
}
