package engine_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/cases"
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
// environment variable SEED adds a stream; with FUZZ_FOR, a duration, each
// stream is followed by others until it has lasted so long. With FUZZ_ONLY, names
// of groups of the grammar such as "geo hll", there are only their requests. How many
// go on at a time says -parallel.
func TestFuzzAgainstRedis(t *testing.T) {
	seeds := cases.Few([]uint64{1, 2, 3, 4})
	if text := os.Getenv("SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		seeds = append(seeds, seed)
	}
	var long time.Duration
	if text := os.Getenv("FUZZ_FOR"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("FUZZ_FOR: %v", err)
		}
	}
	for _, first := range seeds {
		t.Run(strconv.FormatUint(first, 10), func(t *testing.T) {
			t.Parallel()
			redis, ours := difftest.Redis(t).Dial, dial(t)
			streams, end := rand.New(rand.NewPCG(first, 1)), time.Now().Add(long)
			for seed, n := first, 1; ; seed, n = streams.Uint64(), n+1 {
				difftest.Fuzz(t, seed, fuzzRequests, redis, ours)
				if t.Failed() || !time.Now().Before(end) {
					t.Logf("%d streams of %d requests each", n, fuzzRequests)
					return
				}
			}
		})
	}
}

// dial opens an engine for one test, with DEBUG for its clients, and returns how to
// connect to it.
func dial(t testing.TB) difftest.Dial {
	t.Helper()
	config, err := engine.ReadConfig("", "enable-debug-command=yes")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(engine.Options{Config: config})
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
