package engine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// What MONITOR and SLOWLOG show of commands: the same requests are sent to
// Redis and to the engine, and both are asked what they have seen.

// watchedRequests is one request a line, words apart by spaces; in a word, ~ is
// a space.
var watchedRequests = []string{
	"SELECT 3",
	"set a x\x00\n\r\t\a\b\"q\\\xff",
	"MULTI", "SET k 1", "INCR k", "LPUSH k 1", "EXEC",
	"EVAL return~redis.call('set',KEYS[1],ARGV[1]) 1 k 1",
	"EVAL_RO return~redis.call('get',KEYS[1]) 1 k", "SCRIPT EXISTS x",
	"FUNCTION LOAD #!lua~name=w\nredis.register_function('wf',function(k)return(redis.call('set',k[1],1))end)",
	"FCALL wf 1 k", "FCALL_RO wf 1 k", "FUNCTION DELETE w",
	"AUTH foo bar", "AUTH foo",
	"HELLO 2 SETNAME n AUTH default x",
	"CONFIG SET requirepass ~",
	"CONFIG SET masterauth hidden",
	"CONFIG GET port",
	"CONFIG SET masterauth hidden MASTERUSER hidden", "config set MAXMEMORY-SAMPLES 5",
	"ACL SETUSER bob on >hidden", "ACL GETUSER bob", "ACL DELUSER bob", "ACL WHOAMI",
	"NOSUCH a", "GET", "LPUSH k 1", "LPUSH list 1",
	"MULTI", "NOSUCH", "EXEC",
	"MULTI", "DISCARD",
	"SCRIPT LOAD return~1",
	"EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
	"WATCH k", "UNWATCH", "PING", "ECHO hi",
	"GEOADD g 1 1 a", "GEORADIUS g 1 1 1 m STORE g2", "PFADD h a", "PFCOUNT h", "PFDEBUG ENCODING h",
	"SUBSCRIBE ch", "UNSUBSCRIBE ch", "PUBLISH ch x",
	"MGET 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31",
	"MGET 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32",
	"MGET 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34",
	"SET long " + strings.Repeat("x", 128),
	"SET long " + strings.Repeat("x", 129),
	"BLPOP list 0",
	"CLIENT SETNAME named",
	"GET k",
}

func words(line string) []string {
	all := strings.Split(line, " ")
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "~", " ")
	}
	return all
}

// sendWatched sends the requests; a password of one space is taken back.
func sendWatched(t *testing.T, conn *difftest.Conn) {
	t.Helper()
	for _, line := range watchedRequests {
		if line == "CONFIG SET requirepass ~" {
			do(t, conn, "CONFIG", "SET", "requirepass", "")
			continue
		}
		do(t, conn, words(line)...)
	}
}

func TestMonitorShowsWhatRedisShows(t *testing.T) {
	t.Parallel()
	masked := regexp.MustCompile(`^\d+\.\d{6} \[(\d+) [^\]]*(lua)?[^\]]*\]`)
	collect := func(dial difftest.Dial) (lines []string) {
		sender, watcher := connectTwo(t, dial)
		do(t, watcher, "MONITOR")
		sendWatched(t, sender)
		do(t, sender, "ECHO", "the end")
		for {
			line, err := watcher.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(line.Text, `"the end"`) {
				return lines
			}
			from := "client"
			if strings.Contains(masked.FindString(line.Text), " lua]") {
				from = "lua"
			}
			lines = append(lines, masked.ReplaceAllString(line.Text, "[$1 "+from+"]"))
		}
	}
	want, got := collect(difftest.Redis(t).Dial), collect(dial(t))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("MONITOR (-redis +engine):\n%s", diff)
	}
	if len(got) < 20 || !strings.HasPrefix(got[0], "[3 client] ") {
		t.Errorf("nothing has been compared: %q", got)
	}
}

func TestSlowLogShowsWhatRedisShows(t *testing.T) {
	t.Parallel()
	collect := func(dial difftest.Dial) (entries []string) {
		conn, other := connectTwo(t, dial)
		do(t, conn, "CONFIG", "SET", "slowlog-log-slower-than", "0")
		do(t, conn, "SLOWLOG", "RESET")
		sendWatched(t, conn)
		do(t, other, "CONFIG", "SET", "slowlog-log-slower-than", "-1")
		do(t, other, "GET", "k")
		for _, e := range do(t, other, "SLOWLOG", "GET", "-1").Elems {
			var args []string
			for _, arg := range e.Elems[3].Elems {
				args = append(args, arg.Text)
			}
			entries = append(entries, fmt.Sprintf("%s %q %q", e.Elems[0].Text, args, e.Elems[5].Text))
		}
		if n := do(t, other, "SLOWLOG", "LEN").Text; n != fmt.Sprint(len(entries)) {
			t.Errorf("SLOWLOG LEN is %s, and there are %d", n, len(entries))
		}
		do(t, other, "CONFIG", "SET", "slowlog-max-len", "3")
		do(t, other, "CONFIG", "SET", "slowlog-log-slower-than", "0")
		do(t, other, "GET", "k")
		return append(entries, "then "+do(t, other, "SLOWLOG", "LEN").Text)
	}
	want, got := collect(difftest.Redis(t).Dial), collect(dial(t))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SLOWLOG (-redis +engine):\n%s", diff)
	}
	if len(got) < 20 {
		t.Errorf("nothing has been compared: %q", got)
	}
}

func connectTwo(t *testing.T, dial difftest.Dial) (a, b *difftest.Conn) {
	t.Helper()
	for _, conn := range []**difftest.Conn{&a, &b} {
		c, err := difftest.Connect(dial)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		*conn = c
	}
	return a, b
}

// TestDurationsAreMeasured: what a script takes is what the statistics say, in
// all the places that say it.
func TestDurationsAreMeasured(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	do := func(args ...string) engine.Reply {
		t.Helper()
		reply, err := e.Do(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	do("CONFIG", "SET", "latency-monitor-threshold", "1")
	do("CONFIG", "SET", "slowlog-log-slower-than", "1000")
	began := time.Now()
	do("EVAL", "local n = 0 for i = 1, 1000000 do n = n + i end return n", "0")
	took := time.Since(began).Microseconds()

	slow := do("SLOWLOG", "GET").At(0)
	if us := slow.At(2).Int(); us < 1000 || us > took || slow.At(3).At(0).String() != "EVAL" {
		t.Errorf("the slow log says %d µs, it took %d: %s", us, took, slow)
	}
	latest := do("LATENCY", "LATEST").At(0)
	if ms := latest.At(2).Int(); latest.At(0).String() != "command" || ms < 1 || ms > took/1000 {
		t.Errorf("LATENCY LATEST: %s", latest)
	}
	histogram := do("LATENCY", "HISTOGRAM", "eval").At(1)
	if histogram.At(1).Int() != 1 || histogram.At(3).At(0).Int() < 1000 {
		t.Errorf("LATENCY HISTOGRAM: %s", histogram)
	}
	var calls, usec int64
	stats := do("INFO", "commandstats").String()
	at := strings.Index(stats, "cmdstat_eval:")
	if at < 0 {
		t.Fatalf("no eval in:\n%s", stats)
	}
	if _, err := fmt.Sscanf(stats[at:], "cmdstat_eval:calls=%d,usec=%d,", &calls, &usec); err != nil || calls != 1 || usec < 1000 || usec > took {
		t.Errorf("INFO commandstats: %d calls of %d µs, %v:\n%s", calls, usec, err, stats)
	}
	if graph := do("LATENCY", "GRAPH", "command").String(); !strings.Contains(graph, "command - high ") || strings.Count(graph, "\n") < 6 {
		t.Errorf("LATENCY GRAPH:\n%s", graph)
	}
}

// TestAMonitorThatDoesNotReadIsDisconnected: it is bounded as a replica is.
func TestAMonitorThatDoesNotReadIsDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.Open(engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if _, err := e.Do(t.Context(), "CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0"); err != nil {
			t.Fatal(err)
		}
		conn, err := e.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 30 {
			if _, err := e.Do(t.Context(), "ECHO", strings.Repeat("x", 100_000)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if e.Connections() != 0 {
			t.Error("3 MB are waiting for a monitor that does not read")
		}
	})
}
