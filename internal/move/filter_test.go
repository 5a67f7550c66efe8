package move

import (
	"strings"
	"testing"
	"time"
)

func request(line string) [][]byte {
	var words [][]byte
	for word := range strings.FieldsSeq(line) {
		words = append(words, []byte(word))
	}
	return words
}

func TestWhatOfTheStreamIsMeant(t *testing.T) {
	f := newFilter("sb:")
	for line, want := range map[string]string{
		"SET sb:a 1":                   "SET sb:a 1",
		"SET a sb:1":                   "",
		"DEL a sb:b c sb:d":            "DEL sb:b sb:d",
		"unlink a b":                   "",
		"MSET a 1 sb:b 2 c 3 sb:d 4":   "MSET sb:b 2 sb:d 4",
		"XGROUP CREATE sb:s g 0":       "XGROUP CREATE sb:s g 0",
		"XGROUP CREATE s g 0":          "",
		"ZUNIONSTORE sb:z 2 sb:a sb:b": "ZUNIONSTORE sb:z 2 sb:a sb:b",
		"PUBLISH sb:channel x":         "",
		"FUNCTION FLUSH":               "",
		"RENAME a b":                   "",
		"RENAME sb:a b":                "error RENAME on keys that begin with sb: and on others",
		"LMOVE sb:a b LEFT RIGHT":      "error LMOVE on keys",
		"ZUNIONSTORE sb:z 2 a sb:b":    "error ZUNIONSTORE on keys",
		"FLUSHALL":                     "error FLUSHALL",
		"SWAPDB 0 1":                   "error SWAPDB",
		"HSETEX sb:h 1":                "error nobody knows its keys",
	} {
		v, err := f.judge(0, request(line))
		var words []string
		for _, word := range v.send {
			words = append(words, string(word))
		}
		switch why, fails := strings.CutPrefix(want, "error "); {
		case fails && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%s: %v", line, err)
		case !fails && (err != nil || strings.Join(words, " ") != want):
			t.Errorf("%s: %q, %v", line, words, err)
		}
	}
}

// TestEverythingGoesWithoutMatch: also what is not known here.
func TestEverythingGoesWithoutMatch(t *testing.T) {
	f := newFilter("")
	for _, line := range []string{"FLUSHALL", "SWAPDB 0 1", "NEWCOMMAND a b", "PUBLISH a b", "RENAME a b", "MULTI", "EXEC"} {
		if v, err := f.judge(0, request(line)); err != nil || len(v.send) != len(request(line)) {
			t.Errorf("%s: %q, %v", line, v.send, err)
		}
	}
}

// TestWhenAKeyIsOver: a request on a key tells when the key had ended before the request.
func TestWhenAKeyIsOver(t *testing.T) {
	f := newFilter("")
	f.expires(0, []byte("k"), 100)
	f.expires(1, []byte("k"), 50)
	for _, step := range []struct {
		line string
		want int64 // 0: it does not end
	}{
		{"PEXPIREAT k 200", 100},
		{"HSET k a b", 200},
		{"SET k v KEEPTTL", 200},
		{"SET k v PXAT 300", 200},
		{"EXPIREAT k 1", 300},
		{"APPEND k x", 1000},
		{"RENAME k l", 1000},
		{"INCR l", 1000},
		{"PERSIST l", 1000},
		{"INCR l", 0},
		{"SET n v EXAT 2", 0},
		{"DEL x n", 2000},
		{"SET n v", 0},
		{"SET PXAT PXAT PXAT 7", 0},
		{"GET PXAT", 7},
		{"SET PXAT 1", 7},
		{"GET PXAT", 0},
		{"RESTORE r 5 xxx ABSTTL", -1}, // whatever it says
	} {
		v, err := f.judge(0, request(step.line))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case step.want == 0 && len(v.keys) > 0, step.want > 0 && (len(v.keys) == 0 || v.firstMs != step.want), step.want < 0 && v.firstMs != 0:
			t.Errorf("%s: %v end at %d, want %d", step.line, v.keys, v.firstMs, step.want)
		}
	}
}

func TestClocksThatDifferAreRefused(t *testing.T) {
	for _, c := range []struct {
		apart, doubt time.Duration
		want         string
	}{
		{90 * time.Millisecond, 0, ""},
		{120 * time.Millisecond, 30 * time.Millisecond, ""}, // it may be 90
		{-150 * time.Millisecond, 20 * time.Millisecond, "150ms behind the source's"},
		{2 * time.Second, time.Second, "2s ahead of the source's"},
	} {
		err := agree(c.apart, c.doubt, 100*time.Millisecond)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.apart, err)
		}
	}
}
