package difftest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServerSurvivesRestartAndPause(t *testing.T) {
	t.Parallel()
	server := Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	conn := connect(t, server.Dial)
	wantReply(t, conn, "+OK", "SET", "k", "v")
	server.Restart()
	conn = connect(t, server.Dial)
	wantReply(t, conn, `"v"`, "GET", "k")
	server.Pause()
	if err := conn.Send("GET", "k"); err != nil {
		t.Fatal(err)
	}
	server.Resume()
	if v, err := conn.Receive(); err != nil || v.Text != "v" {
		t.Fatalf("after a pause: %v %v", v, err)
	}
	server.Kill()
	if _, err := server.Dial(); err == nil {
		t.Fatal("a killed server still accepts connections")
	}
}

// TestServerDiesWithItsTest runs this test binary again, as a test that
// panics while it has a server, and waits for the server's connection to end.
func TestServerDiesWithItsTest(t *testing.T) {
	if os.Getenv("DIFFTEST_PANIC") != "" {
		server := Redis(t)
		fmt.Printf("addr %s\n", server.Addr)
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		go panic("on purpose, where no cleanup runs")
		select {}
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsTest$")
	cmd.Env = append(os.Environ(), "DIFFTEST_PANIC=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "addr ")
	if err != nil || !ok {
		t.Fatalf("the child says %q, %v", line, err)
	}
	conn := connect(t, func() (net.Conn, error) { return net.Dial("tcp", addr) })
	wantReply(t, conn, "+PONG", "PING")
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child did not panic")
	}
	if _, err := conn.Receive(); !hungUp(err) {
		t.Fatalf("the server outlives its test: %v", err)
	}
}

func TestFormatShowsEveryKind(t *testing.T) {
	t.Parallel()
	wire := "+OK\r\n-ERR no \r\n:1\r\n$3\r\na\"\n\r\n$-1\r\n*-1\r\n*0\r\n_\r\n#t\r\n,3.5\r\n(12\r\n=6\r\ntxt:hi\r\n" +
		"%1\r\n$1\r\nb\r\n*1\r\n:2\r\n~2\r\n+b\r\n+a\r\n>1\r\n+x\r\n*2\r\n$1\r\n0\r\n*2\r\n+b\r\n+a\r\n"
	want := []string{
		"+OK", `-ERR no\x20`, ":1", `"a\"\n"`, "(nil)", "(nil array)", "*0", "(null)", "#t", ",3.5", "(big)12", `=txt"hi"`,
		"%1\n  \"b\" = *1\n    :2", "~2\n  +a\n  +b", ">1\n  +x", "*2\n  \"0\"\n  *2\n    +a\n    +b",
	}
	conn := &Conn{r: bufio.NewReader(strings.NewReader(wire))}
	var got []string
	for range want {
		v, err := conn.readValue()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.format(anyOrder))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSplitReadsRequestsAsRedisCliDoes(t *testing.T) {
	t.Parallel()
	got, err := split(`a "b \"c\"\x00\n" 'd\n \'e' {1..2:f%,v%} {3*x} "{1..2}" {tag}`)
	want := []string{"a", "b \"c\"\x00\n", `d\n 'e`, "f1", "v1", "f2", "v2", "xxx", "{1..2}", "{tag}"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, bad := range []string{`"open`, `"a"b`, `"\xzz"`} {
		if words, err := split(bad); err == nil {
			t.Errorf("split(%s) = %q, no error", bad, words)
		}
	}
}

func TestParseRefusesMistakes(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{":1\n", "# bogus\n> PING\n", "> \n", "< x\n", "# raw\n> a b\n", "# match (\n> a\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// TestPlayFindsUnreadReplies: a reply that a transcript does not mention is an
// error even at its end.
func TestPlayFindsUnreadReplies(t *testing.T) {
	t.Parallel()
	server := Redis(t)
	entries, err := parse("> SUBSCRIBE a b\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := play(entries, server.Dial); err == nil || !strings.Contains(err.Error(), "unread") {
		t.Errorf("the error is %v", err)
	}
}

func TestFuzzFindsNothingBetweenTwoRedis(t *testing.T) {
	t.Parallel()
	Fuzz(t, 1, 5000, Redis(t).Dial, Redis(t).Dial)
}

// TestFuzzShrinksWhatItFinds holds Redis against one that answers LLEN 4 where
// it should be 3, and expects little more than what makes such a list.
func TestFuzzShrinksWhatItFinds(t *testing.T) {
	t.Parallel()
	server, liar := Redis(t), Redis(t)
	s := &failures{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Fuzz(s, 1, 5000, server.Dial, func() (net.Conn, error) {
			conn, err := liar.Dial()
			return lyingConn{conn}, err
		})
	}()
	<-done
	requests := len(regexp.MustCompile(`(?m)^\s*(c\d+)?> `).FindAllString(s.text, -1))
	if !strings.Contains(s.text, "seed 1:") || requests == 0 || requests > 6 {
		t.Errorf("the report has %d requests:\n%s", requests, s.text)
	}
}

// lyingConn replaces the reply :3 by :4.
type lyingConn struct{ net.Conn }

func (c lyingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if string(p[:n]) == ":3\r\n" {
		copy(p, bytes.Replace(p[:n], []byte("3"), []byte("4"), 1))
	}
	return n, err
}

// failures is a test that keeps what it is failed with.
type failures struct {
	testing.TB
	text string
}

func (f *failures) Helper() {}

func (f *failures) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func connect(t *testing.T, dial Dial) *Conn {
	t.Helper()
	conn, err := Connect(dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func wantReply(t *testing.T, conn *Conn, want string, words ...string) {
	t.Helper()
	v, err := conn.Do(words...)
	if err != nil || v.String() != want {
		t.Fatalf("%q: got %v, %v, want %s", words, v, err, want)
	}
}

// Tests start the server that REDIS_SERVER names.
func TestTheServerIsNamedByTheEnvironment(t *testing.T) {
	other := filepath.Join(t.TempDir(), "valkey-server")
	if err := os.Symlink(RedisServer(t), other); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_SERVER", other)
	info, err := connect(t, Redis(t).Dial).Do("INFO", "server")
	if err != nil || !strings.Contains(info.Text, "\r\nexecutable:"+other+"\r\n") {
		t.Errorf("started another server than %s: %v\n%s", other, err, info.Text)
	}
}
