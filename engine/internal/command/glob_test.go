package command

import (
	"strings"
	"testing"
)

func TestGlobCorners(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, s   string
		nocase, want bool
	}{
		{"*", "anything", false, true},
		{"*", "", false, false}, // as Redis; KEYS and SCAN take a lone star apart
		{"", "", false, true},
		{"h?llo", "hello", false, true},
		{"h[^e]llo", "hello", false, false},
		{"h[a-e]llo", "hello", false, true},
		{"h[e-a]llo", "hello", false, true},
		{"h[a-e", "hb", false, true}, // unclosed
		{"[", "[", false, false},
		{"[^", "x", false, true},
		{`\*`, "*", false, true},
		{`\*`, "x", false, false},
		{`a\`, `a\`, false, true},
		{`[\]]`, "]", false, true},
		{"HELLO*", "hello world", true, true},
		{`[\A]`, "a", true, false}, // escaped in a class: never folded
		{"[A-Z]", "q", true, true},
		{"a*b*c", "aXbXbXc", false, true},
		{"a*b*c", "aXbXbX", false, false},
		{"[\x80-a]", "\xff", false, true}, // bytes are signed
	} {
		if got := Glob([]byte(test.pattern), []byte(test.s), test.nocase); got != test.want {
			t.Errorf("Glob(%q, %q, %v) = %v", test.pattern, test.s, test.nocase, got)
		}
	}
}

// A backtracking matcher would need about 2^40 steps here.
func TestGlobDoesNotBlowUp(t *testing.T) {
	t.Parallel()
	pattern := []byte(strings.Repeat("a*", 40) + "b")
	if Glob(pattern, []byte(strings.Repeat("a", 2000)), false) {
		t.Error("matched")
	}
}

// globByDefinition tries everything, a star included, in the obvious way.
func globByDefinition(pattern, s []byte) bool {
	switch {
	case len(pattern) == 0 || len(s) == 0:
		return len(s) == 0 && strings.Trim(string(pattern), "*") == ""
	case pattern[0] == '*':
		return globByDefinition(pattern[1:], s) || globByDefinition(pattern, s[1:])
	}
	next, ok := globByte(pattern, 0, s[0], false)
	return ok && globByDefinition(pattern[next:], s[1:])
}

func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"a*b?c", "[a-z]*[^0]", `\*\`, "[", "[^", "[a-", "***x"} {
		f.Add([]byte(pattern), []byte("abxcz*"))
	}
	f.Fuzz(func(t *testing.T, pattern, s []byte) {
		if len(pattern) > 12 || len(s) == 0 || len(s) > 12 {
			Glob(pattern, s, true)
			return
		}
		if got, want := Glob(pattern, s, false), globByDefinition(pattern, s); got != want {
			t.Errorf("Glob(%q, %q) = %v", pattern, s, got)
		}
	})
}
