package command

import (
	"bytes"
	"strconv"

	"github.com/signalbox-io/signalbox/engine/internal/ds"
)

// sortPattern names a value for every element: "weight_*" the string under the
// key that has the element in place of the first asterisk, "user:*->name" a
// field of the hash there. A GET of "#" is the element itself; any other
// pattern without an asterisk names nothing.
type sortPattern struct {
	self          bool
	variable      bool
	before, after []byte // the key, around the element
	field         []byte // nil: the key is a string
	key           []byte // room for the key of one element after the other
}

// parseSortPattern reads a pattern; like Redis no further than a zero byte for
// the asterisk and the arrow.
func parseSortPattern(arg []byte) sortPattern {
	text := untilZero(arg)
	star := bytes.IndexByte(text, '*')
	if star < 0 {
		return sortPattern{self: string(text) == "#"}
	}
	p := sortPattern{variable: true, before: arg[:star], after: arg[star+1:]}
	arrow := bytes.Index(text[star+1:], []byte("->"))
	if arrow >= 0 && len(text) > star+1+arrow+2 {
		p.after, p.field = p.after[:arrow], p.after[arrow+2:]
	}
	return p
}

// resolve is the value that a pattern names for an element.
func (c *Ctx) resolve(p *sortPattern, element string) (value string, found bool) {
	if p.self {
		return element, true
	}
	if !p.variable {
		return "", false
	}
	p.key = append(append(append(p.key[:0], p.before...), element...), p.after...)
	if p.field != nil {
		hash, found, err := Read[*ds.Hash](c, p.key)
		if err != nil || !found { // another type counts as nothing here
			return "", false
		}
		return hash.Get(p.field)
	}
	_, s, err := ReadString(c, p.key)
	if err != nil || s == nil {
		return "", false
	}
	return string(s.Text(nil)), true
}

// weigh finds what an element is compared by. It fails if that should be a
// number and is not. An element without a weight counts as 0.
func (c *Ctx) weigh(text string, r *sortRequest) (element sortElement, score float64, ok bool) {
	element.text = text
	weight, found := text, true
	if r.by != nil {
		weight, found = c.resolve(r.by, text)
	}
	switch {
	case !found:
		return element, 0, true
	case r.alpha:
		element.weight, element.known = r.sortText(weight), true
		return element, 0, true
	}
	score, ok = parseSortScore(weight)
	return element, score, ok
}

// sortText is what ALPHA sees of a weight. What is stored Redis compares byte by byte. What
// is shown it compares by the rules of its locale, for which the plain one of C stands here;
// it ends at a zero byte.
func (r *sortRequest) sortText(weight string) string {
	if r.storing {
		return weight
	}
	return untilZero(weight)
}

// parseSortScore reads a number as C's strtod does when nobody looks at where
// it stopped but for a zero byte: nothing at all is 0, and space before the
// number is fine.
func parseSortScore(weight string) (float64, bool) {
	digits := untilZero(bytesOf(weight))
	if len(digits) == 0 {
		return 0, true
	}
	digits = bytes.TrimLeft(digits, " \t\n\v\f\r")
	if len(digits) > 256 { // which ParseFloat refuses
		score, err := strconv.ParseFloat(string(digits), 64)
		return score, err == nil
	}
	return ParseFloat(digits)
}

// untilZero is the part of a string that C sees.
func untilZero[T string | []byte](s T) T {
	for i := range len(s) {
		if s[i] == 0 {
			return s[:i]
		}
	}
	return s
}
