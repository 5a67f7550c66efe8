package engine_test

import (
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestDebugIsForWhomTheConfigurationSays compares with Redis who may use DEBUG.
func TestDebugIsForWhomTheConfigurationSays(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"no", "local", "yes"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			redis := connect(t, difftest.Redis(t, "--enable-debug-command", setting).Dial)
			_, dial := configured(t, "", "enable-debug-command="+setting)
			ours := connect(t, dial)
			for _, words := range [][]string{
				{"DEBUG", "DIGEST"},
				{"DEBUG", "BOGUS"},
				{"DEBUG"},
				{"MULTI"},
				{"DEBUG", "DIGEST"},
				{"EXEC"},
				{"CONFIG", "GET", "enable-debug-command"},
				{"CONFIG", "SET", "enable-debug-command", "yes"},
			} {
				if want, got := do(t, redis, words...).String(), do(t, ours, words...).String(); got != want {
					t.Errorf("%v: got %s, want %s", words, got, want)
				}
			}
		})
	}
}

// TestDebugIsOffForConnectionsOnly: the program around the engine may always use it.
func TestDebugIsOffForConnectionsOnly(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if got := do(t, connect(t, e.Dial), "DEBUG", "DIGEST").Text; !strings.HasPrefix(got, "ERR DEBUG command not allowed.") {
		t.Errorf("a connection is answered %q", got)
	}
	if _, err := e.Do(t.Context(), "DEBUG", "DIGEST"); err != nil {
		t.Errorf("the program is answered %v", err)
	}
}

// TestDebugLocalIsForTheLoopbackInterface dials as a client on this machine does.
func TestDebugLocalIsForTheLoopbackInterface(t *testing.T) {
	t.Parallel()
	config, err := engine.ReadConfig("", "enable-debug-command=local")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, l := range []struct{ network, address string }{{"tcp4", "127.0.0.1:0"}, {"unix", filepath.Join(t.TempDir(), "s")}} {
		listener, err := net.Listen(l.network, l.address)
		if err != nil {
			t.Fatal(err)
		}
		go e.Serve(listener) //nolint:errcheck // it ends with the engine
		conn := connect(t, func() (net.Conn, error) { return net.Dial(l.network, listener.Addr().String()) })
		if got := do(t, conn, "DEBUG", "DIGEST").Text; len(got) != 40 {
			t.Errorf("%s: %s", l.network, got)
		}
	}
}

// TestDebugReloadUsesTheSnapshotOfTheFolder: RELOAD writes it, RELOAD NOSAVE goes back to it.
func TestDebugReloadUsesTheSnapshotOfTheFolder(t *testing.T) {
	t.Parallel()
	config, err := engine.ReadConfig("", "appendonly=no")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{Dir: t.TempDir(), Config: config})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, step := range [][2]string{
		{"DEBUG RELOAD NOSAVE", "ERR Error trying to load the RDB dump, check server logs."},
		{"SET k saved", "OK"},
		{"DEBUG RELOAD", "OK"},
		{"SET k changed", "OK"},
		{"SET new x", "OK"},
		{"DEBUG RELOAD NOSAVE NOFLUSH", "ERR Error trying to load the RDB dump, check server logs."},
		{"DEBUG RELOAD NOSAVE NOFLUSH MERGE", "OK"},
		{"GET k", "saved"},
		{"GET new", "x"},
		{"DEBUG RELOAD NOSAVE", "OK"},
		{"EXISTS new", "0"},
	} {
		reply, err := e.Do(t.Context(), strings.Fields(step[0])...)
		got := reply.String()
		if err != nil {
			got = err.Error()
		}
		if got != step[1] {
			t.Errorf("%s: got %q, want %q", step[0], got, step[1])
		}
	}
}

// TestDebugSleepCountsAsWork: who is slow shows, though the engine does not stand still.
func TestDebugSleepCountsAsWork(t *testing.T) {
	t.Parallel()
	conn := connect(t, dial(t))
	do(t, conn, "CONFIG", "SET", "latency-monitor-threshold", "10", "slowlog-log-slower-than", "10000")
	do(t, conn, "DEBUG", "SLEEP", "0.02")
	if got := do(t, conn, "LATENCY", "LATEST").Elems; len(got) != 1 || got[0].Elems[0].Text != "command" || got[0].Elems[2].Text != "20" {
		t.Errorf("LATENCY LATEST: %v", got)
	}
	if got := do(t, conn, "SLOWLOG", "GET").Elems; len(got) != 1 || got[0].Elems[2].Text != "20000" {
		t.Errorf("SLOWLOG GET: %v", got)
	}
	if got := do(t, conn, "INFO", "latencystats").Text; !strings.Contains(got, "latency_percentiles_usec_debug:p50=2") {
		t.Errorf("INFO latencystats: %s", got)
	}
}

// TestAnEngineInMemorySavesNothingAndSaysSo: whoever asks learns that nothing is on disk.
func TestAnEngineInMemorySavesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	conn := connect(t, dial(t))
	for _, step := range [][2]string{
		{"CONFIG SET save", "OK"},
		{"SAVE", "ERR data is kept in memory only: start the engine with a folder to keep it in"},
		{"BGSAVE", "Background saving started"},
		{"BGSAVE SCHEDULE", "Background saving started"},
		{"BGSAVE BOGUS", "ERR syntax error"},
		{"SET k v", "OK"},
		{"SHUTDOWN SAVE", "ERR Errors trying to SHUTDOWN. Check logs."},
	} {
		words := strings.Fields(step[0])
		if words[0] == "CONFIG" {
			words = append(words, "")
		}
		if got := do(t, conn, words...).Text; got != step[1] {
			t.Errorf("%s: got %q, want %q", step[0], got, step[1])
		}
	}
	if info := do(t, conn, "INFO", "persistence").Text; !strings.Contains(info, "rdb_bgsave_in_progress:0\r\n") ||
		!strings.Contains(info, "rdb_last_bgsave_status:err\r\n") {
		t.Errorf("INFO persistence:\n%s", info)
	}
}

// TestDebugLoadAOFGoesBackToTheLog compares with Redis what is there before and after.
func TestDebugLoadAOFGoesBackToTheLog(t *testing.T) {
	t.Parallel()
	redis := difftest.Redis(t, "--enable-debug-command", "yes", "--appendonly", "yes", "--dir", t.TempDir()).Dial
	ours := keepIn(t, t.TempDir(), "enable-debug-command=yes", "appendonly=yes", "save=").Dial
	transcript := func(dial difftest.Dial) (replies []string) {
		conn, waiter := connectTwo(t, dial)
		fill(t, func(words ...string) { do(t, conn, words...) })
		for _, words := range [][]string{
			{"DEBUG", "LOADAOF", "x"},
			{"DEBUG", "POPULATE", "3"}, // which no log hears of
			{"DBSIZE"},
			{"DEBUG", "LOADAOF"},
			{"DBSIZE"},
			{"DEBUG", "DIGEST"},
			{"FCALL", "answer", "0"},
			{"WATCH", "string"},
			{"RPUSH", "queue", "gone"},
			{"LPOP", "queue"},
			{"SELECT", "5"},
			{"SET", "last", "5"},
			{"DEBUG", "LOADAOF"},
			{"GET", "last"},
			{"SELECT", "0"},
			{"MULTI"},
			{"GET", "string"},
			{"EXEC"},
			{"GET", "last"},
			{"SET", "after", "0"},
			{"DEBUG", "LOADAOF"},
			{"GET", "after"},
			{"DEBUG", "DIGEST"},
		} {
			replies = append(replies, strings.Join(words, " ")+": "+do(t, conn, words...).String())
		}
		if err := waiter.Send("BLPOP", "queue", "0"); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(do(t, conn, "INFO", "clients").Text, "blocked_clients:1\r\n") {
			runtime.Gosched()
		}
		replies = append(replies, do(t, conn, "DEBUG", "LOADAOF").String(), do(t, conn, "RPUSH", "queue", "served").String())
		served, err := waiter.Receive()
		if err != nil {
			t.Fatal(err)
		}
		return append(replies, served.String(), do(t, conn, "DEBUG", "LOADAOF").String(), do(t, conn, "EXISTS", "queue").String())
	}
	if diff := cmp.Diff(transcript(redis), transcript(ours)); diff != "" {
		t.Errorf("Redis (-), the engine (+):\n%s", diff)
	}
}

// TestDebugLoadAOFIsRefusedWhereItCannotBe: nothing is dropped that cannot come back.
func TestDebugLoadAOFIsRefusedWhereItCannotBe(t *testing.T) {
	t.Parallel()
	const off = "ERR DEBUG LOADAOF: the append-only file is off: CONFIG SET appendonly yes turns it on"
	e := keepIn(t, t.TempDir(), "enable-debug-command=yes", "appendonly=no", "save=")
	conn := connect(t, e.Dial)
	do(t, conn, "SET", "k", "v")
	if got := do(t, conn, "DEBUG", "LOADAOF").Text; got != off {
		t.Errorf("without a log: %s", got)
	}
	if got := do(t, conn, "DEBUG", "POPULATE", "1").Text + do(t, conn, "CONFIG", "SET", "appendonly", "yes").Text; got != "OKOK" {
		t.Fatal(got)
	}
	do(t, conn, "MULTI")
	do(t, conn, "DEBUG", "LOADAOF")
	if got := do(t, conn, "EXEC").Elems[0].Text; got != "ERR DEBUG LOADAOF is not for transactions and scripts: send it by itself" {
		t.Errorf("in a transaction: %s", got)
	}
	if got := do(t, conn, "DEBUG", "LOADAOF").Text; got != "OK" { // once the first base is there
		t.Errorf("after the log was turned on: %s", got)
	}
	do(t, conn, "REPLICAOF", "127.0.0.1", "1")
	if got := do(t, conn, "DEBUG", "LOADAOF").Text; got != "ERR Error trying to load the AOF files, check server logs." {
		t.Errorf("as a replica: %s", got)
	}
	if got := do(t, conn, "DBSIZE").Text; got != "2" {
		t.Errorf("%s keys are left", got)
	}
}
