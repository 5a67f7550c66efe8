package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// keepIn opens an engine on a folder.
func keepIn(t *testing.T, dir string, settings ...string) *engine.Engine {
	t.Helper()
	config, err := engine.ReadConfig("", settings...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{Dir: dir, Config: config, Log: func(_ int, message string) { t.Log(message) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func keptDo(t *testing.T, e *engine.Engine, words ...string) string {
	t.Helper()
	reply, err := e.Do(t.Context(), words...)
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return reply.String()
}

// fill puts something of every type and encoding into a server.
func fill(t *testing.T, ask func(words ...string)) {
	t.Helper()
	ask("SET", "string", "value")
	ask("SET", "number", "12345")
	ask("SET", "expiring", "value", "EX", "1000000")
	ask("SETRANGE", "raw", "100", "end")
	ask("RPUSH", "list", "a", "b", "c", "17")
	ask("SADD", "intset", "1", "2", "3")
	ask("SADD", "set", "a", "b", "c")
	ask("HSET", "hash", "f", "v", "g", "w")
	ask("ZADD", "zset", "1", "a", "2.5", "b", "-inf", "c")
	ask("GEOADD", "places", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania")
	ask("GEOSEARCHSTORE", "near", "places", "FROMMEMBER", "Palermo", "BYRADIUS", "100", "km")
	for i := range 700 {
		n := fmt.Sprint(i)
		ask("RPUSH", "large list", strings.Repeat("e", i), n)
		ask("SADD", "large set", "m"+n)
		ask("SADD", "large intset", n)
		ask("HSET", "large hash", "f"+n, strings.Repeat("v", i))
		ask("ZADD", "large zset", n, "m"+n)
		ask("XADD", "large stream", n+"-1", "f", n)
		ask("PFADD", "dense", n, n+"a", n+"b", n+"c")
		ask("PFADD", "sparse", n)
	}
	ask("PFCOUNT", "dense")
	ask("PFMERGE", "merged", "sparse")
	ask("XADD", "stream", "1-1", "f", "v")
	ask("XGROUP", "CREATE", "stream", "group", "0")
	ask("XREADGROUP", "GROUP", "group", "consumer", "STREAMS", "stream", ">")
	ask("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('answer', function() return 42 end)")
	ask("SELECT", "5")
	ask("SET", "in another database", "v")
	ask("SELECT", "0")
}

// What the engine keeps is there after a restart, whichever file it is in.
func TestDataIsThereAfterARestart(t *testing.T) {
	for name, settings := range map[string][]string{
		"default":   nil,
		"always":    {"appendonly=yes", "appendfsync=always", "save="},
		"snapshot":  {"appendonly=no", "save=1 1000000"},
		"no fsync":  {"appendonly=yes", "appendfsync=no", "save="},
		"log alone": {"appendonly=yes", "save="},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			e := keepIn(t, dir, settings...)
			conn, err := difftest.Connect(e.Dial)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, func(words ...string) {
				if _, err := conn.Do(words...); err != nil {
					t.Fatal(err)
				}
			})
			for round, change := range [][]string{{"SET", "round", "1"}, {"BGREWRITEAOF"}, {"APPEND", "round", "2"}, {"BGSAVE"}, {"DEL", "round"}} {
				if name == "snapshot" && change[0] == "BGREWRITEAOF" {
					continue
				}
				keptDo(t, e, change...)
				digest := keptDo(t, e, "DEBUG", "DIGEST")
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = keepIn(t, dir, settings...)
				if got := keptDo(t, e, "DEBUG", "DIGEST"); got != digest {
					t.Fatalf("round %d: other data", round)
				}
				if got := keptDo(t, e, "FCALL", "answer", "0"); got != "42" {
					t.Fatalf("round %d: the function answers %s", round, got)
				}
			}
		})
	}
}

// A folder that Redis has written is loaded, and what the engine makes of it Redis loads.
func TestAFolderGoesBetweenRedisAndTheEngine(t *testing.T) {
	for name, settings := range map[string][]string{
		"append-only file": {"appendonly yes", "save "},
		"snapshot":         {"appendonly no", "save 1000000 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var flags, assigned []string
			for _, s := range settings {
				name, value, _ := strings.Cut(s, " ")
				flags = append(flags, "--"+name, value)
				assigned = append(assigned, name+"="+value)
			}
			want := ""
			for round := range 4 {
				if round%2 == 0 {
					redis := difftest.Redis(t, append(flags, "--dir", dir)...)
					conn, err := difftest.Connect(redis.Dial)
					if err != nil {
						t.Fatal(err)
					}
					ask := func(words ...string) string {
						reply, err := conn.Do(words...)
						if err != nil {
							t.Fatal(err)
						}
						return reply.Text
					}
					if round == 0 {
						fill(t, func(words ...string) { ask(words...) })
					} else if got := ask("DEBUG", "DIGEST"); got != want {
						t.Fatalf("Redis has other data than the engine had")
					}
					ask("INCR", "round")
					want = ask("DEBUG", "DIGEST")
					_, _ = conn.Do("SHUTDOWN")
					redis.Kill()
					continue
				}
				e := keepIn(t, dir, assigned...)
				if got := keptDo(t, e, "DEBUG", "DIGEST"); got != want {
					t.Fatalf("the engine has other data than Redis had")
				}
				keptDo(t, e, "INCR", "round")
				want = keptDo(t, e, "DEBUG", "DIGEST")
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Two engines cannot use one folder.
func TestASecondEngineIsRefused(t *testing.T) {
	dir := t.TempDir()
	keepIn(t, dir)
	_, err := engine.Open(engine.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "another engine uses this folder") || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second engine is told %v", err)
	}
}

// A damaged file is refused with its place, and nothing is changed.
func TestADamagedFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	e := keepIn(t, dir, "save=")
	keptDo(t, e, "SET", "a", "1")
	keptDo(t, e, "SET", "b", "1")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "appendonlydir", "appendonly.aof.1.incr.aof")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)/2] = 0
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = engine.Open(engine.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "byte") {
		t.Errorf("a damaged file is loaded: %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(damaged) {
		t.Error("the damaged file was changed")
	}
	// A torn one is cut off, and its whole requests are there.
	if err := os.WriteFile(path, whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	e = keepIn(t, dir, "save=")
	if got := keptDo(t, e, "KEYS", "*"); !strings.Contains(got, "a") || strings.Contains(got, "b") {
		t.Errorf("of a torn file there is %s", got)
	}
}

// Who comes while the data is loaded is told so, and served afterwards.
func TestClientsAreToldThatDataIsBeingLoaded(t *testing.T) {
	dir := t.TempDir()
	e := keepIn(t, dir)
	keptDo(t, e, "SET", "a", "1")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	begun := make(chan engine.LoadProgress, 1)
	e, err := engine.Open(engine.Options{Dir: dir, LoadInBackground: true, Loading: func(p engine.LoadProgress) {
		select {
		case begun <- p:
		default:
		}
		<-goOn
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if p := <-begun; p.TotalBytes == 0 || p.LoadedBytes > p.TotalBytes {
		t.Errorf("told %+v", p)
	}
	if _, err := e.Do(t.Context(), "GET", "a"); err == nil || !strings.HasPrefix(err.Error(), "LOADING ") {
		t.Errorf("meanwhile GET answers %v", err)
	}
	if info := keptDo(t, e, "INFO", "persistence"); !strings.Contains(info, "loading:1\r\n") {
		t.Errorf("meanwhile INFO says %s", info)
	}
	close(goOn)
	if err := e.Loaded(); err != nil {
		t.Fatal(err)
	}
	if got := keptDo(t, e, "GET", "a"); got != "1" {
		t.Errorf("then GET answers %s", got)
	}
}

// The time for a last snapshot is over before it began: with an append-only file nothing is
// lost, and without one it is said that something is.
func TestShutdownGivesUpItsSnapshotInTime(t *testing.T) {
	for _, log := range []string{"yes", "no"} {
		dir := t.TempDir()
		e := keepIn(t, dir, "appendonly="+log, "save=3600 1000000")
		keptDo(t, e, "SET", "a", "1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := e.Shutdown(ctx)
		if err != nil && (log == "yes" || !errors.Is(err, context.Canceled)) {
			t.Errorf("appendonly %s: Shutdown says %v", log, err)
		}
		e = keepIn(t, dir, "appendonly="+log)
		if got := keptDo(t, e, "EXISTS", "a"); err == nil && got != "1" {
			t.Errorf("appendonly %s: Shutdown says nothing, and EXISTS answers %s", log, got)
		}
	}
}
