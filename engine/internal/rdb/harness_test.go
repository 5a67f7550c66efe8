package rdb_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/command"
	"github.com/signalbox-io/signalbox/engine/internal/ds"
	"github.com/signalbox-io/signalbox/engine/internal/keyspace"
	"github.com/signalbox-io/signalbox/engine/internal/rdb"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// usual are the limits of a server as it is installed.
var usual = ds.DefaultLimits()

func decode(payload []byte) (any, error) { return rdb.DecodePayload(payload, &usual) }

// noise is n bytes that do not compress.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(b) // it never fails
	return string(b)
}

// texts are strings at the edges of how strings, lengths and elements of packed
// collections are encoded: integers at all widths, what only looks like one,
// lengths around each bound, all bytes, compressible or not.
func texts() []string {
	texts := []string{"", "a", "-", "-0", "007", "+1", "1.5", "99999999999", "9223372036854775808", "123456789012345678901234567890"}
	for _, bits := range []int{3, 6, 7, 12, 15, 23, 31, 62} {
		for _, near := range []int64{-1, 0, 1} {
			texts = append(texts, strconv.FormatInt(1<<bits+near, 10), strconv.FormatInt(-1<<bits+near, 10))
		}
	}
	texts = append(texts, strconv.FormatInt(math.MaxInt64, 10), strconv.FormatInt(math.MinInt64, 10))
	for _, n := range []int{5, 20, 21, 62, 63, 64, 65, 125, 126, 127, 255, 256, 4000, 4094, 4095, 4096} {
		texts = append(texts, noise(n), strings.Repeat("x", n), strings.Repeat("abc", n/3+1))
	}
	return texts
}

// large are strings around the bounds of the longest forms.
var large = sync.OnceValue(func() []string {
	return []string{
		noise(8192), noise(16377), noise(16378), noise(16383), noise(16384), noise(100_000), strings.Repeat("long ", 30_000),
		noise(1<<21 - 6), noise(1<<21 - 1),
	}
})

// huge are values of 10 MB.
func huge() map[string]any {
	random, text := noise(10<<20), strings.Repeat("0123456789", 1<<20)
	return map[string]any{
		"huge noise": keyspace.NewString([]byte(random)), "huge text": keyspace.NewString([]byte(text)),
		"list of huge texts": list("a", random, text, "b"), "hash of huge texts": hash("f", random, text, "v"),
	}
}

func list(elements ...string) *ds.Deque {
	l := ds.NewDeque()
	for _, e := range elements {
		l.PushBack(e)
	}
	return l
}

func set(members ...string) *ds.Set {
	s := ds.NewSet()
	for _, m := range members {
		s.Add([]byte(m))
	}
	return s
}

func hash(pairs ...string) *ds.Hash {
	h := ds.NewHash()
	for i := 0; i < len(pairs); i += 2 {
		h.Set([]byte(pairs[i]), []byte(pairs[i+1]))
	}
	return h
}

func zset(scores []float64, prefix string) *ds.SortedSet {
	z := ds.NewSortedSet()
	for i, score := range scores {
		z.Add(prefix+strconv.Itoa(i), score)
	}
	return z
}

func numbered(n int, prefix string) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = prefix + strconv.Itoa(i)
	}
	return s
}

var scores = []float64{
	0, math.Copysign(0, -1), 1, -1, 1.5, 0.1, 1e20, 1e17, 123456789012, -2.25, 1e300, 5e-324, math.MaxFloat64,
	math.Inf(1), math.Inf(-1), 3, 1 << 53, -1 << 62, 17, 3.141592653589793,
}

// samples are values of every type, small and large, by name.
func samples() map[string]any {
	all := map[string]any{}
	for i, text := range append(texts(), large()...) {
		all["string "+strconv.Itoa(i)] = keyspace.NewString([]byte(text))
	}
	all["list of one"] = list("x")
	all["list of texts"] = list(texts()...)
	all["list of large texts"] = list(append(large(), "small", "1")...)
	all["list of many"] = list(numbered(20_000, "element-")...)
	all["list of numbers"] = list(numbered(5_000, "")...)
	all["set of small integers"] = set(numbered(512, "-")...)
	all["set of few integers"] = set("5", "-70000", "12")
	all["set of wide integers"] = set("1", strconv.FormatInt(math.MaxInt64, 10), strconv.FormatInt(math.MinInt64, 10))
	all["set of 513 integers"] = set(numbered(513, "")...)
	all["set of texts"] = set(texts()...)
	all["set of large texts"] = set(large()...)
	all["hash of one"] = hash("f", "v")
	all["hash of numbers"] = hash("1", "2", "-3", "40000", "f", "9223372036854775807")
	all["hash of 512"] = hash(append(numbered(512, "a"), numbered(512, "b")...)...)
	all["hash of 513"] = hash(append(numbered(513, "a"), numbered(513, "b")...)...)
	all["hash with a long value"] = hash("f", noise(65), "g", "1", "", "")
	all["hash of large texts"] = hash(append(large(), "f")...)
	all["zset of one"] = zset([]float64{1}, "m")
	all["zset of scores"] = zset(scores, "m")
	all["zset of numbers"] = zset(scores, "")
	all["zset with a long member"] = zset(scores, noise(65))
	all["zset of 128"] = zset(make([]float64, 128), "m")
	all["zset of 129"] = zset(make([]float64, 129), "m")
	return all
}

// fill makes a server hold value under key by ordinary commands.
func fill(t testing.TB, conn *difftest.Conn, key string, value any) {
	t.Helper()
	var args []string
	name := ""
	switch v := value.(type) {
	case *keyspace.String:
		do(t, conn, "SET", key, string(v.Text(nil)))
		return
	case *ds.Deque:
		name = "RPUSH"
		for _, e := range v.Range(0, v.Len()) {
			args = append(args, e)
		}
	case *ds.Set:
		name = "SADD"
		for m := range v.All() {
			args = append(args, m)
		}
	case *ds.Hash:
		name = "HSET"
		for f, content := range v.All() {
			args = append(args, f, content)
		}
	case *ds.SortedSet:
		name = "ZADD"
		for m, score := range v.All() {
			args = append(args, fmt.Sprintf("%.17g", score), m)
		}
	}
	for len(args) > 0 {
		n := min(len(args), 1000)
		do(t, conn, append([]string{name, key}, args[:n]...)...)
		args = args[n:]
	}
}

func connect(t testing.TB, server *difftest.Server) *difftest.Conn {
	t.Helper()
	conn, err := difftest.Connect(server.Dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// do sends a request that must succeed.
func do(t testing.TB, conn *difftest.Conn, args ...string) difftest.Value {
	t.Helper()
	reply, err := conn.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Kind == difftest.Error {
		t.Fatalf("%.60q: %s", args, reply.Text)
	}
	return reply
}

// digestValue is the digest of a value of a server.
func digestValue(t testing.TB, conn *difftest.Conn, key string) string {
	t.Helper()
	return do(t, conn, "DEBUG", "DIGEST-VALUE", key).Elems[0].Text
}

// digestOf is the digest of a value of ours.
func digestOf(value any) string {
	return command.DigestValue(keyspace.NewSpace().DB(0).Put(nil, value, 0))
}
