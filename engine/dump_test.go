package engine_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestDumpMovesKeysBetweenServers moves keys of all types, small and large, from
// Redis to the engine and from the engine to Redis.
func TestDumpMovesKeysBetweenServers(t *testing.T) {
	t.Parallel()
	servers := map[string]*difftest.Conn{}
	for name, dial := range map[string]difftest.Dial{"Redis": difftest.Redis(t).Dial, "engine": dial(t)} {
		conn, err := difftest.Connect(dial)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		servers[name] = conn
	}
	for from, to := range map[string]string{"Redis": "engine", "engine": "Redis"} {
		source, target := servers[from], servers[to]
		for _, request := range keysOfAllTypes(t) {
			must(t, source, request...)
			payload := must(t, source, "DUMP", "key").Text
			must(t, target, "RESTORE", "moved", "0", payload, "REPLACE")
			want := must(t, source, "DEBUG", "DIGEST-VALUE", "key").String()
			if got := must(t, target, "DEBUG", "DIGEST-VALUE", "moved").String(); got != want {
				t.Errorf("from %s to %s: %.60q: digest %s, want %s", from, to, request, got, want)
			}
			want = must(t, source, "OBJECT", "ENCODING", "key").Text
			if got := must(t, target, "OBJECT", "ENCODING", "moved").Text; got != want {
				t.Errorf("from %s to %s: %.60q: %s, want %s", from, to, request, got, want)
			}
			must(t, source, "DEL", "key")
		}
	}
}

// TestDumpMovesStreamsBetweenServers moves streams with gaps, groups and pending
// entries both ways, and goes on adding and trimming on both sides: where chunks end, and
// so what trimming with ~ removes, must not show that the stream has moved.
func TestDumpMovesStreamsBetweenServers(t *testing.T) {
	t.Parallel()
	redis, ours := connectTo(t, difftest.Redis(t, "--sanitize-dump-payload", "yes").Dial), connectTo(t, dial(t))
	for name, way := range map[string][2]*difftest.Conn{"from Redis": {redis, ours}, "to Redis": {ours, redis}} {
		source, target := way[0], way[1]
		for i := range 730 {
			must(t, source, "XADD", name, strconv.Itoa(i/3+1)+"-"+strconv.Itoa(i%3+1), "f"+strconv.Itoa(i/90%2), noiseOf(i), "g", strconv.Itoa(i*i))
		}
		for i := 1; i < 244; i += 7 {
			must(t, source, "XDEL", name, strconv.Itoa(i)+"-2", strconv.Itoa(i+2)+"-1")
		}
		must(t, source, "XTRIM", name, "MAXLEN", "600")
		must(t, source, "XGROUP", "CREATE", name, "group", "50")
		must(t, source, "XGROUP", "CREATE", name, "other", "99-1", "ENTRIESREAD", "5")
		must(t, source, "XREADGROUP", "GROUP", "group", "ann", "COUNT", "20", "STREAMS", name, ">")
		must(t, source, "XREADGROUP", "GROUP", "group", "bob", "COUNT", "9", "STREAMS", name, ">")
		must(t, source, "XACK", name, "group", "60-1", "60-2")
		must(t, target, "RESTORE", name, "0", must(t, source, "DUMP", name).Text)
		var adds [][]string
		for i := range 60 {
			adds = append(adds, []string{"XADD", name, "900-" + strconv.Itoa(i+1), "f0", noiseOf(i)}, []string{"XINFO", "STREAM", name})
		}
		for i, request := range append(adds, [][]string{
			{"XINFO", "STREAM", name},
			{"XINFO", "GROUPS", name},
			{"XPENDING", name, "group"},
			{"DEBUG", "DIGEST-VALUE", name},
			{"XADD", name, "1000-1", "f", "v"},
			{"XTRIM", name, "MAXLEN", "~", "250"},
			{"XADD", name, "1000-2", "f", noiseOf(9)},
			{"XREADGROUP", "GROUP", "group", "ann", "COUNT", "30", "STREAMS", name, ">"},
			{"XRANGE", name, "-", "+"},
			{"XTRIM", name, "MINID", "~", "180"},
			{"XINFO", "STREAM", name},
			{"XINFO", "GROUPS", name},
		}...) {
			if want, got := must(t, source, request...).String(), must(t, target, request...).String(); got != want {
				t.Fatalf("%s, request %d, %q: the copy says\n%.800s\nthe original\n%.800s", name, i, request, got, want)
			}
		}
	}
}

// noiseOf is text of a length that varies, with integers among it.
func noiseOf(i int) string {
	if i%5 == 0 {
		return strconv.Itoa(i - 300)
	}
	return strings.Repeat(strconv.Itoa(i), 1+i%37)
}

// keysOfAllTypes are requests that each make a key.
func keysOfAllTypes(t *testing.T) [][]string {
	t.Helper()
	random := rand.NewChaCha8([32]byte{7})
	binary := make([]byte, 10<<20)
	if _, err := random.Read(binary); err != nil {
		t.Fatal(err)
	}
	numbers := func(prefix string, n int) (words []string) {
		for i := range n {
			words = append(words, prefix+strconv.Itoa(i))
		}
		return words
	}
	large := string(binary)
	return [][]string{
		{"SET", "key", ""},
		{"SET", "key", "\x00\xff\r\n"},
		{"SET", "key", "-9223372036854775808"},
		{"SET", "key", large},
		{"SET", "key", strings.Repeat("0123456789", 1<<20)},
		append([]string{"RPUSH", "key", "1", "", "-70000", large}, numbers("element", 3000)...),
		append([]string{"SADD", "key"}, numbers("", 512)...),
		append([]string{"SADD", "key", large}, numbers("member", 3000)...),
		{"HSET", "key", "f", "v", "5000000000", "\x00"},
		append([]string{"HSET", "key", "f", large}, numbers("f", 3000)...),
		{"ZADD", "key", "1.5", "a", "-inf", "b", "0.1", "c"},
		{"ZADD", "key", "inf", large, "5e-324", "b"},
		{"GEOADD", "key", "13.361389", "38.115556", "Palermo", "15.087269", "37.502669", "Catania"},
		append([]string{"PFADD", "key"}, numbers("few", 100)...),
		append([]string{"PFADD", "key"}, numbers("many", 5000)...),
	}
}

// must sends a request that has to succeed.
func must(t *testing.T, conn *difftest.Conn, args ...string) difftest.Value {
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
