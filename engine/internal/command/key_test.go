package command

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// Whatever moves a key takes its expiry along; whatever replaces a value drops
// the old expiry, except where said.
func TestExpiryFollowsTheKey(t *testing.T) {
	t.Parallel()
	const kept, none = "(integer) 50", "(integer) -1"
	for _, test := range []struct {
		args []string
		key  string
		db   int
		want string
	}{
		{[]string{"RENAME", "k", "to"}, "to", 0, kept},
		{[]string{"RENAMENX", "k", "new"}, "new", 0, kept},
		{[]string{"COPY", "k", "to", "REPLACE"}, "to", 0, kept},
		{[]string{"COPY", "k", "to", "DB", "3"}, "to", 3, kept},
		{[]string{"MOVE", "k", "3"}, "k", 3, kept},
		{[]string{"RENAME", "to", "k"}, "k", 0, none},
		{[]string{"SET", "k", "v"}, "k", 0, none},
		{[]string{"SET", "k", "v", "KEEPTTL"}, "k", 0, kept},
		{[]string{"SET", "k", "v", "NX"}, "k", 0, kept},
		{[]string{"GETSET", "k", "v"}, "k", 0, none},
		{[]string{"MSET", "k", "v"}, "k", 0, none},
		{[]string{"GETEX", "k", "PERSIST"}, "k", 0, none},
		{[]string{"INCR", "k"}, "k", 0, kept},
		{[]string{"APPEND", "k", "v"}, "k", 0, kept},
		{[]string{"SETRANGE", "k", "0", "v"}, "k", 0, kept},
		{[]string{"INCRBYFLOAT", "k", "1"}, "k", 0, kept},
	} {
		c := newTestCtx()
		call(t, c, "SET", "k", "1", "EX", "50")
		call(t, c, "SET", "to", "2")
		if reply := call(t, c, test.args...); reply.IsError() {
			t.Errorf("%q: %s", test.args, reply)
		}
		c.DB = c.Space.DB(test.db)
		if got := run(t, c, "TTL", test.key); got != test.want {
			t.Errorf("after %q: TTL %s, want %s", test.args, got, test.want)
		}
	}
}

func TestExpireInThePastDeletes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"EXPIRE", "k", "0"},
		{"EXPIRE", "k", "-9223372036854775", "LT"},
		{"PEXPIRE", "k", "-9223372036854775808"},
		{"EXPIREAT", "k", "1"},
		{"PEXPIREAT", "k", "0"},
		{"GETEX", "k", "PXAT", "1"},
	} {
		c := newTestCtx()
		call(t, c, "SET", "k", "1")
		dirty := c.Space.Dirty
		if reply := call(t, c, args...); reply.IsError() || c.Space.Dirty == dirty {
			t.Errorf("%q: %s, or no change reported", args, reply)
		}
		expect(t, c, "(integer) 0", "DBSIZE")
	}
}

// A key is there until the ms of its expiry and gone from then on.
func TestKeysExpireOnTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newTestCtx()
		ttlMs := rapid.Int64Range(1, 1e9).Draw(rt, "ttl")
		call(t, c, "SET", "k", "v", "PX", strconv.FormatInt(ttlMs, 10))
		c.NowUs += ttlMs*1000 - 1
		if got := run(t, c, "GET", "k"); got != `"v"` {
			rt.Fatalf("1 µs before: %s", got)
		}
		c.NowUs++
		for _, args := range [][]string{{"EXISTS", "k"}, {"DEL", "k"}, {"TOUCH", "k"}, {"PERSIST", "k"}, {"EXPIRE", "k", "1"}} {
			if got := run(t, c, args...); got != "(integer) 0" {
				rt.Fatalf("%q: %s", args, got)
			}
		}
	})
}

func TestRandomkeyReachesEveryKey(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	expect(t, c, "(nil)", "RANDOMKEY")
	const keys, draws = 20, 20_000
	for i := range keys {
		call(t, c, "SET", strconv.Itoa(i), "v")
	}
	seen := map[string]int{}
	for range draws {
		seen[call(t, c, "RANDOMKEY").Str]++
	}
	for key, n := range seen {
		if n < draws/keys/2 || n > draws/keys*2 {
			t.Errorf("key %s came %d times of %d", key, n, draws)
		}
	}
	if len(seen) != keys {
		t.Errorf("%d of %d keys were drawn", len(seen), keys)
	}
}

// A command that only looks must not count as a use, nor as a change.
func TestInspectionIsNotUse(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	call(t, c, "SET", "k", "v")
	dirty := c.Space.Dirty
	c.NowUs += 90_000_000
	for _, args := range [][]string{{"TYPE", "k"}, {"TTL", "k"}, {"EXISTS", "k"}, {"OBJECT", "ENCODING", "k"}, {"SCAN", "0"}, {"KEYS", "*"}} {
		call(t, c, args...)
	}
	expect(t, c, "(integer) 90", "OBJECT", "IDLETIME", "k")
	expect(t, c, "(integer) 1", "TOUCH", "k")
	expect(t, c, "(integer) 0", "OBJECT", "IDLETIME", "k")
	if c.Space.Dirty != dirty {
		t.Error("reading counted as a change")
	}
}
