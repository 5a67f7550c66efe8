package engine_test

import (
	"os"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// book is the guide along Redis in Action. Its examples are transcripts.
const book = "../docs/book/*.md"

// TestBookExamplesOnRedis holds every example of the guide against a real
// redis-server. With -record it writes the replies.
func TestBookExamplesOnRedis(t *testing.T) {
	if *record {
		difftest.RecordPages(t, book)
		return
	}
	difftest.Pages(t, book, func(t testing.TB) difftest.Dial { return difftest.Redis(t).Dial })
}

// TestBookExamplesOnEngine holds the engine against the same examples.
func TestBookExamplesOnEngine(t *testing.T) {
	if *record {
		t.Skip("replies are recorded from Redis alone")
	}
	difftest.Pages(t, book, dial)
}

// TestBookOptionsAreTaken starts a redis-server and an engine with the options of
// persistence that the guide shows, and asks them for those. Only the folder is
// the test's own.
func TestBookOptionsAreTaken(t *testing.T) {
	text, err := os.ReadFile("../docs/book/ch04.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```conf\n")
	block, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no block is fenced as conf")
	}
	want := map[string]string{}
	var args, settings []string
	for line := range strings.Lines(block) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" && name != "dir" {
			want[name] = strings.Replace(value, "64mb", "67108864", 1)
			args = append(args, append([]string{"--" + name}, strings.Fields(value)...)...)
			settings = append(settings, name+"="+value)
		}
	}
	onEach(t, difftest.Redis(t, args...).Dial, keepIn(t, t.TempDir(), settings...).Dial, func(t *testing.T, dial difftest.Dial) {
		conn := connect(t, dial)
		for name, value := range want {
			if got := do(t, conn, "CONFIG", "GET", name); len(got.Elems) != 2 || got.Elems[1].Text != value {
				t.Errorf("%s is %v, want %s", name, got, value)
			}
		}
	})
	if len(want) < 9 {
		t.Errorf("only %d options found", len(want))
	}
}

// onEach runs a test on a Redis and on an engine.
func onEach(t *testing.T, redis, engine difftest.Dial, test func(t *testing.T, dial difftest.Dial)) {
	t.Helper()
	t.Run("Redis", func(t *testing.T) { test(t, redis) })
	t.Run("engine", func(t *testing.T) { test(t, engine) })
}
