package exec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// What is propagated is held against the append-only file of a real redis-server
// that was sent the same requests. Times and IDs that follow from the clock may
// differ by as much as the two are apart; all else must be the same, to the byte.

// propagationCase is a few requests, one a line: words as redis-cli splits them, after
// the name of their connection if that is not a:
//
//	b: BLPOP q 0
//
// A request that blocks says so by b~ instead of b:, and the line b< waits for its
// reply.
type propagationCase struct {
	name     string
	requests string
	// random is set where the members that are chosen do not have to be the same.
	random bool
}

// clockTolerance is how far apart the times of the two servers may be, in ms.
const clockTolerance = 60_000

func TestPropagationIsRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// With everysec Redis answers before it has written the file while a sync runs.
	server := difftest.Redis(t, "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", "--dir", dir)
	want := splitCases(t, playOnRedis(t, server.Dial, dir))
	got := splitCases(t, playOnMachine(t))
	for _, c := range propagationCases {
		t.Run(c.name, func(t *testing.T) {
			want, got := want[c.name], got[c.name]
			if os.Getenv("SHOW") != "" {
				t.Logf("want\n%s", strings.Join(texts(want), "\n"))
			}
			alignClocks(want, got)
			if c.random {
				hideMembers(want)
				hideMembers(got)
			}
			if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
				t.Errorf("-Redis +ours\n%s", diff)
			}
		})
	}
}

// eachRequest visits the requests of all cases, each case after a request that marks
// where it begins.
func eachRequest(visit func(conn, kind string, words []string)) {
	for _, c := range propagationCases {
		visit("control", ":", []string{"FLUSHALL"})
		visit("control", ":", []string{"SET", "case", c.name})
		for line := range strings.Lines(c.requests) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			conn, kind := "a", ":"
			if at := strings.IndexAny(line, ":~<"); at == 1 {
				conn, kind, line = line[:1], line[1:2], line[2:]
			}
			words, err := difftest.Words(strings.TrimSpace(line))
			if err != nil {
				panic(fmt.Sprintf("%s: %q: %v", c.name, line, err))
			}
			visit(conn, kind, words)
		}
	}
}

// playOnRedis sends all requests and returns what the append-only file has of them.
func playOnRedis(t *testing.T, dial difftest.Dial, dir string) []byte {
	t.Helper()
	conns := map[string]*difftest.Conn{}
	connect := func(name string) *difftest.Conn {
		if conns[name] == nil {
			conn, err := difftest.Connect(dial)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			conns[name] = conn
		}
		return conns[name]
	}
	must := func(v difftest.Value, err error) difftest.Value {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	must(connect("control").Do("DEBUG", "SET-ACTIVE-EXPIRE", "0"))
	const mostTries = 10_000
	blocked := 0
	eachRequest(func(name, kind string, words []string) {
		conn, tries := connect(name), 0
		switch kind {
		case "~":
			if err := conn.Send(words...); err != nil {
				t.Fatal(err)
			}
			blocked++
			for want := fmt.Sprintf("blocked_clients:%d\r\n", blocked); !strings.Contains(must(connect("control").Do("INFO", "clients")).Text, want); {
				if tries++; tries > mostTries {
					t.Fatalf("%q does not block", words)
				}
			}
		case "<":
			must(conn.Receive())
			blocked--
		default:
			must(conn.Do(words...))
		}
	})
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("append-only files: %q, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// playOnMachine steps all requests and returns what is propagated of them.
func playOnMachine(t *testing.T) []byte {
	t.Helper()
	m := exec.New(exec.Options{Seed: 1}, time.Now().UnixMicro())
	defer m.Close()
	m.Propagate(true)
	sessions := map[string]*exec.Session{}
	var stream []byte
	eachRequest(func(name, kind string, words []string) {
		nowUs := time.Now().UnixMicro()
		if sessions[name] == nil {
			sessions[name] = m.ConnectLocal(nowUs)
		}
		s := sessions[name]
		if kind == "<" {
			if _, _, still := s.Blocked(); still {
				t.Fatalf("%s is still blocked", name)
			}
			return
		}
		m.Step(nowUs, s, argsOf(words...))
		s.Out.Reset()
		stream = append(stream, m.TakeEffects().Propagate...)
		if _, _, blocked := s.Blocked(); blocked != (kind == "~") {
			t.Fatalf("%q: blocked is %v", words, blocked)
		}
	})
	return stream
}

func argsOf(words ...string) [][]byte {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	return args
}

// requestsOf reads a stream of requests.
func requestsOf(t testing.TB, stream []byte) (requests [][]string) {
	t.Helper()
	for len(stream) > 0 {
		v, n, err := resp.Parse(stream)
		if err != nil {
			t.Fatalf("after %d requests: %v in %q", len(requests), err, stream[:min(len(stream), 100)])
		}
		words := make([]string, len(v.Elems))
		for i, elem := range v.Elems {
			words[i] = elem.Str
		}
		requests = append(requests, words)
		stream = stream[n:]
	}
	return requests
}

// splitCases reads a stream and cuts it at the marks.
func splitCases(t *testing.T, stream []byte) map[string][][]string {
	t.Helper()
	cases, name := map[string][][]string{}, ""
	for _, words := range requestsOf(t, stream) {
		if len(words) == 3 && words[1] == "case" {
			name = words[2]
			continue
		}
		cases[name] = append(cases[name], words)
	}
	return cases
}

func texts(requests [][]string) []string {
	lines := make([]string, len(requests))
	for i, words := range requests {
		lines[i] = fmt.Sprintf("%q", words)
	}
	return lines
}

// alignClocks puts the times of want in the place of those of got, where they are close
// enough to each other and to now.
func alignClocks(want, got [][]string) {
	for i := range min(len(want), len(got)) {
		for j := range min(len(want[i]), len(got[i])) {
			a, aIsTime := clockOf(want[i][j])
			b, bIsTime := clockOf(got[i][j])
			if aIsTime && bIsTime && max(a-b, b-a) <= clockTolerance {
				got[i][j] = want[i][j]
			}
		}
	}
}

// clockOf is the ms of a time, or of a stream ID, of today or so.
func clockOf(word string) (ms int64, ok bool) {
	const near = 10 * 24 * 3600 * 1000
	text, _, _ := strings.Cut(word, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	now := time.Now().UnixMilli()
	return ms, err == nil && max(ms-now, now-ms) < near
}

// hideMembers hides all words after the key.
func hideMembers(requests [][]string) {
	for _, words := range requests {
		for i := range words {
			if i >= 2 {
				words[i] = "?"
			}
		}
	}
}
