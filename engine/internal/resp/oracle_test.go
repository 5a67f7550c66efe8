package resp

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestRequestsLikeServer sends byte streams to a real server and compares
// what it made of them with what Requests makes of them. No command has these
// names, and the answer to an unknown command repeats its arguments. It needs
// a Redis 7.0 at RESP_ORACLE_ADDR; set RESP_ORACLE_UNTRUSTED if that server
// wants a password.
func TestRequestsLikeServer(t *testing.T) {
	addr := os.Getenv("RESP_ORACLE_ADDR")
	if addr == "" {
		t.Skip("RESP_ORACLE_ADDR is not set")
	}
	trusted := os.Getenv("RESP_ORACLE_UNTRUSTED") == ""
	for _, c := range requestCases {
		compareWithServer(t, addr, trusted, c.input)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		compareWithServer(t, addr, trusted, randomStream(rng))
	}
}

func compareWithServer(t *testing.T, addr string, trusted bool, stream string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, stream); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%q: %v", stream, err)
	}
	if want := expectedAnswers(stream, trusted); string(got) != want {
		t.Errorf("stream %q\nserver %q\nours   %q", stream, got, want)
	}
}

// expectedAnswers is what a server says to the requests that we see.
func expectedAnswers(stream string, trusted bool) string {
	r := Requests{Trusted: trusted}
	requests, err := feed(&r, []byte(stream), func(left int) int { return left })
	var w Writer
	if errors.As(err, new(ForeignError)) {
		return ""
	}
	for _, argv := range requests {
		args := ""
		for _, arg := range argv[1:] {
			if len(args) < 128 {
				args += fmt.Sprintf("'%s' ", untilNUL(arg, 128-len(args)))
			}
		}
		w.Error(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", untilNUL(argv[0], 128), args))
	}
	if err != nil {
		w.Error("ERR Protocol error: " + err.Error())
	}
	return string(w.Bytes())
}

// untilNUL cuts a string as C prints it.
func untilNUL(s string, limit int) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s[:min(len(s), limit)]
}

// randomStream strings together what is, or nearly is, a request.
func randomStream(rng *rand.Rand) string {
	pieces := []string{
		"*", "$", "\r\n", "\n", "\r", " ", "\t", "\v", "\f", "\"", "'", "\\", "\\x41", "\\xg1", "\\n", "\\'",
		"a", "zz", "*1\r\n", "*2\r\n", "$1\r\n", "$2\r\n", "$0\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "*01\r\n", "$01\r\n",
		"1", "0", "-", "\x00", "\xff", "\x01", "*1\r\n$3\r\nfoo\r\n", "*2\r\n$3\r\nfoo\r\n$2\r\nb\r\r\n",
	}
	var b strings.Builder
	for range 1 + rng.IntN(12) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String() + "\r\n"
}
