package command

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// scanAll walks to the end and counts how often each key came.
func scanAll(t testing.TB, c *Ctx, between func(), options ...string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	cursor := "0"
	for {
		reply := call(t, c, append([]string{"SCAN", cursor}, options...)...)
		if reply.IsError() {
			t.Fatal(reply)
		}
		for _, key := range reply.Elems[1].Elems {
			seen[key.Str]++
		}
		if cursor = reply.Elems[0].Str; cursor == "0" {
			return seen
		}
		between()
	}
}

func TestScanFindsWhatStaysWhileOthersComeAndGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newTestCtx()
		stay := rapid.IntRange(0, 300).Draw(rt, "stay")
		for i := range stay {
			call(t, c, "SET", "stay"+strconv.Itoa(i), "1")
		}
		next := 0
		churn := func() {
			for range rapid.IntRange(0, 60).Draw(rt, "come") {
				call(t, c, "SET", "churn"+strconv.Itoa(next), "1")
				next++
			}
			for range rapid.IntRange(20, 80).Draw(rt, "go") {
				if next > 0 {
					next--
					call(t, c, "DEL", "churn"+strconv.Itoa(next))
				}
			}
		}
		count := rapid.IntRange(1, 100).Draw(rt, "count")
		seen := scanAll(t, c, churn, "COUNT", strconv.Itoa(count))
		for i := range stay {
			if seen["stay"+strconv.Itoa(i)] == 0 {
				rt.Fatalf("key %d of %d was never returned", i, stay)
			}
		}
	})
}

func TestScanCountBoundsTheWorkOfFilters(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	for i := range 5000 {
		call(t, c, "SET", fmt.Sprint("key", i), "1")
	}
	for _, filter := range [][]string{{"MATCH", "nothing"}, {"TYPE", "zset"}} {
		reply := call(t, c, append([]string{"SCAN", "0", "COUNT", "10"}, filter...)...)
		if reply.Elems[0].Str == "0" || len(reply.Elems[1].Elems) != 0 {
			t.Errorf("%q: one call walked over everything", filter)
		}
	}
	if seen := scanAll(t, c, func() {}, "MATCH", "key1?"); len(seen) != 10 {
		t.Errorf("MATCH key1? found %d keys", len(seen))
	}
}

func TestScanRemovesExpiredKeys(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	call(t, c, "MSET", "a", "1", "b", "1")
	call(t, c, "PEXPIRE", "a", "10")
	c.NowUs += 10_000
	if seen := scanAll(t, c, func() {}); len(seen) != 1 || seen["b"] != 1 {
		t.Errorf("found %v", seen)
	}
	expect(t, c, "(integer) 1", "DBSIZE")
}

func TestScanCursors(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]uint64{"": 0, "0": 0, "-0": 0, "+7": 7, "-1": 1<<64 - 1, "18446744073709551615": 1<<64 - 1} {
		if got, err := parseCursor([]byte(arg)); err != nil || got != want {
			t.Errorf("%q: %d, %v", arg, got, err)
		}
	}
	for _, arg := range []string{" 1", "-", "x", "1x", "18446744073709551616", "--1"} {
		if _, err := parseCursor([]byte(arg)); err != ErrCursor { //nolint:errorlint // a constant
			t.Errorf("%q: %v", arg, err)
		}
	}
}
