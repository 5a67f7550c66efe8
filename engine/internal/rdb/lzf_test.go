package rdb

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func expandAll(t rapid.TB, packed []byte) []byte {
	t.Helper()
	n, ok := lzfLength(packed)
	if !ok {
		t.Fatalf("what was compressed is damaged: %q", packed)
	}
	expanded := lzfExpand(nil, packed)
	if len(expanded) != n {
		t.Fatalf("%d bytes, announced %d", len(expanded), n)
	}
	return expanded
}

func TestCompressedExpandsToTheSame(t *testing.T) {
	t.Parallel()
	var z lzf
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 20)
		src := bytes.Join(rapid.SliceOfN(word, 0, 500).Draw(t, "words"), nil)
		src = append(src, bytes.Repeat(src, rapid.IntRange(0, 3).Draw(t, "repeat"))...)
		packed, ok := z.compress([]byte("before"), src, 2*len(src)+10)
		if !ok {
			t.Fatalf("%d bytes took more than twice as many", len(src))
		}
		if got := expandAll(t, packed[len("before"):]); !bytes.Equal(got, src) {
			t.Fatalf("got %q, want %q", got, src)
		}
	})
}

func TestCompressionPays(t *testing.T) {
	t.Parallel()
	var z lzf
	run := []byte(strings.Repeat("x", 1<<20))
	packed, ok := z.compress(nil, run, len(run)/80)
	if !ok || !bytes.Equal(expandAll(t, packed), run) {
		t.Errorf("a run of %d bytes takes %d", len(run), len(packed))
	}
	text := []byte(strings.Repeat(`{"user":"someone","amount":17,"currency":"EUR"},`, 100))
	if packed, ok = z.compress(nil, text, len(text)/20); !ok {
		t.Errorf("%d bytes of repetitive text take %d", len(text), len(packed))
	}
}

func TestDamagedCompressionIsRefused(t *testing.T) {
	t.Parallel()
	for _, packed := range []string{
		"\x05abc",               // literals that are not there
		"\x00a\x20",             // a copy without its offset
		"\x00a\xe0",             // a long copy without its length
		"\x00a\xe0\x00",         // and without its offset
		"\x00a\x20\x01",         // from before the beginning
		"\x20\x00",              // the same at the beginning
		"\x00a\x20\x00\x1fabcd", // good, then literals that are not there
	} {
		if n, ok := lzfLength([]byte(packed)); ok {
			t.Errorf("%q is taken for %d bytes", packed, n)
		}
	}
	if n, ok := lzfLength([]byte("\x00a\x20\x00")); !ok || n != 4 {
		t.Errorf("a run of 4: %d, %v", n, ok)
	}
}
