package engine_test

import (
	"flag"
	"testing"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

var record = flag.Bool("record", false, "write what a real redis-server replies into the transcripts")

// transcripts are one file for each family of commands. How to read, write and
// record them says package difftest.
const transcripts = "testdata/transcripts/*.txt"

// TestTranscriptRedis holds the transcripts against a real redis-server, so
// that they cannot drift from what Redis does. With -record it writes them.
func TestTranscriptRedis(t *testing.T) {
	if *record {
		difftest.Record(t, transcripts)
		return
	}
	difftest.Transcripts(t, transcripts, func(t testing.TB) difftest.Dial { return difftest.Redis(t).Dial })
}
