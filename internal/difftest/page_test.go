package difftest

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellRepliesAreThoseOfRedisCli(t *testing.T) {
	t.Parallel()
	server := Redis(t)
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, server.Dial)
	for _, request := range [][]string{
		{"SET", "k", "a \"b\"\n\t\xff\x01"},
		{"GET", "k"},
		{"GET", "missing"},
		{"STRLEN", "k"},
		{"LPOP", "k"},
		{"BLPOP", "missing", "0.01"},
		{"LRANGE", "missing", "0", "-1"},
		{"RPUSH", "l", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"},
		{"LRANGE", "l", "0", "-1"},
		{"EVAL", "return {1, {}, {'a', {'b', {false, 'c'}}, redis.status_reply('x')}, redis.error_reply('MY error')}", "0"},
		{"EVAL", "local t = {} for i = 1, 10 do t[i] = {i, {i}} end return t", "0"},
	} {
		cmd := exec.CommandContext(t.Context(), "redis-cli", append([]string{"--no-raw", "-h", host, "-p", port}, request...)...)
		shown, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli %q: %v\n%s", request, err, shown)
		}
		if request[0] == "RPUSH" { // once is enough
			continue
		}
		v, err := conn.Do(request...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimRight(string(shown), "\n"), v.format(mode{shell: true})); diff != "" {
			t.Errorf("%q: redis-cli shows, ours is\n%s", request, diff)
		}
	}
}

const page = `# Title

` + "```sh\n> not ours\n```" + `

## First

` + "```redis\n> SET k 1\nOK\n```" + `

Goes on:

` + "```redis\n> INCR k\n(integer) 2\n> EXPIRE k 100\n(integer) 1\n# within 60\n> TTL k\n(integer) 120\n```" + `

## Second

` + "```redis\n> GET k\n(nil)\n> SADD k b a\n(integer) 2\n# sorted\n> SMEMBERS k\n1) \"a\"\n2) \"b\"\n```\n"

// playPage plays a page and describes what differs.
func playPage(t *testing.T, text string) (found []string) {
	t.Helper()
	sections, err := parsePage(strings.Split(text, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	server := Redis(t)
	for _, s := range sections {
		replies, err := s.play(server.Dial)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, differences(s.entries(), replies)...)
	}
	return found
}

// TestSectionsOfAPageBeginEmptyAndBlocksGoOn: the second block knows the key of
// the first, the second section does not.
func TestSectionsOfAPageBeginEmptyAndBlocksGoOn(t *testing.T) {
	t.Parallel()
	if found := playPage(t, page); found != nil {
		t.Errorf("found %q", found)
	}
}

func TestRepliesOfAPageThatDifferAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ right, wrong, line string }{
		{"(nil)", `"1"`, "29: > GET k"},
		{"(integer) 120", "(integer) 90", "22: > TTL k"},
		{"(integer) 120", "(integer) 200", "22: > TTL k"},
		{`2) "b"`, `2) "c"`, "34: > SMEMBERS k"},
		{"> INCR k\n(integer) 2", "> INCR k", "17: > INCR k"},
	} {
		found := playPage(t, strings.Replace(page, c.right, c.wrong, 1))
		if len(found) != 1 || !strings.HasPrefix(found[0], c.line+"\n") {
			t.Errorf("with %s for %s: found %q, want one difference at %s", c.wrong, c.right, found, c.line)
		}
	}
}

func TestPagesRefuseMistakes(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"# No example\n", "```redis\n> PING\n", "```redis\n:1\n```\n", "```redis\n# bogus\n> PING\n```\n"} {
		if _, err := parsePage(strings.Split(bad, "\n")); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}
