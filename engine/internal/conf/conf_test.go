package conf

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "bytes") >> rapid.IntRange(0, 62).Draw(t, "shift")
		n = n / 1024 * rapid.SampledFrom([]int64{1, 1024}).Draw(t, "unit")
		if got, ok := parseBytes(formatBytes(n)); !ok || got != n {
			t.Fatalf("%d is written %s and read %d", n, formatBytes(n), got)
		}
		text := rapid.String().Draw(t, "text")
		if words, ok := resp.SplitWords(quoted(text)); !ok || len(words) != 1 || words[0] != text {
			t.Fatalf("%q is written %s and read %q", text, quoted(text), words)
		}
	})
}

// TestRewrittenFileHasTheSameSettings: whatever a file says, the file that
// CONFIG REWRITE makes of it says the same, and so does one made of nothing.
func TestRewrittenFileHasTheSameSettings(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"# comment", "", "maxmemory 1gb", "MAXMEMORY 5000", "save 60 1", "save 1 2", "timeout 3", "requirepass \"a \\x00 b\"",
		"client-output-buffer-limit replica 1 2 3", "client-output-buffer-limit normal 1kb 2mb 3", "notify-keyspace-events KEA",
		"bind 127.0.0.1 -::1", "bind \"\"", "unixsocketperm 700", "maxmemory-clients 5%", "daemonize yes", "hz 99", "lua-time-limit 7",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, l := range rapid.SliceOfN(line, 0, 8).Draw(t, "lines") {
			text += l + "\n"
		}
		s := New()
		if err := s.Load(File{"a.conf", text}, nil); err != nil {
			t.Fatal(err)
		}
		for _, old := range []string{text, ""} {
			again := New()
			rewritten := s.Rewrite(old, nil)
			if err := again.Load(File{"b.conf", rewritten}, nil); err != nil {
				t.Fatalf("%v\n%s", err, rewritten)
			}
			for i := range s.values {
				if want, got := s.values[i], again.values[i]; got.text != want.text || got.number != want.number {
					t.Fatalf("%s is %q, want %q, in\n%s", want.param.Name, got.text, want.text, rewritten)
				}
			}
		}
	})
}

// TestChangesAreAppliedAllOrNone: where one cannot be applied, the ones before
// it are applied again with their old values.
func TestChangesAreAppliedAllOrNone(t *testing.T) {
	s := New()
	var applied []int64
	s.OnChange("timeout", func() error {
		applied = append(applied, s.Int("timeout"))
		return nil
	})
	s.OnChange("maxclients", func() error {
		if s.Int("maxclients") == 5 {
			return errors.New("out of files")
		}
		return nil
	})
	err := s.Set([]Pair{{"timeout", "7"}, {"maxclients", "5"}})
	const want = "CONFIG SET failed (possibly related to argument 'maxclients') - out of files"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(applied) != 2 || applied[0] != 7 || applied[1] != 0 || s.Int("timeout") != 0 || s.Int("maxclients") != 10000 {
		t.Errorf("applied %v; timeout %d, maxclients %d", applied, s.Int("timeout"), s.Int("maxclients"))
	}
}
