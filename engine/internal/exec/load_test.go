package exec_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

const libraryText = "#!lua name=lib\nredis.register_function('answer', function() return 42 end)"

// redisOn starts a real Redis in a directory and connects to it.
func redisOn(t *testing.T, dir string) *difftest.Conn {
	t.Helper()
	conn, err := difftest.Connect(difftest.Redis(t, "--dir", dir).Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func askRedis(t *testing.T, conn *difftest.Conn, words ...string) string {
	t.Helper()
	reply, err := conn.Do(words...)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Text
}

// A snapshot taken under load is data to Redis, the same, and what Redis makes of it is
// the same to us.
func TestASnapshotTravelsToRedisAndBack(t *testing.T) {
	for seed := range uint64(3) {
		l := newLab(t, seed)
		l.do("FUNCTION", "LOAD", libraryText)
		l.live(seed, 1500, func() {})
		l.do("DISCARD")
		l.persist() // the lab's time is past for Redis
		l.do("CONFIG", "SET", "maxmemory", "0")
		large := []string{"RPUSH", "large:list"}
		for i := range 5000 {
			l.do("ZADD", "large:zset", strings.Repeat("1", i%7+1), "member"+strings.Repeat("x", i%50))
			l.do("HSET", "large:hash", strings.Repeat("f", i%300), strings.Repeat("v", i))
			large = append(large, strings.Repeat("e", i%200))
		}
		l.do(large...)
		want := strings.TrimSpace(l.do("DEBUG", "DIGEST"))[1:]
		sn, f := begin(t, l), newFile()
		l.live(seed+100, 300, func() { step(t, sn, 1000, 1) })
		file := f.finish(t, sn)

		dir := t.TempDir()
		path := filepath.Join(dir, "dump.rdb")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		conn := redisOn(t, dir)
		if got := askRedis(t, conn, "DEBUG", "DIGEST"); got != want {
			t.Errorf("seed %d: Redis has other data: %s, not %s", seed, got, want)
		}
		if got := askRedis(t, conn, "FCALL", "answer", "0"); got != "42" {
			t.Errorf("seed %d: Redis has not the function: %s", seed, got)
		}
		askRedis(t, conn, "SAVE")
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		again := loaded(t, file, labStartUs)
		if got := strings.TrimSpace(again.do("DEBUG", "DIGEST"))[1:]; got != want {
			t.Errorf("seed %d: back from Redis there is other data", seed)
		}
		if got := again.do("FCALL", "answer", "0"); got != ":42\r\n" {
			t.Errorf("seed %d: back from Redis the function is %q", seed, got)
		}
	}
}

// Until all is loaded nobody sees or changes any of it.
func TestWhileLoadingOnlyCommandsWithoutDataAreAnswered(t *testing.T) {
	l := newLab(t, 1)
	l.do("SET", "k", "v")
	file := newFile().finish(t, begin(t, l))
	l = newLab(t, 1)
	l.do("MULTI")
	l.do("GET", "k")
	loader := l.m.BeginLoad(bytes.NewReader(file), exec.LoadOptions{})
	batch, _ := loader.Read(nil)
	if err := loader.Store(l.nowUs, batch); err != nil {
		t.Fatal(err)
	}
	const refusal = "LOADING Redis is loading the dataset in memory\r\n"
	if got := l.do("EXEC"); got != "-EXECABORT Transaction discarded because of: "+refusal {
		t.Errorf("EXEC is answered %q", got)
	}
	for _, request := range []string{"GET k", "SET k w", "DBSIZE", "EVAL return(1) 0", "PING", "FLUSHALL", "DISCARD"} {
		got := l.do(strings.Fields(request)...)
		if refused := got == "-"+refusal; refused == (request == "DISCARD") {
			t.Errorf("%s is answered %q", request, got)
		}
	}
	for _, request := range []string{"INFO", "CONFIG GET maxmemory", "MULTI", "TIME", "CLIENT ID", "SUBSCRIBE c"} {
		if got := l.do(strings.Fields(request)...); strings.HasPrefix(got, "-") {
			t.Errorf("%s is answered %q", request, got)
		}
	}
	loader.End()
	l.s = l.m.ConnectLocal(l.nowUs)
	if got := l.do("GET", "k"); got != "$1\r\nv\r\n" || loader.Keys() != 1 {
		t.Errorf("after loading GET answers %q", got)
	}
}

// written is a file of the given records.
func written(t *testing.T, records ...rdb.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	w := rdb.NewWriter(&b)
	for _, record := range records {
		if err := w.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoadingFiles(t *testing.T) {
	const nowMs = labStartUs / 1000
	value := newValue("v")
	live, over := rdb.Key{DB: 3, Name: []byte("live"), Value: value, ExpireAtMs: nowMs + 5}, rdb.Key{Name: []byte("over"), Value: value, ExpireAtMs: nowMs - 1}
	for name, c := range map[string]struct {
		file    []byte
		options exec.LoadOptions
		keys    int
		err     string
	}{
		"empty":         {file: written(t)},
		"expired":       {file: written(t, over, live), keys: 1},
		"kept":          {file: written(t, over, live), keys: 2, options: exec.LoadOptions{KeepExpired: true}},
		"unknown aux":   {file: written(t, rdb.Aux{Name: "who-knows", Value: "what"}, live), keys: 1},
		"lying sizes":   {file: written(t, rdb.Size{Keys: 1 << 60, Expires: 1 << 62}, live), keys: 1},
		"twice":         {file: written(t, live, live), err: "twice"},
		"bad function":  {file: written(t, rdb.Function{Code: []byte("#!lua name=lib\nerror('no')")}), err: "cannot be loaded"},
		"library twice": {file: written(t, rdb.Function{Code: []byte(libraryText)}, rdb.Function{Code: []byte(libraryText)}), err: "already exists"},
		"module":        {file: []byte("REDIS0010\xf7\x81\x00\x00\x00\x00\x00\x00\x00\x00"), err: "module"},
		"cut off":       {file: written(t, live)[:30], err: "too early"},
	} {
		l := newLab(t, 0)
		loader := l.m.BeginLoad(bytes.NewReader(c.file), c.options)
		loader.End()
		err := l.load(bytes.NewReader(c.file), c.options)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		var inFile *rdb.Error
		if name == "module" && !errors.As(err, &inFile) {
			t.Errorf("%s: %v does not tell where", name, err)
		}
		keys := strings.Count(l.do("INFO", "keyspace"), "keys=1")
		if c.err == "" && keys != c.keys {
			t.Errorf("%s: %d keys, not %d", name, keys, c.keys)
		}
	}
}

// How often and how recently keys were used survives, if the policy needs it.
func TestASnapshotKeepsHowKeysAreUsed(t *testing.T) {
	for policy, want := range map[string]struct{ option, subcommand, reply string }{
		"allkeys-lfu":  {"FREQ", "FREQ", ":200\r\n"},
		"volatile-lfu": {"FREQ", "FREQ", ":0\r\n"},
		"allkeys-lru":  {"IDLETIME", "IDLETIME", ":200\r\n"},
		"noeviction":   {"IDLETIME", "IDLETIME", ":0\r\n"},
	} {
		used := "200"
		if policy == "volatile-lfu" {
			used = "0"
		}
		l := newLab(t, 0)
		l.do("CONFIG", "SET", "maxmemory-policy", policy)
		l.do("SET", "seed", "v")
		dump := l.do("DUMP", "seed")
		_, dump, _ = strings.Cut(strings.TrimSuffix(dump, "\r\n"), "\r\n")
		l.do("RESTORE", "k", "0", dump, want.option, used)
		file := newFile().finish(t, begin(t, l))
		l = newLab(t, 0)
		l.do("CONFIG", "SET", "maxmemory-policy", policy)
		if err := l.load(bytes.NewReader(file), exec.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := l.do("OBJECT", want.subcommand, "k"); got != want.reply {
			t.Errorf("%s: %q, not %q", policy, got, want.reply)
		}
	}
}
