package rdb_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

var streamKeys = []string{"small", "large", "empty", "trimmed"}

// fillStreams makes a server hold the streams of streamKeys: with gaps, several
// nodes, different fields, groups, consumers, and entries that are pending though
// they are gone.
func fillStreams(t testing.TB, conn *difftest.Conn) {
	t.Helper()
	do(t, conn, "XADD", "small", "5-1", "field", "value", "number", "17")
	do(t, conn, "XADD", "small", "5-2", "field", noise(5000), "number", "-4000000000")
	do(t, conn, "XADD", "small", "18446744073709551615-18446744073709551615", "other", "")
	for i := range 300 {
		id := strconv.Itoa(1000+i/7) + "-" + strconv.Itoa(i%7)
		if i == 0 {
			id = "1000-1"
		}
		if i != 1 {
			do(t, conn, "XADD", "large", id, "f"+strconv.Itoa(i/100), "v"+strconv.Itoa(i), "g", strconv.Itoa(i*i*i))
		}
	}
	do(t, conn, "XDEL", "large", "1000-1", "1003-2", "1003-3", "1042-5")
	do(t, conn, "XGROUP", "CREATE", "large", "all", "0")
	do(t, conn, "XGROUP", "CREATE", "large", "late", "1030-3")
	do(t, conn, "XGROUP", "CREATE", "large", "beyond", "$", "ENTRIESREAD", "7")
	do(t, conn, "XGROUP", "CREATECONSUMER", "large", "beyond", "idler")
	for i := range 10 {
		do(t, conn, "XREADGROUP", "GROUP", "all", "consumer-"+strconv.Itoa(i%3), "COUNT", "8", "STREAMS", "large", ">")
	}
	do(t, conn, "XREADGROUP", "GROUP", "late", "one", "STREAMS", "large", ">")
	do(t, conn, "XACK", "large", "all", "1000-2", "1001-1", "1001-2")
	do(t, conn, "XCLAIM", "large", "all", "thief", "0", "1001-3", "1001-4", "RETRYCOUNT", "9", "TIME", "1500000000000")
	do(t, conn, "XDEL", "large", "1001-3", "1001-5")
	do(t, conn, "XADD", "empty", "9-9", "f", "v")
	do(t, conn, "XGROUP", "CREATE", "empty", "group", "0")
	do(t, conn, "XDEL", "empty", "9-9")
	for i := range 50 {
		do(t, conn, "XADD", "trimmed", strconv.Itoa(i+1)+"-0", "f", "v")
	}
	do(t, conn, "XGROUP", "CREATE", "trimmed", "group", "20-0")
	do(t, conn, "XTRIM", "trimmed", "MAXLEN", "17")
}

// TestStreamsMoveBetweenRedisAndUs makes streams on Redis, takes them apart and
// puts them together again. Redis has to find the same streams, to the last
// counter.
func TestStreamsMoveBetweenRedisAndUs(t *testing.T) {
	t.Parallel()
	conn := connect(t, difftest.Redis(t, "--sanitize-dump-payload", "yes", "--stream-node-max-entries", "5"))
	fillStreams(t, conn)
	for _, key := range streamKeys {
		value, err := decode([]byte(do(t, conn, "DUMP", key).Text))
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		payload, err := rdb.AppendPayload(nil, value)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		do(t, conn, "RESTORE", "copy", "0", string(payload), "REPLACE")
		if got, want := digestValue(t, conn, "copy"), digestValue(t, conn, key); got != want {
			t.Errorf("%s: digest %s, want %s", key, got, want)
		}
		if diff := cmp.Diff(tellStream(t, conn, key), tellStream(t, conn, "copy")); diff != "" {
			t.Errorf("%s (-redis +copy):\n%s", key, diff)
		}
	}
}

// tellStream is all that Redis tells of a stream.
func tellStream(t testing.TB, conn *difftest.Conn, key string) []string {
	t.Helper()
	stream := do(t, conn, "XINFO", "STREAM", key, "FULL", "COUNT", "0")
	told := []string{do(t, conn, "XINFO", "GROUPS", key).String()}
	for i := 0; i < len(stream.Elems); i += 2 {
		told = append(told, stream.Elems[i].Text+": "+stream.Elems[i+1].String())
	}
	return told
}

func TestStreamIsDecodedWhole(t *testing.T) {
	t.Parallel()
	conn := connect(t, difftest.Redis(t))
	do(t, conn, "XADD", "s", "1-1", "f", "a", "g", "2")
	do(t, conn, "XADD", "s", "1-2", "f", "b", "g", "-3")
	do(t, conn, "XADD", "s", "2-0", "h", "c")
	do(t, conn, "XGROUP", "CREATE", "s", "group", "0")
	do(t, conn, "XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "s", ">")
	do(t, conn, "XCLAIM", "s", "group", "consumer", "0", "1-1", "TIME", "1500000000000", "RETRYCOUNT", "4")
	do(t, conn, "XDEL", "s", "1-2")
	value, err := decode([]byte(do(t, conn, "DUMP", "s").Text))
	if err != nil {
		t.Fatal(err)
	}
	got := plain(value.(*ds.Stream))
	seenMs := got.Groups[0].Consumers[0].SeenMs
	want := &plainStream{
		Chunks: [][]plainEntry{{
			{ID: ds.StreamID{Ms: 1, Seq: 1}, Pairs: []string{"f", "a", "g", "2"}},
			{ID: ds.StreamID{Ms: 1, Seq: 2}, Pairs: []string{"f", "b", "g", "-3"}, Deleted: true},
			{ID: ds.StreamID{Ms: 2}, Pairs: []string{"h", "c"}},
		}},
		LastID: ds.StreamID{Ms: 2}, MaxDeletedID: ds.StreamID{Ms: 1, Seq: 2}, EntriesAdded: 3,
		Groups: []plainGroup{{
			Name: "group", LastID: ds.StreamID{Ms: 1, Seq: 1}, EntriesRead: 1,
			Pending:   []plainPending{{ID: ds.StreamID{Ms: 1, Seq: 1}, Consumer: "consumer", DeliveredMs: 1_500_000_000_000, Deliveries: 4}},
			Consumers: []plainConsumer{{Name: "consumer", SeenMs: seenMs}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if seenMs < 1_500_000_000_000 {
		t.Errorf("the consumer was seen at %d", seenMs)
	}
}

// TestStreamThatContradictsItself: an engine that trusts a stream's order and its
// counters must not be given one where they are wrong.
func TestStreamThatContradictsItself(t *testing.T) {
	t.Parallel()
	entry := func(ms uint64) plainEntry {
		return plainEntry{ID: ds.StreamID{Ms: ms}, Pairs: []string{"f", "v"}}
	}
	chunks := func(last uint64, chunks ...[]plainEntry) *plainStream {
		return &plainStream{Chunks: chunks, LastID: ds.StreamID{Ms: last}}
	}
	checkReason(t, payloadOf(t, chunks(3, []plainEntry{entry(1), entry(3), entry(2)})), "a stream is not in order")
	checkReason(t, payloadOf(t, chunks(3, []plainEntry{entry(1), entry(3)}, []plainEntry{entry(2)})), "a stream is not in order")
	checkReason(t, payloadOf(t, chunks(1, []plainEntry{entry(2)})), "a stream has entries behind its last ID")
	checkReason(t, payloadOf(t, chunks(2, []plainEntry{{ID: ds.StreamID{Ms: 2}}})), "an entry of a stream has no fields")
	payload := payloadOf(t, chunks(0))
	payload[2] = 5 // the length
	checkReason(t, payload, "a stream does not have as many entries as it says")
}

// TestGroupThatContradictsItself changes a payload where it says something twice.
func TestGroupThatContradictsItself(t *testing.T) {
	t.Parallel()
	payload := payloadOf(t, &plainStream{Groups: []plainGroup{
		{Name: "group 1"},
		{
			Name:      "group 2",
			Pending:   []plainPending{{ID: ds.StreamID{Ms: 'A'}, Consumer: "consumer 1"}, {ID: ds.StreamID{Ms: 'B'}, Consumer: "consumer 2"}},
			Consumers: []plainConsumer{{Name: "consumer 1"}, {Name: "consumer 2"}},
		},
	}})
	for want, change := range map[string][2]string{
		"a stream has two groups of the same name":               {"group 2", "group 1"},
		"a group of a stream has two consumers of the same name": {"consumer 2", "consumer 1"},
		"a group of a stream has an entry pending twice":         {"B", "A"},
	} {
		checkReason(t, bytes.ReplaceAll(payload, []byte(change[0]), []byte(change[1])), want)
	}
	const footer = 10
	end := len(payload) - footer
	last := payload[end-16 : end] // the ID that is pending for the last consumer
	nobody := append(bytes.Clone(payload[:end-17]), 0)
	checkReason(t, append(nobody, payload[end:]...), "an entry is pending for no consumer")
	last[7] = 'C'
	checkReason(t, payload, "an entry is pending for two consumers, or for a consumer and not for its group")
}

func payloadOf(t *testing.T, s *plainStream) []byte {
	t.Helper()
	payload, err := rdb.AppendPayload(nil, s.build())
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

func checkReason(t *testing.T, payload []byte, want string) {
	t.Helper()
	_, err := decode(payload)
	var got *rdb.Error
	if !errors.As(err, &got) || got.Reason != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
