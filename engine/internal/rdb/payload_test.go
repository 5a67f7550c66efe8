package rdb_test

import (
	"bytes"
	"maps"
	"math"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestPayloadsMoveBetweenRedisAndUs moves every sample both ways. Redis checks
// our payloads to the last byte.
func TestPayloadsMoveBetweenRedisAndUs(t *testing.T) {
	t.Parallel()
	conn := connect(t, difftest.Redis(t, "--sanitize-dump-payload", "yes"))
	all := samples()
	maps.Copy(all, huge())
	for name, value := range all {
		fill(t, conn, "theirs", value)
		want := digestValue(t, conn, "theirs")
		theirs := do(t, conn, "DUMP", "theirs").Text
		got, err := decode([]byte(theirs))
		if err != nil || !rdb.CheckPayload([]byte(theirs)) {
			t.Fatalf("%s: from Redis: %v", name, err)
		}
		if digestOf(got) != want {
			t.Errorf("%s: what Redis dumped is another value to us", name)
		}
		ours, err := rdb.AppendPayload(nil, value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		do(t, conn, "RESTORE", "ours", "0", string(ours))
		if digestValue(t, conn, "ours") != want {
			t.Errorf("%s: what we dumped is another value to Redis", name)
		}
		encoding := do(t, conn, "OBJECT", "ENCODING", "theirs").Text
		if restored := do(t, conn, "OBJECT", "ENCODING", "ours").Text; restored != encoding {
			t.Errorf("%s: %s in Redis, %s after our payload", name, encoding, restored)
		}
		if e, ok := got.(interface{ Encoding() string }); ok && e.Encoding() != encoding {
			t.Errorf("%s: %s in Redis, %s with us", name, encoding, e.Encoding())
		}
		do(t, conn, "DEL", "theirs", "ours")
	}
}

// TestPayloadsAreThoseOfRedis compares bytes, for values that Redis writes in one
// way only: in an order of its own, and not compressed.
func TestPayloadsAreThoseOfRedis(t *testing.T) {
	t.Parallel()
	conn := connect(t, difftest.Redis(t, "--rdbcompression", "no"))
	for _, text := range texts() {
		if len(text) <= 20 {
			checkBytes(t, conn, keyspace.NewString([]byte(text)))
		}
		if len(text) <= 8 {
			checkBytes(t, conn, list(text))
			checkBytes(t, conn, hash(text, "v"))
		}
	}
	checkBytes(t, conn, set("5", "-70000", "12"))
	checkBytes(t, conn, set("1"))
	checkBytes(t, conn, list(nodes()...))
	checkBytes(t, conn, zset([]float64{2, 1.5}, ""))
	for _, score := range []float64{0, math.Copysign(0, -1), 1, 1.5, 1e20, 1e17, -2.25, math.Inf(1), math.Inf(-1), 1 << 53, -1 << 62, 1 << 63} {
		checkBytes(t, conn, zset([]float64{score}, ""))
	}
}

// nodes are elements that fill several nodes of a list.
func nodes() (elements []string) {
	for i := range 30 {
		elements = append(elements, noise(1000+i))
	}
	return elements
}

func checkBytes(t *testing.T, conn *difftest.Conn, value any) {
	t.Helper()
	fill(t, conn, "key", value)
	want := do(t, conn, "DUMP", "key").Text
	if got, err := rdb.AppendPayload(nil, value); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	do(t, conn, "DEL", "key")
}

func TestPayloadIsAppended(t *testing.T) {
	t.Parallel()
	alone, err := rdb.AppendPayload(nil, list("a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	behind, err := rdb.AppendPayload([]byte("before"), list("a", "b"))
	if err != nil || string(behind) != "before"+string(alone) {
		t.Errorf("got %q, %v, want %q behind what was there", behind, err, alone)
	}
	if _, err := rdb.AppendPayload(nil, 17); err == nil {
		t.Error("17 is no value")
	}
}

func TestPayloadThatDidNotArriveWhole(t *testing.T) {
	t.Parallel()
	whole, err := rdb.AppendPayload(nil, hash("field", "value", "other", "17"))
	if err != nil || !rdb.CheckPayload(whole) {
		t.Fatalf("a payload is refused: %v", err)
	}
	for n := range whole {
		if rdb.CheckPayload(whole[:n]) {
			t.Errorf("accepted the first %d of %d bytes", n, len(whole))
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 4
		if rdb.CheckPayload(damaged) {
			t.Errorf("accepted a payload with byte %d damaged", n)
		}
	}
}

func TestDecodedStringIsTheCallers(t *testing.T) {
	t.Parallel()
	payload, err := rdb.AppendPayload(nil, keyspace.NewString([]byte("text")))
	if err != nil {
		t.Fatal(err)
	}
	value, err := decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	clear(payload)
	if got := string(value.(*keyspace.String).Text(nil)); got != "text" {
		t.Errorf("the value has changed with the payload: %q", got)
	}
}

// TestEmptyCollections: a keyspace must not hold one, and old versions of Redis
// have left some in files.
func TestEmptyCollections(t *testing.T) {
	t.Parallel()
	for _, empty := range []any{ds.NewDeque(), ds.NewSet(), ds.NewHash(), ds.NewSortedSet(), ds.NewLargeSortedSet()} {
		payload, err := rdb.AppendPayload(nil, empty)
		if err != nil {
			t.Fatal(err)
		}
		checkReason(t, payload, "a collection without elements")
		file := writeFile(t, []rdb.Record{rdb.Key{Name: []byte("k"), Value: empty, ExpireAtMs: 5}, rdb.Key{Name: []byte("l"), Value: list("a")}})
		records := readFile(t, file)
		if len(records) != 1 || string(records[0].(rdb.Key).Name) != "l" || records[0].(rdb.Key).ExpireAtMs != 0 {
			t.Errorf("%T: got %v, want the other key alone", empty, records)
		}
	}
}
