package engine_test

import (
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
