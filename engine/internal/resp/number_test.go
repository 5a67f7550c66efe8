package resp

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// parseInt takes exactly what an integer's own text is.
func TestParseInt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`-?[0-9]{0,21}`),
			rapid.StringMatching(`-?9223372036854775[0-9]{3}`),
			rapid.StringMatching(`[-+ 0-9a]{0,4}`),
			rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
		).Draw(t, "text")
		want, err := strconv.ParseInt(text, 10, 64)
		wantOK := err == nil && strconv.FormatInt(want, 10) == text
		got, ok := parseInt([]byte(text))
		if ok != wantOK || ok && got != want {
			t.Fatalf("parseInt(%q) = %d, %v, want %d, %v", text, got, ok, want, wantOK)
		}
	})
}
