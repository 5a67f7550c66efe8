package rdb_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// smallRecords are records of every kind, with values in every encoding that we
// write.
func smallRecords() []rdb.Record {
	records := []rdb.Record{rdb.Aux{Name: "redis-ver", Value: "7.0.15"}, rdb.Function{Code: []byte("#!lua name=l\n")}, rdb.Size{DB: 3, Keys: 9, Expires: 1}}
	for i, value := range smallValues() {
		records = append(records, rdb.Key{DB: 3, Name: []byte{'k', byte('a' + i)}, Value: value, ExpireAtMs: int64(i) * 1000, IdleSec: uint64(i), Freq: uint8(i)})
	}
	return records
}

func smallValues() []any {
	large := ds.NewLargeSortedSet()
	large.Add("a", 1.5)
	large.Add("b", -2)
	return []any{
		keyspace.NewString([]byte("text")),
		keyspace.NewString([]byte("-70000")),
		keyspace.NewString([]byte(strings.Repeat("compress ", 10))),
		list("a", "17", "", noise(70), strings.Repeat("run", 30)),
		set("1", "-5", "70000"), set("a", "b", "5"),
		hash("f", "v", "17", "-70000"), hash("f", noise(65)),
		zset([]float64{1, 1.5, -3}, "m"), large,
		(&plainStream{
			Chunks: [][]plainEntry{
				{
					{ID: ds.StreamID{Ms: 1}, Pairs: []string{"f", "v"}},
					{ID: ds.StreamID{Ms: 1, Seq: 1}, Pairs: []string{"f", "w"}},
					{ID: ds.StreamID{Ms: 1, Seq: 2}, Pairs: []string{"h", "x"}, Deleted: true},
				},
				{{ID: ds.StreamID{Ms: 2}, Pairs: []string{"g", "17"}}},
			},
			LastID: ds.StreamID{Ms: 2}, EntriesAdded: 4, MaxDeletedID: ds.StreamID{Ms: 1, Seq: 2},
			Groups: []plainGroup{{
				Name: "group", LastID: ds.StreamID{Ms: 1}, EntriesRead: 1,
				Pending:   []plainPending{{ID: ds.StreamID{Ms: 1}, Consumer: "c", DeliveredMs: 5, Deliveries: 1}},
				Consumers: []plainConsumer{{Name: "c", SeenMs: 5}},
			}},
		}).build(),
	}
}

func TestFileThatEndsTooEarly(t *testing.T) {
	t.Parallel()
	file := writeFile(t, smallRecords())
	for n := range file {
		_, err := readRecords(bytes.NewReader(file[:n]))
		var place *rdb.Error
		if !errors.As(err, &place) || !errors.Is(err, io.ErrUnexpectedEOF) || place.Offset != int64(n) {
			t.Errorf("the first %d of %d bytes: %v", n, len(file), err)
		}
	}
}

func TestFileThatIsDamaged(t *testing.T) {
	t.Parallel()
	file := writeFile(t, smallRecords())
	for n := range file {
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(file)
			damaged[n] ^= flip
			if _, err := readRecords(bytes.NewReader(damaged)); err == nil {
				t.Errorf("byte %d of %d changed by %#x, and nobody noticed", n, len(file), flip)
			}
		}
	}
}

func TestFileArrivesInPieces(t *testing.T) {
	t.Parallel()
	file := writeFile(t, append(smallRecords(), rdb.Key{Name: []byte("large"), Value: keyspace.NewString([]byte(noise(300_000)))}))
	want := writeFile(t, readFile(t, file))
	for name, from := range map[string]io.Reader{
		"bytes": iotest.OneByteReader(bytes.NewReader(file)), "halves": iotest.HalfReader(bytes.NewReader(file)),
		"end with data": iotest.DataErrReader(bytes.NewReader(file)),
	} {
		records, err := readRecords(from)
		if err != nil || !bytes.Equal(writeFile(t, records), want) {
			t.Errorf("%s: other records, or %v", name, err)
		}
	}
}

func TestReaderAndWriterThatFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	file := writeFile(t, smallRecords())
	_, err := readRecords(io.MultiReader(bytes.NewReader(file[:100]), iotest.ErrReader(broken)))
	var place *rdb.Error
	if !errors.Is(err, broken) || !errors.As(err, &place) || place.Offset != 100 {
		t.Errorf("reading: %v", err)
	}
	if _, err := readRecords(idle{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reading nothing: %v", err)
	}
	w := rdb.NewWriter(failing{broken})
	if err := w.Write(rdb.Key{Name: []byte("k"), Value: keyspace.NewString([]byte(noise(1 << 20)))}); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
	if err := w.Close(); !errors.Is(err, broken) {
		t.Errorf("closing: %v", err)
	}
	w = rdb.NewWriter(io.Discard)
	if err := w.Write(rdb.Key{Name: []byte("k"), Value: 17}); err == nil {
		t.Error("17 is no value")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// TestLengthsThatLie announces what never comes. What a decoder allocates has to
// follow what came. The test is not parallel: it counts what the process allocates.
func TestLengthsThatLie(t *testing.T) { //nolint:paralleltest // see above
	const most = "\x81\x00\xff\xff\xff\xff\xff\xff\xff" // 2^56
	const gigabyte = "\x80\x40\x00\x00\x00"
	bombs := []string{
		"\x00" + most, "\x00" + gigabyte, "\x00\xc3" + gigabyte + gigabyte, "\x00\xc3\x05" + gigabyte + "\x00a\xe0\xff\x00",
		"\x01" + most, "\x02" + most, "\x03" + most, "\x04" + most, "\x05" + most, "\x0e" + most, "\x12" + most, "\x13" + most,
		"\x0b" + str(le32(8)+"\xff\xff\xff\x1f"), "\x10" + str("\xff\xff\xff\x3f\xff\xff\xff"),
		"\x12\x01\x02" + str("\x0d\x00\x00\x00\x01\x00\xf0\xff\xff\xff\x7f\x05\xff"),
	}
	for _, bomb := range bombs {
		checkCheap(t, bomb, func() error { _, err := decode([]byte(bomb + strings.Repeat("x", 10))); return err })
		checkCheap(t, bomb, func() error {
			_, err := readRecords(strings.NewReader("REDIS0010" + bomb[:1] + "\x01k" + bomb[1:]))
			return err
		})
	}
}

func checkCheap(t *testing.T, bomb string, decode func() error) {
	t.Helper()
	const mostBytes = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := decode()
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Errorf("%q was accepted", bomb)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > mostBytes {
		t.Errorf("%q: %d bytes were allocated for %d", bomb, allocated, len(bomb))
	}
}

// sealed is a payload of a type and a value, with a checksum that is right.
func sealed(body []byte) []byte {
	payload := append(bytes.Clone(body), 10, 0)
	return binary.LittleEndian.AppendUint64(payload, rdb.Checksum(payload))
}

// stricter are the reasons for which we refuse what Redis accepts even when it
// checks deeply: it takes a score up to the first character that is none of it,
// reads on into the checksum if the value does not end before, and takes the
// encoding of a string for a small length and anything for the compression of
// nothing, and does not look behind the end of a zipmap. Of streams it checks less
// altogether.
var stricter = []string{
	"a score is no number", "the input ends too early", "a string where there should be a length",
	"a compressed string is damaged", "an entry of a zipmap is damaged",
}

// TestDamagedPayloadsAreRefusedAsByRedis damages payloads in thousands of ways and
// gives them a right checksum. Redis, asked to check deeply, says which of them
// still mean something, and what.
func TestDamagedPayloadsAreRefusedAsByRedis(t *testing.T) {
	t.Parallel()
	conn := connect(t, difftest.Redis(t, "--sanitize-dump-payload", "yes"))
	r := rand.New(rand.NewPCG(5, 6))
	all := bodies(t)
	accepted, refused := 0, 0
	for range 10_000 {
		payload := damaged(r, all)
		if askedTooMuch(payload) {
			continue
		}
		got, err := decode(payload)
		reply, doErr := conn.Do("RESTORE", "k", "0", string(payload), "REPLACE")
		if doErr != nil {
			t.Fatalf("Redis is gone: %v after %q", doErr, payload)
		}
		isStream := payload[0] == 0x13
		var place *rdb.Error
		switch theyRefuse := reply.Kind == difftest.Error; {
		case theyRefuse && err == nil:
			t.Errorf("%q: Redis says %s, we accept", payload, reply.Text)
		case theyRefuse:
			refused++
		case err == nil && !isStream && digestOf(got) != digestValue(t, conn, "k"):
			t.Errorf("%q: not the same value", payload)
		case err == nil:
			accepted++
		case !isStream && (!errors.As(err, &place) || !slices.Contains(stricter, place.Reason)):
			t.Errorf("%q: Redis accepts, we say %v", payload, err)
		}
	}
	if accepted < 500 || refused < 500 {
		t.Errorf("%d payloads accepted, %d refused: the damage is not well chosen", accepted, refused)
	}
}

// askedTooMuch reports whether Redis 7.0 cannot be asked about a payload: it does
// not know the types of 7.2, and makes room for as many members as a set, hash or
// sorted set announces, which can take it minutes.
func askedTooMuch(payload []byte) bool {
	valueType, count := payload[0], payload[1]
	return valueType == 20 || valueType == 21 || valueType <= 5 && count >= 0x80
}

// damaged is a payload, in any encoding there has been, with one or two wrong bytes.
func damaged(r *rand.Rand, bodies [][]byte) []byte {
	body := bytes.Clone(bodies[r.IntN(len(bodies))])
	for range 1 + r.IntN(2) {
		body[r.IntN(len(body))] = byte(r.Uint32())
	}
	return sealed(body)
}

// bodies are payloads, without what stands behind the value, of every encoding.
func bodies(t testing.TB) (bodies [][]byte) {
	t.Helper()
	for _, value := range smallValues() {
		payload, err := rdb.AppendPayload(nil, value)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, payload[:len(payload)-10])
	}
	old := oldValues()
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if len(old[key]) < 2000 {
			bodies = append(bodies, []byte(old[key]))
		}
	}
	short := zipEntries[4:] // all but the long strings
	bodies = append(bodies,
		[]byte("\x0a"+str(ziplist(zipEntries[:3]...))), []byte("\x0a"+str(ziplist(short...))), []byte("\x0e\x01"+str(ziplist(short...))),
		[]byte("\x0d"+str(ziplist(zipPairs()[8:]...))), []byte("\x0c"+str(ziplist(zipPairs()[8:]...))))
	return bodies
}
