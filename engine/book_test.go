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

// TestBookOptionsAreTakenByRedis starts a redis-server with the options of
// persistence that the guide shows, and asks it for them. Only the folder is
// the test's own.
func TestBookOptionsAreTakenByRedis(t *testing.T) {
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
	var args []string
	for line := range strings.Lines(block) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" && name != "dir" {
			want[name] = strings.Replace(value, "64mb", "67108864", 1)
			args = append(args, append([]string{"--" + name}, strings.Fields(value)...)...)
		}
	}
	conn, err := difftest.Connect(difftest.Redis(t, args...).Dial)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, value := range want {
		reply, err := conn.Do("CONFIG", "GET", name)
		if err != nil || len(reply.Elems) != 2 || reply.Elems[1].Text != value {
			t.Errorf("%s is %v, %v, want %s", name, reply, err, value)
		}
	}
	if len(want) < 9 {
		t.Errorf("only %d options found", len(want))
	}
}
