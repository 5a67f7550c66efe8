package engine_test

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// redisCLI returns how to run the real redis-cli against a new engine.
func redisCLI(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("install redis-cli 7.0 (Debian: apt-get install redis-tools)")
	}
	host, port, err := net.SplitHostPort(listen(t, engine.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), path, append([]string{"-h", host, "-p", port}, args...)...)
	}
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	cli := redisCLI(t)
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := cli(args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	want := func(want, stdin string, args ...string) {
		t.Helper()
		if got := run(stdin, args...); got != want {
			t.Fatalf("redis-cli %q: got %q, want %q", args, got, want)
		}
	}
	want("OK\nQUEUED\nQUEUED\nOK\n2", "MULTI\nSET a 1\nINCR a\nEXEC\n")
	want("1# \"f\" => \"v\"", "", "-3", "--no-raw", "EVAL", "redis.setresp(3) redis.call('HSET', KEYS[1], 'f', 'v') return redis.call('HGETALL', KEYS[1])", "1", "h")
	want("(nil)", "", "--no-raw", "GET", "missing")
	want("5", "hello", "-x", "EVAL", "return #ARGV[1]", "0")
	want("PONG\nPONG", "", "-r", "2", "PING")
	keys := strings.Fields(run("", "--scan", "--pattern", "*"))
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != "a h" {
		t.Fatalf("--scan found %q", got)
	}
	if info := run("", "INFO"); !strings.Contains(info, "redis_version:"+engine.RedisVersion) || !strings.Contains(info, "db0:keys=") {
		t.Fatalf("INFO:\n%s", info)
	}
}

// TestRedisCLILooksAround runs those of redis-cli's tools that end by themselves.
func TestRedisCLILooksAround(t *testing.T) {
	t.Parallel()
	cli := redisCLI(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := cli(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
	run("RPUSH", "list", "a", "b", "c")
	for range 100 {
		run("-r", "10", "INCR", "often")
	}
	for _, tool := range []struct{ option, shows string }{
		{"--hotkeys", "hot key found with counter:"},
		{"--bigkeys", "1 lists with 3 items"},
		{"--memkeys", "1 lists with "},
		{"--scan", "often"},
		{"--intrinsic-latency 1", "Max latency so far"},
		{"--latency", "."}, // with output to no terminal: one line after a second
	} {
		if out := run(strings.Fields(tool.option)...); !strings.Contains(out, tool.shows) || strings.Contains(out, "ERR") {
			t.Errorf("redis-cli %s:\n%s", tool.option, out)
		}
	}
}

// TestRedisBenchmarkRunsItsWholeList compares the names of the tests that it has run with
// those on Redis.
func TestRedisBenchmarkRunsItsWholeList(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("redis-benchmark")
	if err != nil {
		t.Fatal("install redis-benchmark 7.0 (Debian: apt-get install redis-tools)")
	}
	tests := func(address string) (names []string) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), path, "-h", host, "-p", port, "-n", "50", "--csv").CombinedOutput()
		if err != nil || strings.Contains(strings.ToLower(string(out)), "err") {
			t.Fatalf("redis-benchmark: %v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			name, _, _ := strings.Cut(line, ",")
			names = append(names, name)
		}
		return names
	}
	want, got := tests(difftest.Redis(t).Addr), tests(listen(t, engine.Options{}))
	if !slices.Equal(got, want) || len(got) < 15 {
		t.Errorf("it has run %q, on Redis %q", got, want)
	}
}

// TestRedisCLISubscribes sends a message to a redis-cli that waits for one.
func TestRedisCLISubscribes(t *testing.T) {
	t.Parallel()
	cli := redisCLI(t)
	subscriber := cli("SUBSCRIBE", "news")
	stdout, err := subscriber.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := subscriber.Start(); err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(stdout)
	expect := func(lines ...string) {
		t.Helper()
		for _, want := range lines {
			line, err := read.ReadString('\n')
			if err != nil || strings.TrimSpace(line) != want {
				t.Fatalf("got %q, %v, want %q", line, err, want)
			}
		}
	}
	expect("subscribe", "news", "1")
	if out, err := cli("PUBLISH", "news", "hello").Output(); err != nil || string(out) != "1\n" {
		t.Fatalf("PUBLISH: %q, %v", out, err)
	}
	expect("message", "news", "hello")
	if err := subscriber.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Fatal(err)
	}
	if err := subscriber.Wait(); err == nil {
		t.Fatal("a killed process ended well")
	}
}
