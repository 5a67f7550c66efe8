package rdb_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

const fileName = "dump.rdb"

// serverOn starts a Redis on a directory, with the file in it if there is one.
func serverOn(t testing.TB, dir string, args ...string) *difftest.Server {
	t.Helper()
	return difftest.Redis(t, append([]string{"--dir", dir, "--dbfilename", fileName}, args...)...)
}

// serverLoading starts a Redis on a file.
func serverLoading(t testing.TB, file []byte, args ...string) *difftest.Conn {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return connect(t, serverOn(t, dir, args...))
}

// saved makes a Redis save what it holds and returns the file.
func saved(t testing.TB, conn *difftest.Conn, dir string) []byte {
	t.Helper()
	do(t, conn, "SAVE")
	file, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// readFile reads all records of a file.
func readFile(t testing.TB, file []byte) []rdb.Record {
	t.Helper()
	records, err := readRecords(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func readRecords(from io.Reader) (records []rdb.Record, err error) {
	r := rdb.NewReader(from, &usual)
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, err
		}
		records = append(records, record)
	}
}

// writeFile writes records as a file.
func writeFile(t testing.TB, records []rdb.Record) []byte {
	t.Helper()
	var file bytes.Buffer
	w := rdb.NewWriter(&file)
	for _, record := range records {
		if err := w.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// load puts the keys of a file into a keyspace.
func load(records []rdb.Record) *keyspace.Space {
	space := keyspace.NewSpace()
	for _, record := range records {
		if key, ok := record.(rdb.Key); ok {
			db := space.DB(key.DB)
			db.SetExpire(key.Name, db.Put(key.Name, key.Value, 0), key.ExpireAtMs)
		}
	}
	return space
}

// populate makes a Redis hold the samples, in several databases, some of them with
// an expiry, and a library of functions.
func populate(t testing.TB, conn *difftest.Conn) {
	t.Helper()
	for name, value := range samples() {
		fill(t, conn, name, value)
	}
	do(t, conn, "EXPIREAT", "list of one", "4102444800")
	do(t, conn, "PEXPIREAT", "zset of 129", "4102444800123")
	do(t, conn, "SELECT", "9")
	do(t, conn, "SET", noise(100), "in another database", "PXAT", "4102444800123")
	do(t, conn, "SELECT", "0")
	do(t, conn, "FUNCTION", "LOAD", "#!lua name=library\nredis.register_function('f', function() return 1 end)")
}

// TestFilesMoveBetweenRedisAndUs reads what Redis saved under all kinds of
// settings, and has Redis load what we write of that.
func TestFilesMoveBetweenRedisAndUs(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"default":      nil,
		"uncompressed": {"--rdbcompression", "no", "--rdbchecksum", "no"},
		"large": {
			"--hash-max-listpack-entries", "0", "--zset-max-listpack-entries", "0", "--set-max-intset-entries", "0",
			"--list-max-listpack-size", "1", "--list-compress-depth", "1", "--maxmemory-policy", "allkeys-lfu",
		},
		"packed": {
			"--hash-max-listpack-entries", "100000", "--hash-max-listpack-value", "100000",
			"--zset-max-listpack-entries", "100000", "--zset-max-listpack-value", "100000",
			"--set-max-intset-entries", "100000", "--list-max-listpack-size", "-5", "--maxmemory-policy", "allkeys-lru",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			conn := connect(t, serverOn(t, dir, settings...))
			populate(t, conn)
			digest := do(t, conn, "DEBUG", "DIGEST").Text
			records := readFile(t, saved(t, conn, dir))
			if got := command.Digest(load(records), 0); got != digest {
				t.Errorf("what Redis saved is other data to us")
			}
			again := serverLoading(t, writeFile(t, records))
			if got := do(t, again, "DEBUG", "DIGEST").Text; got != digest {
				t.Errorf("what we saved is other data to Redis")
			}
			functions := do(t, conn, "FUNCTION", "LIST", "WITHCODE").String()
			if diff := cmp.Diff(functions, do(t, again, "FUNCTION", "LIST", "WITHCODE").String()); diff != "" {
				t.Errorf("functions (-redis +loaded):\n%s", diff)
			}
		})
	}
}

func TestFileWithStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conn := connect(t, serverOn(t, dir))
	fillStreams(t, conn)
	again := serverLoading(t, writeFile(t, readFile(t, saved(t, conn, dir))))
	for _, key := range streamKeys {
		if diff := cmp.Diff(tellStream(t, conn, key), tellStream(t, again, key)); diff != "" {
			t.Errorf("%s (-redis +loaded):\n%s", key, diff)
		}
	}
}

// TestFileTellsOfKeys checks what a file says besides values.
func TestFileTellsOfKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conn := connect(t, serverOn(t, dir, "--maxmemory-policy", "allkeys-lfu"))
	do(t, conn, "SET", "seed", "v")
	payload := do(t, conn, "DUMP", "seed").Text
	do(t, conn, "RESTORE", "used", "0", payload, "FREQ", "200")
	checkKey(t, saved(t, conn, dir), rdb.Key{Name: []byte("used"), Freq: 200, HasFreq: true})
	do(t, conn, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	do(t, conn, "RESTORE", "idle", "0", payload, "IDLETIME", "1000")
	checkKey(t, saved(t, conn, dir), rdb.Key{Name: []byte("idle"), IdleSec: 1000})
	do(t, conn, "SELECT", "15")
	do(t, conn, "SET", "brief", "v", "PXAT", "4102444800123")
	file := saved(t, conn, dir)
	checkKey(t, file, rdb.Key{DB: 15, Name: []byte("brief"), ExpireAtMs: 4_102_444_800_123})
	records := readFile(t, file)
	if size := (rdb.Size{DB: 15, Keys: 1, Expires: 1}); !has(records, size) {
		t.Errorf("%v is not in the file", size)
	}
	if aux := (rdb.Aux{Name: "redis-ver", Value: "7.0.15"}); !has(records, aux) {
		t.Errorf("%v is not in the file", aux)
	}
	if diff := cmp.Diff(records, readFile(t, writeFile(t, records)), compareValues); diff != "" {
		t.Errorf("what was read and written again is something else:\n%s", diff)
	}
}

var compareValues = cmp.Transformer("digest", func(k rdb.Key) any {
	digest := digestOf(k.Value)
	k.Value = nil
	return struct {
		Key    string
		DB     int
		Expire int64
		Idle   uint64
		Freq   uint8
		Digest string
	}{string(k.Name), k.DB, k.ExpireAtMs, k.IdleSec, k.Freq, digest}
})

func checkKey(t *testing.T, file []byte, want rdb.Key) {
	t.Helper()
	for _, record := range readFile(t, file) {
		key, ok := record.(rdb.Key)
		if !ok || string(key.Name) != string(want.Name) {
			continue
		}
		key.Value = nil
		if diff := cmp.Diff(want, key); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		return
	}
	t.Errorf("%s is not in the file", want.Name)
}

func has(records []rdb.Record, want rdb.Record) bool {
	for _, record := range records {
		if _, isKey := record.(rdb.Key); !isKey && cmp.Equal(record, want) {
			return true
		}
	}
	return false
}

// TestFileGoesOn reads what stands behind a file, as in an append-only file.
func TestFileGoesOn(t *testing.T) {
	t.Parallel()
	file := writeFile(t, []rdb.Record{rdb.Key{Name: []byte("k"), Value: list("a")}})
	rest := "*1\r\n$4\r\nPING\r\n" + noise(200_000)
	r := rdb.NewReader(io.MultiReader(bytes.NewReader(file), bytes.NewReader([]byte(rest))), &usual)
	for {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if r.Offset() != int64(len(file)) {
		t.Errorf("the file ends at %d, not at %d", len(file), r.Offset())
	}
	if got, err := io.ReadAll(r.Rest()); err != nil || string(got) != rest {
		t.Errorf("%d bytes behind the file, %v, want %d", len(got), err, len(rest))
	}
}
