package autocomplete

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold gives the form by which texts and prefixes are compared:
//
//   - Without case, by Unicode's full case folding: STRASSE and Straße are one. It knows no language: the Turkish dotless
//     ı is not i.
//   - In compatibility decomposition (NFKD): a full-width letter is the letter, ﬁ is fi, and it does not matter whether
//     an accent is a character of its own. Decomposed, not composed, because then what one has typed so far stays a
//     prefix: e finds école, é finds only what has the accent, and a Hangul syllable is found by its first letters.
//   - Any run of white space is one space, and none at the beginning. At the end of a prefix it counts: "ann " finds
//     "Ann" and "Ann Lee" and not "Anna".
//   - Control and format characters (soft hyphens, zero-width joiners) are left out.
//
// Nothing else is: accents, punctuation and typing errors count. Bytes that are not UTF-8 become U+FFFD, which the calls
// of a Dictionary refuse beforehand.
func Fold(text string) string {
	if folded, ok := foldASCII(text); ok {
		return folded
	}
	fold := cases.Fold() // it may have state: one for each call
	// What is left out goes first: it may stand between accents, which come into one order without it.
	folded := norm.NFD.String(squeeze(strings.ToValidUTF8(text, "\uFFFD")))
	folded = norm.NFKD.String(fold.String(folded))
	folded = norm.NFKD.String(fold.String(folded))
	return squeeze(folded)
}

// foldASCII folds what needs no tables.
func foldASCII(text string) (string, bool) {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return "", false
		}
	}
	return squeeze(strings.ToLower(text)), true
}

// squeeze makes runs of space one space and leaves out what is not seen.
func squeeze(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			if s := b.String(); s != "" && s[len(s)-1] != ' ' {
				b.WriteByte(' ')
			}
		case unicode.In(r, unicode.Cc, unicode.Cf):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
