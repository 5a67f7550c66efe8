package clienttest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cli runs redis-cli to its end.
type cli struct {
	t    *testing.T
	args []string
}

func redisCLI(t *testing.T, addr string) cli {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Fatal("redis-cli is missing: run .ci/test-deps, or install it (Debian: apt-get install redis-tools)")
	}
	host, port := split(t, addr)
	return cli{t, []string{"-h", host, "-p", port}}
}

func (c cli) run(stdin string, args ...string) string {
	c.t.Helper()
	return strings.TrimSpace(run(c.t, stdin, "redis-cli", slices.Concat(c.args, args)...))
}

// fail runs what ends with an error.
func (c cli) fail(stdin string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "redis-cli", slices.Concat(c.args, args)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if ended := new(exec.ExitError); !errors.As(err, &ended) {
		c.t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (c cli) want(want, stdin string, args ...string) {
	c.t.Helper()
	check(c.t, fmt.Sprintf("redis-cli %q", args), want, c.run(stdin, args...), nil)
}

// contains fails the test unless every pattern is found.
func (c cli) contains(got string, patterns ...string) {
	c.t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(got) {
			c.t.Fatalf("no %q in:\n%s", pattern, got)
		}
	}
}

func TestRedisCLIRunsCommands(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c := redisCLI(t, addr)
		c.want("OK", "", "SET", "s", "hello")
		c.want(`"hello"`, "", "--no-raw", "GET", "s")
		c.want("(nil)", "", "--no-raw", "GET", "missing")
		c.want("hello", "", "--raw", "GETRANGE", "s", "0", "-1")
		c.want("11", " world", "-x", "APPEND", "s")
		c.want(`["1",2]`, "", "--json", "EVAL", "return {'1', 2}", "0")
		c.want(`1,"a",NULL`, "", "--csv", "EVAL", "return {1, 'a', false}", "0")
		c.want("(error) WRONGTYPE Operation against a key holding the wrong kind of value", "", "--no-raw", "LPUSH", "s", "x")
		c.want("1\n2\n3", "", "-r", "3", "INCR", "n")
		c.want("OK", "", "-n", "7", "SET", "elsewhere", "1")
		c.want("(integer) 0", "", "--no-raw", "EXISTS", "elsewhere")
		c.want("PONG", "", "-u", "redis://"+addr+"/3", "PING")
		script := filepath.Join(t.TempDir(), "sum.lua")
		must(t, "write a script", os.WriteFile(script, []byte("return {redis.call('INCRBY', KEYS[1], ARGV[1]), KEYS[2]}"), 0o600))
		c.want("1) (integer) 42\n2) \"other\"", "", "--no-raw", "--eval", script, "sum", "other", ",", "42")

		c.want(`1# "a" => "1"`, "", "-3", "--no-raw", "EVAL", "redis.setresp(3) redis.call('HSET', KEYS[1], 'a', '1') return redis.call('HGETALL', KEYS[1])", "1", "h")
		c.want("(double) 1.5", "", "-3", "--no-raw", "ZADD", "z", "INCR", "1.5", "m")
		c.want(`{"a":"1"}`, "", "-3", "--json", "HGETALL", "h")
		c.want("(nil)", "", "-3", "--no-raw", "GET", "missing")
	})
}

// TestRedisCLIPrompt types at its prompt, for which it asks the server what commands there are.
func TestRedisCLIPrompt(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c := redisCLI(t, addr)
		c.want("OK\nQUEUED\nQUEUED\nOK\n2", "MULTI\nSET tx 1\nINCR tx\nEXEC\n")
		c.want("OK\nOK\nQUEUED\nOK\n2", "WATCH tx\nMULTI\nINCR tx\nDISCARD\nGET tx\n")
		c.want("OK\n0\nOK", "SELECT 4\nDBSIZE\nSET quoted \"a\\x00b\"\n")
		c.want("ERR unknown command 'NONSENSE', with args beginning with: \n\nPONG", "NONSENSE\nPING\n")
		c.contains(c.run("HELLO 3\nHELP LPUSH\nHELP @stream\n"), "proto 3", `LPUSH`, `since:\S* 1\.0\.0`, `group:\S* list`, `XREADGROUP`)
	})
}

func TestRedisCLIWalksTheKeyspace(t *testing.T) {
	onBoth(t, func(t *testing.T, addr string) {
		c := redisCLI(t, addr)
		var mass, want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&mass, "*3\r\n$3\r\nSET\r\n$6\r\nk:%04d\r\n$5\r\nvalue\r\n", i)
			fmt.Fprintf(&want, "k:%04d\n", i)
		}
		c.contains(c.run(mass.String(), "--pipe"), `errors: 0, replies: 1000`)
		c.contains(c.fail("LPUSH k:0001 x\r\nRPUSH list 1 2 3\r\n", "--pipe"), `errors: 1, replies: 2`)
		keys := strings.Fields(c.run("", "--scan", "--pattern", "k:*", "-i", "0"))
		slices.Sort(keys)
		check(t, "--scan", want.String(), strings.Join(keys, "\n")+"\n", nil)
		c.run("SADD set a b c d\nZADD zset 1 a\nHSET hash a 1\nXADD stream * a 1\nSET large aaaaaaaaaaaaaaaaaaaaaaa\n")
		c.contains(c.run("", "--bigkeys"), `Sampled 1006 keys`, `Biggest +string found .*"large".* has 23 bytes`, `Biggest +list found .*"list".* has 3 items`,
			`Biggest +set found .*"set".* has 4 members`, `1 streams with 1 entries`, `1 hashs with 1 fields`, `1 zsets with 1 members`)
		c.contains(c.run("", "--latency", "--raw", "-i", "0.1"), `^[0-9.]+ [0-9.]+ [0-9.]+ [1-9][0-9]*$`)
		check(t, "DBSIZE", "1006", c.run("", "DBSIZE"), nil)
	})
}

// TestRedisCLISubscribes: it prints what is published.
func TestRedisCLISubscribes(t *testing.T) {
	onBothProtocols(t, func(t *testing.T, addr string, protocol int) {
		c := redisCLI(t, addr)
		subscriber := exec.CommandContext(t.Context(), "redis-cli", append(c.args, "--csv", fmt.Sprint("-", protocol), "SUBSCRIBE", "news")...)
		out, err := subscriber.StdoutPipe()
		must(t, "a pipe", err)
		must(t, "start", subscriber.Start())
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "Reading") { // some versions say so first
			line, err = lines.ReadString('\n')
		}
		check(t, "confirmation", "\"subscribe\",\"news\",1\n", line, err)
		c.want("1", "", "PUBLISH", "news", "hello")
		line, err = lines.ReadString('\n')
		check(t, "message", "\"message\",\"news\",\"hello\"\n", line, err)
		must(t, "kill", subscriber.Process.Kill())
		_ = subscriber.Wait() // killed
	})
}
