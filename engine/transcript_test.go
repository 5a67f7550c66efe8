package engine_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

var record = flag.Bool("record", false, "write what a real redis-server replies into the transcripts")

// transcripts are one file for each family of commands. How to read, write and
// record them says package difftest.
const transcripts = "testdata/transcripts/*.txt"

// fuzzRequests is the length of one random stream: a second or so.
const fuzzRequests = 5000

// TestTranscriptRedis holds the transcripts against a real redis-server, so
// that they cannot drift from what Redis does. With -record it writes them.
func TestTranscriptRedis(t *testing.T) {
	if *record {
		difftest.Record(t, transcripts)
		return
	}
	difftest.Transcripts(t, transcripts, func(t testing.TB) difftest.Dial { return difftest.Redis(t).Dial })
}

// TestTranscriptEngine holds the engine against the transcripts.
func TestTranscriptEngine(t *testing.T) {
	if *record {
		t.Skip("replies are recorded from Redis alone")
	}
	difftest.Transcripts(t, transcripts, dial)
}

// TestFuzzAgainstRedis sends random requests to the engine and to Redis. The
// environment variable SEED adds a stream.
func TestFuzzAgainstRedis(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			difftest.Fuzz(t, seed, fuzzRequests, difftest.Redis(t).Dial, dial(t))
		})
	}
}

// dial opens an engine for one test and returns how to connect to it.
func dial(t testing.TB) difftest.Dial {
	t.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.Dial
}
