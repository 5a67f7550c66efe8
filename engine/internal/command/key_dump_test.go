package command

import (
	"strings"
	"testing"
)

// dumped is what DUMP returns for a key.
func dumped(t *testing.T, c *Ctx, key string) string {
	t.Helper()
	return call(t, c, "DUMP", key).Str
}

func TestDumpAndRestoreKeepValues(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	for _, request := range []string{
		"SET string text", "SET number -70000", "RPUSH list a 17 b", "SADD ints 1 2 3", "SADD set a b 3", "HSET hash f v g 17",
		"ZADD zset 1.5 a -inf b", "SET padded " + strings.Repeat("x", 1000),
	} {
		call(t, c, strings.Fields(request)...)
		key := strings.Fields(request)[1]
		expect(t, c, "OK", "RESTORE", "copy", "0", dumped(t, c, key), "REPLACE")
		got, want := c.DB.Peek([]byte("copy"), c.NowMs()), c.DB.Peek([]byte(key), c.NowMs())
		if DigestValue(got) != DigestValue(want) {
			t.Errorf("%s: not the same after DUMP and RESTORE", key)
		}
		if got, want := run(t, c, "OBJECT", "ENCODING", "copy"), run(t, c, "OBJECT", "ENCODING", key); got != want {
			t.Errorf("%s: encoding %s, want %s", key, got, want)
		}
	}
}

func TestRestoredKeyExpires(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	call(t, c, "SET", "k", "v", "PX", "500")
	payload := dumped(t, c, "k")
	call(t, c, "RESTORE", "relative", "1000", payload)
	expect(t, c, "(integer) 1000", "PTTL", "relative")
	c.NowUs += 999_000
	expect(t, c, "(integer) 1", "EXISTS", "relative")
	c.NowUs += 1_000
	expect(t, c, "(integer) 0", "EXISTS", "relative")
	call(t, c, "RESTORE", "for ever", "0", payload)
	expect(t, c, "(integer) -1", "PTTL", "for ever")
	dirty := c.Space.Dirty
	expect(t, c, "OK", "RESTORE", "past", "1", payload, "ABSTTL")
	if c.Space.Dirty != dirty {
		t.Error("a key that had expired before it was there counts as a change")
	}
	expect(t, c, "OK", "RESTORE", "for ever", "1", payload, "ABSTTL", "REPLACE")
	expect(t, c, "(integer) 0", "EXISTS", "for ever")
	if c.Space.Dirty == dirty {
		t.Error("the key that was replaced went, and nobody was told")
	}
}

func TestRestoredKeyWasUsedLongAgo(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	call(t, c, "SET", "k", "v")
	payload := dumped(t, c, "k")
	call(t, c, "RESTORE", "idle", "0", payload, "IDLETIME", "1000")
	expect(t, c, "(integer) 1000", "OBJECT", "IDLETIME", "idle")
	expect(t, c, "OK", "RESTORE", "ancient", "0", payload, "IDLETIME", "9223372036854775807")
	expect(t, c, "(integer) 214748364", "OBJECT", "IDLETIME", "ancient") // almost seven years
}

// TestRestoreRefusesLyingListpacks: the lengths that a packed collection says of
// itself have to be true, even if the payload's checksum is right.
func TestRestoreRefusesLyingListpacks(t *testing.T) {
	t.Parallel()
	c := newTestCtx()
	good := "\x10\x0d\x0d\x00\x00\x00\x02\x00\x81\x66\x02\x81\x76\x02\xff\x0a\x00\x20\xf1\x3d\x44\x23\x54\x08\x9d"
	expect(t, c, "OK", "RESTORE", "good", "0", good)
	for what, payload := range map[string]string{
		"more bytes than there are":      "\x10\x0d\x0e\x00\x00\x00\x02\x00\x81\x66\x02\x81\x76\x02\xff\x0a\x00\x6e\x89\x3c\x65\x61\x6a\xde\x66",
		"an element beyond the end":      "\x10\x0d\x0d\x00\x00\x00\x02\x00\xbf\x66\x02\x81\x76\x02\xff\x0a\x00\xce\x97\xc2\xf8\x65\xb5\x91\x6b",
		"an element linked wrongly back": "\x10\x0d\x0d\x00\x00\x00\x02\x00\x81\x66\x03\x81\x76\x02\xff\x0a\x00\xd2\x1e\x3f\xa7\xc5\x09\xa1\xff",
		"three elements instead of two":  "\x10\x0d\x0d\x00\x00\x00\x03\x00\x81\x66\x02\x81\x76\x02\xff\x0a\x00\x46\xdc\xa6\x6d\x82\x8e\x61\xbc",
		"no end":                         "\x10\x0d\x0d\x00\x00\x00\x02\x00\x81\x66\x02\x81\x76\x02\x00\x0a\x00\xb4\x22\xe4\x18\x5e\x0c\x96\x50",
	} {
		if got := run(t, c, "RESTORE", "k", "0", payload); got != "(error) ERR Bad data format" {
			t.Errorf("%s: %s", what, got)
		}
	}
	expect(t, c, "(integer) 0", "EXISTS", "k")
}
