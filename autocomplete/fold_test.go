package autocomplete_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-io/signalbox/autocomplete"
)

func TestFold(t *testing.T) {
	for _, pair := range [][2]string{
		{"STRASSE", "Straße"},
		{"ΣΊΣΥΦΟΣ", "σίσυφος"}, // a final sigma
		{"école", "e\u0301cole"},
		{"Ｆｕｌｌ　ｗｉｄｔｈ", "full width"},
		{"ﬁne", "FINE"},
		{"  a \t\n b", "A B"},
		{"co\u00adop\u200d", "coop"},
		{"\u212Bngström", "ångström"},
		{"ᾳ", "ΑΙ"},
		{"a\u0301\u200d\u0323", "a\u0323\u0301"},
	} {
		if a, b := autocomplete.Fold(pair[0]), autocomplete.Fold(pair[1]); a != b {
			t.Errorf("%q becomes %q, %q becomes %q", pair[0], a, pair[1], b)
		}
	}
	for _, pair := range [][2]string{{"e", "é"}, {"ı", "i"}, {"a-b", "a b"}, {"ann ", "ann"}} {
		if autocomplete.Fold(pair[0]) == autocomplete.Fold(pair[1]) {
			t.Errorf("%q and %q are one", pair[0], pair[1])
		}
	}
}

func TestLookupFoldsTextAndPrefix(t *testing.T) {
	onEach(t, func(t *testing.T, c *client) {
		d := autocomplete.New(c, "d")
		set(t, d, map[string]float64{"Ann Lee": 5, "Anna": 4, "École": 3, "eclair": 2, "한국": 1, "Москва": 6, "Ann": 0})
		for prefix, want := range map[string][]string{
			"ann ":       {"Ann Lee", "Ann"},
			"ANN":        {"Ann Lee", "Anna", "Ann"},
			"  ann\tlee": {"Ann Lee"},
			"e":          {"École", "eclair"},
			"é":          {"École"},
			"E\u0301":    {"École"},
			"하":          {"한국"}, // typed so far
			"мОС":        {"Москва"},
			" ":          {"Москва", "Ann Lee", "Anna", "École", "eclair", "한국", "Ann"},
		} {
			if got := texts(t, d, prefix, 10); !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", prefix, got, want)
			}
		}
	})
}

// Folding again changes nothing, whatever is folded; what is beyond ASCII and what is not go the same way.
func FuzzFold(f *testing.F) {
	for _, text := range []string{"Straße", "\u0345\u0301", "ﷺ", "a\xffb", "İ", "a\u0301\u200d\u0323", "\u1e9b\u0323", " \u00a0x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		folded := autocomplete.Fold(text)
		if again := autocomplete.Fold(folded); again != folded {
			t.Errorf("%q becomes %q, then %q", text, folded, again)
		}
		if !utf8.ValidString(folded) || strings.ContainsAny(folded, "\x00\n") || strings.Contains(folded, "  ") {
			t.Errorf("%q becomes %q", text, folded)
		}
		if mixed := autocomplete.Fold(text + " é"); strings.TrimSpace(folded) != "" && !strings.HasPrefix(mixed, strings.TrimRight(folded, " ")) {
			t.Errorf("%q becomes %q, and with more behind %q", text, folded, mixed)
		}
	})
}
