package engine_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// configured opens an engine with a configuration and returns how to connect.
func configured(t *testing.T, path string, settings ...string) (*engine.Config, difftest.Dial) {
	t.Helper()
	config, err := engine.ReadConfig(path, settings...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return config, e.Dial
}

func connect(t *testing.T, dial difftest.Dial) *difftest.Conn {
	t.Helper()
	conn, err := difftest.Connect(dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func do(t *testing.T, conn *difftest.Conn, words ...string) difftest.Value {
	t.Helper()
	reply, err := conn.Do(words...)
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return reply
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// here is what a parameter is here by default, where that is not what Redis
// says: what belongs to the machine, to the test's own server, or to data on
// disk.
var here = []string{"port", "bind", "dir", "save", "enable-debug-command", "appendonly", "io-threads"}

// TestParametersHaveRedisDefaults compares all of CONFIG GET with Redis.
func TestParametersHaveRedisDefaults(t *testing.T) {
	t.Parallel()
	defaults := func(dial difftest.Dial) map[string]string {
		reply := do(t, connect(t, dial), "CONFIG", "GET", "*")
		values := map[string]string{}
		for i := 0; i+1 < len(reply.Elems); i += 2 {
			if name := reply.Elems[i].Text; !slices.Contains(here, name) {
				values[name] = reply.Elems[i+1].Text
			}
		}
		return values
	}
	if diff := cmp.Diff(defaults(difftest.Redis(t).Dial), defaults(dial(t))); diff != "" {
		t.Errorf("CONFIG GET * (-redis +engine):\n%s", diff)
	}
}

// TestDebiansRedisConfLoads takes a real redis.conf as it is.
func TestDebiansRedisConfLoads(t *testing.T) {
	t.Parallel()
	config, dial := configured(t, "testdata/redis.conf", "timeout=9")
	ignored := config.Ignored()
	for _, name := range []string{"daemonize", "pidfile", "logfile", "oom-score-adj-values", "rdbcompression"} {
		if !slices.Contains(ignored, name) {
			t.Errorf("%s is not listed as ignored", name)
		}
	}
	for _, name := range []string{"timeout", "tcp-keepalive", "client-output-buffer-limit", "acllog-max-len"} {
		if slices.Contains(ignored, name) {
			t.Errorf("%s is listed as ignored", name)
		}
	}
	conn := connect(t, dial)
	for name, want := range map[string]string{
		"timeout": "9", "tcp-keepalive": "300", "maxmemory": "0", "daemonize": "no",
		"client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
	} {
		if got := do(t, conn, "CONFIG", "GET", name).Elems[1].Text; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestConfigurationFileIsReadAsRedisDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "more-1.conf"), "MAXMEMORY 3mb\n")
	main := filepath.Join(dir, "main.conf")
	write(t, main, "# A comment\n\n  maxmemory 1gb\nrequirepass \"with space \\x41 \\\"\"\n"+
		"include "+dir+"/more-*.conf\nslave-lazy-flush yes\nclient-output-buffer-limit normal 1 2 3\n"+
		"user bob on >pw ~a:* +@all (~b:* +get)\nlua-replicate-commands yes\n")
	config, dial := configured(t, main, "hash-max-ziplist-entries=7", "latency-tracking-info-percentiles=1 2")
	if diff := cmp.Diff([]string{"replica-lazy-flush"}, config.Ignored()); diff != "" {
		t.Error(diff)
	}
	conn := connect(t, dial)
	if got := do(t, conn, "AUTH", `with space A "`).Text; got != "OK" {
		t.Fatal(got)
	}
	for name, want := range map[string]string{
		"maxmemory": "3145728", "hash-max-listpack-entries": "7", "latency-tracking-info-percentiles": "1 2",
		"client-output-buffer-limit": "normal 1 2 3 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
	} {
		if got := do(t, conn, "CONFIG", "GET", name).Elems[1].Text; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for user, want := range map[string]string{"a:1": "OK", "c": "This user has no permissions to access the 'c' key"} {
		if got := do(t, conn, "ACL", "DRYRUN", "bob", "GET", user).Text; got != want {
			t.Errorf("bob and %s: %q", user, got)
		}
	}
}

func TestWrongConfigurationIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"bogus 1":                             "x.conf:2: bogus 1: Bad directive or wrong number of arguments",
		"maxmemory abc":                       "x.conf:2: maxmemory abc: argument must be a memory value",
		"maxmemory 1 2":                       "x.conf:2: maxmemory 1 2: wrong number of arguments",
		"maxmemory":                           "x.conf:2: maxmemory: wrong number of arguments",
		"timeout \"1":                         "x.conf:2: timeout \"1: Unbalanced quotes in configuration line",
		"appendonly perhaps":                  "x.conf:2: appendonly perhaps: argument must be 'yes' or 'no'",
		"replicaof 127.0.0.1":                 "x.conf:2: replicaof 127.0.0.1: wrong number of arguments",
		"replicaof 127.0.0.1 x":               "x.conf:2: replicaof 127.0.0.1 x: Invalid master port",
		"databases 17":                        "x.conf:2: databases 17: argument must be between 16 and 16 inclusive",
		"rename-command FLUSHALL \"\"":        "commands cannot be renamed here",
		"loadmodule x.so":                     "there are no modules here",
		"include nowhere.conf":                "no such file",
		"include x.conf":                      "the files include each other too deeply",
		"requirepass secret other":            "x.conf:2: requirepass: wrong number of arguments",
		"tls-key-file-pass geheim":            "x.conf:2: tls-key-file-pass: this engine cannot do that",
		"client-output-buffer-limit normal 1": "Wrong number of arguments in buffer limit configuration.",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.conf")
		text = strings.ReplaceAll(text, "x.conf", path)
		write(t, path, "# first\n"+text+"\n")
		_, err := engine.ReadConfig(path)
		if err == nil {
			t.Errorf("%s: read", text)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), dir+"/", ""); !strings.Contains(got, strings.ReplaceAll(want, dir+"/", "")) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	if _, err := engine.ReadConfig("", "timeout"); err == nil || !strings.Contains(err.Error(), "name=value") {
		t.Errorf("a setting without a value: %v", err)
	}
	if _, err := engine.ReadConfig("", "timeout=x"); err == nil || !strings.HasPrefix(err.Error(), "timeout: ") {
		t.Errorf("a wrong setting: %v", err)
	}
	if _, err := engine.ReadConfig("nowhere.conf"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}

func TestWrongUsersAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"user bob +nope":           "Error in user declaration '+nope': Unknown command or category name in ACL",
		"user bob on\nuser bob on": "Error in user declaration 'bob': Duplicate user found",
		"user bob (+get":           "Error in user declaration '(+get': ",
		"aclfile nowhere.acl":      "Error loading ACLs, opening file 'nowhere.acl': No such file or directory",
		"aclfile x\nuser bob on":   "users are defined both in the configuration and in the ACL file",
	} {
		path := filepath.Join(t.TempDir(), "x.conf")
		write(t, path, text+"\n")
		config, err := engine.ReadConfig(path)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if e, err := engine.Open(engine.Options{Config: config}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
			if err == nil {
				e.Close()
			}
		}
	}
}

// TestConfigRewriteKeepsTheFile changes parameters of a Redis and of the engine
// alike and compares what CONFIG REWRITE makes of the same file.
func TestConfigRewriteKeepsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.conf"), filepath.Join(dir, "theirs.conf")
	text := "# head\nmaxmemory 10mb\n\n   # indented\ntimeout 0\nhash-max-ziplist-entries 5\n" +
		"client-output-buffer-limit pubsub 1mb 1mb 1\nmaxmemory 12mb\nuser bob on >x ~* +@all\nuser gone on\n" +
		"notify-keyspace-events KEA\nslowlog-max-len 5"
	write(t, ours, text)
	write(t, theirs, text)
	redis := connect(t, difftest.Redis(t, theirs).Dial)
	_, dial := configured(t, ours)
	conn := connect(t, dial)
	for _, words := range [][]string{
		{"CONFIG", "SET", "maxmemory", "1gb", "tcp-keepalive", "17", "maxmemory-policy", "allkeys-lru"},
		{"CONFIG", "SET", "client-output-buffer-limit", "replica 1kb 2k 3", "requirepass", `a "b`},
		{"ACL", "DELUSER", "gone"},
		{"ACL", "SETUSER", "carol", "on", "nopass", "+get"},
		{"CONFIG", "REWRITE"},
		{"CONFIG", "SET", "timeout", "12"},
		{"CONFIG", "REWRITE"},
	} {
		if want, got := do(t, redis, words...).String(), do(t, conn, words...).String(); got != want {
			t.Errorf("%v: %s, want %s", words, got, want)
		}
	}
	want, got := rewritten(t, theirs), rewritten(t, ours)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CONFIG REWRITE (-redis +engine):\n%s", diff)
	}
	if _, err := engine.ReadConfig(ours); err != nil {
		t.Errorf("what was written cannot be read: %v", err)
	}
	if info, err := os.Stat(ours); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's permissions: %v, %v", info.Mode(), err)
	}
}

// rewritten reads a configuration, without the parameters of the test's own
// server. What was added at the end has no order, and Redis leaves an empty
// line there each time.
func rewritten(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "# Generated by CONFIG REWRITE\n"
	before, after, _ := strings.Cut(string(text), mark)
	added := slices.DeleteFunc(strings.Split(after, "\n"), func(line string) bool {
		name, _, _ := strings.Cut(line, " ")
		return line == "" || slices.Contains(append(here, "daemonize", "latency-tracking-info-percentiles"), name)
	})
	slices.Sort(added)
	return append(strings.Split(before, "\n"), added...)
}

func TestImpossibleOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, options := range []engine.Options{{MaxClients: -1}, {Port: -1}, {Port: 65536}} {
		if e, err := engine.Open(options); err == nil {
			t.Errorf("%+v: opened", options)
			e.Close()
		}
	}
}

func TestConfigRewriteWithoutAFile(t *testing.T) {
	t.Parallel()
	if got := do(t, connect(t, dial(t)), "CONFIG", "REWRITE").Text; got != "ERR The server is running without a config file" {
		t.Error(got)
	}
}

// TestParametersWithoutMeaningAreRefused: a setting that does nothing is a lie,
// but what is so already may be asked for.
func TestParametersWithoutMeaningAreRefused(t *testing.T) {
	t.Parallel()
	conn := connect(t, dial(t))
	for _, c := range []struct{ name, value, want string }{
		{"appendonly", "yes", "data is kept in memory only"},
		{"appendonly", "no", "OK"},
		{"save", "60 1", "data is kept in memory only"},
		{"save", "", "OK"},
		{"save", "60", "Invalid save parameters"},
		{"port", "1", "only when it starts"},
		{"activedefrag", "yes", "means nothing in this engine"},
		{"replica-priority", "1", "OK"},
		{"lazyfree-lazy-expire", "yes", "OK"},
		{"list-compress-depth", "1", "OK"},
	} {
		got := do(t, conn, "CONFIG", "SET", c.name, c.value).Text
		if !strings.Contains(got, c.want) {
			t.Errorf("CONFIG SET %s %s: %s", c.name, c.value, got)
		}
	}
	if got := do(t, conn, "CONFIG", "GET", "appendonly").Elems[1].Text; got != "no" {
		t.Errorf("appendonly is %s", got)
	}
}

// TestACLFile compares ACL LOAD and SAVE of the same file with Redis.
func TestACLFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.acl")
	write(t, path, "user default on nopass ~* &* +@all\n\nuser bob  on >pw ~a:* +get (~b +set)\n")
	redis := connect(t, difftest.Redis(t, "--aclfile", path).Dial)
	_, dial := configured(t, "", "aclfile="+path)
	conn := connect(t, dial)
	bob := connect(t, dial)
	if got := do(t, bob, "AUTH", "bob", "pw").Text; got != "OK" {
		t.Fatal(got)
	}
	compare := func(words ...string) {
		t.Helper()
		if want, got := do(t, redis, words...).String(), do(t, conn, words...).String(); got != want {
			t.Errorf("%v:\n got %s\nwant %s", words, got, want)
		}
	}
	compare("ACL", "LIST")
	for _, broken := range []string{
		"user a +nope ~x allkeys ~y\nuser a on\nusr b\nuser\nuser c (+get\n", "user x ><\nuser x xyz abc\n", "# comment\n", "user\t a\n",
	} {
		write(t, path, broken)
		compare("ACL", "LOAD")
	}
	compare("ACL", "LIST")
	if got := do(t, bob, "GET", "a:1").String(); got != "(nil)" {
		t.Errorf("a file that is not accepted changes nothing: %s", got)
	}
	write(t, path, "user carol on nopass +@all ~*\nuser bob on >pw ~a:* +get\n")
	compare("ACL", "LOAD")
	compare("ACL", "LIST")
	if _, err := bob.Do("PING"); err == nil {
		t.Error("who was loaded anew is still connected")
	}
	compare("ACL", "SETUSER", "dave", "on", ">x", "+get", "%R~x")
	compare("ACL", "SAVE")
	saved, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, line := range do(t, redis, "ACL", "LIST").Elems {
		want += line.Text + "\n"
	}
	if string(saved) != want {
		t.Errorf("saved:\n%s\nwant:\n%s", saved, want)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	compare("ACL", "LOAD")
}

// TestRandomRulesAllowTheSame gives a user of Redis and of the engine the same
// random rules, and asks both what the user may do.
func TestRandomRulesAllowTheSame(t *testing.T) {
	t.Parallel()
	redis, conn := connect(t, difftest.Redis(t).Dial), connect(t, dial(t))
	calls := strings.Split(allowedCalls, "\n")
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		words := []string{"ACL", "SETUSER", "x"}
		for range 1 + random.IntN(6) {
			words = append(words, randomRules[random.IntN(len(randomRules))])
		}
		if want, got := do(t, redis, words...).String(), do(t, conn, words...).String(); got != want {
			t.Fatalf("round %d: %v:\n got %s\nwant %s", round, words, got, want)
		}
		for _, call := range calls {
			ask := append([]string{"ACL", "DRYRUN", "x"}, strings.Fields(call)...)
			if want, got := do(t, redis, ask...).String(), do(t, conn, ask...).String(); got != want {
				t.Fatalf("round %d: %v, then %v:\n got %s\nwant %s", round, words, ask, got, want)
			}
		}
		// What is printed makes the same user again.
		described := do(t, conn, "ACL", "GETUSER", "x").Elems[5].Text
		again := append([]string{"ACL", "SETUSER", "y", "-@all"}, strings.Fields(described)...)
		if got := do(t, conn, again...).Text; got != "OK" {
			t.Fatalf("%v: %s", again, got)
		}
		if got := do(t, conn, "ACL", "GETUSER", "y").Elems[5].Text; got != described {
			t.Fatalf("%s\nbecomes\n%s", described, got)
		}
	}
}

var randomRules = []string{
	"+@all", "-@all", "+@read", "-@read", "+@write", "-@write", "+@string", "-@dangerous", "+@fast", "-@slow", "+@hash", "+@connection",
	"-@admin", "+@keyspace", "+@pubsub", "+@scripting", "+get", "-get", "+set", "-set", "+config", "-config", "+config|get", "-config|set",
	"+select|1", "-select", "+client", "-client|kill", "~*", "resetkeys", "~a*", "%R~r*", "%W~w*", "%RW~b", "&*", "resetchannels", "&ch*",
	"(+@all ~s*)", "(+@read %R~s* &*)", "clearselectors", "reset",
}

const allowedCalls = `GET a1
GET r1
GET w1
GET s1
SET a1 v
SET w1 v
SET w1 v GET
SET s1 v
MSET a1 v w1 v
MGET a1 r1
COPY r1 w1
COPY s1 s2
DEL w1
EXISTS w1
EXISTS other
RENAME a1 a2
SUNIONSTORE w1 r1 a1
ZUNIONSTORE w1 2 r1 a1
LMPOP 2 a1 b LEFT
BLPOP a1 b 0
EVAL x 1 a1
EVAL x 0
HGETALL b
PUBLISH ch1 x
PUBLISH x x
SUBSCRIBE ch1
PSUBSCRIBE ch*
PSUBSCRIBE c*
UNSUBSCRIBE x
CONFIG GET x
CONFIG SET x y
SELECT 1
SELECT 2
CLIENT ID
CLIENT KILL x
AUTH x
PING
FLUSHALL
KEYS *
OBJECT ENCODING r1
OBJECT HELP
SCAN 0`
