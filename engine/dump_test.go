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
