package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// The payload of FUNCTION DUMP moves libraries between the engine and Redis,
// either way.
func TestFunctionDumpMoves(t *testing.T) {
	t.Parallel()
	redis, ours := difftest.Redis(t).Dial, dial(t)
	for name, c := range map[string]struct{ from, to difftest.Dial }{
		"from Redis": {redis, ours},
		"to Redis":   {ours, redis},
	} {
		from, to := connectTo(t, c.from), connectTo(t, c.to)
		ask(t, to, "FUNCTION", "FLUSH")
		ask(t, from, "FUNCTION", "FLUSH")
		// Short, compressible and long texts: every form of a length.
		for i, body := range []string{"", strings.Repeat("-- again and again\n", 20), longComment(20_000), strings.Repeat("-- x\n", 4000)} {
			code := fmt.Sprintf("#!lua name=l%d\n%sredis.register_function('f%d', function(k) return %d end)", i, body, i, i)
			if got := ask(t, from, "FUNCTION", "LOAD", code); got != fmt.Sprintf("%q", fmt.Sprintf("l%d", i)) {
				t.Fatalf("%s: FUNCTION LOAD answered %s", name, got)
			}
		}
		dump, err := from.Do("FUNCTION", "DUMP")
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, to, "FUNCTION", "RESTORE", dump.Text); got != "+OK" {
			t.Fatalf("%s: FUNCTION RESTORE answered %s", name, got)
		}
		for i := range 4 {
			f, l := fmt.Sprintf("f%d", i), fmt.Sprintf("l%d", i)
			if got := ask(t, to, "FCALL", f, "0"); got != fmt.Sprintf(":%d", i) {
				t.Errorf("%s: FCALL %s answered %s", name, f, got)
			}
			was, is := ask(t, from, "FUNCTION", "LIST", "WITHCODE", "LIBRARYNAME", l), ask(t, to, "FUNCTION", "LIST", "WITHCODE", "LIBRARYNAME", l)
			if was != is {
				t.Errorf("%s: library %s has become\n%.300s\nand was\n%.300s", name, l, is, was)
			}
		}
	}
}

// longComment is a comment that does not compress well.
func longComment(n int) string {
	text := []byte("-- ")
	for i := uint32(1); len(text) < n; i = i*1664525 + 1013904223 {
		text = append(text, 'a'+byte(i>>28))
	}
	return string(text) + "\n"
}

// TestEveryBitOfADumpCounts: a payload that was damaged anywhere is refused,
// and a prefix of one is.
func TestEveryBitOfADumpCounts(t *testing.T) {
	t.Parallel()
	conn := connectTo(t, dial(t))
	ask(t, conn, "FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() return 1 end)")
	dump, err := conn.Do("FUNCTION", "DUMP")
	if err != nil {
		t.Fatal(err)
	}
	for i := range dump.Text {
		damaged := []byte(dump.Text)
		damaged[i] ^= 1 << (i % 8)
		for _, payload := range []string{string(damaged), dump.Text[:i]} {
			if got := ask(t, conn, "FUNCTION", "RESTORE", payload, "REPLACE"); got != "-ERR DUMP payload version or checksum are wrong" {
				t.Fatalf("byte %d: FUNCTION RESTORE answered %s", i, got)
			}
		}
	}
}

// TestLibrariesSurviveABrokenInterpreter: a function that fills the stack
// takes the interpreter with it; the others are there all the same.
func TestLibrariesSurviveABrokenInterpreter(t *testing.T) {
	t.Parallel()
	conn := connectTo(t, dial(t))
	ask(t, conn, "FUNCTION", "LOAD", "#!lua name=deep\nredis.register_function('deep', function() local function f() return 1 + f() end return f() end)")
	ask(t, conn, "FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('other', function(keys, args) return args end)")
	for range 2 {
		if got := ask(t, conn, "FCALL", "deep", "0"); !strings.Contains(got, "stack overflow") {
			t.Errorf("deep recursion answered %s", got)
		}
		if got := ask(t, conn, "FCALL", "other", "0", "x"); got != "*1\n  \"x\"" {
			t.Errorf("the other function answered %s", got)
		}
	}
}
