package lua

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The decoder reads token by token; the names of the tokens are part of the
// error messages.
type jsonToken struct {
	kind string
	at   int // offset of its first byte
	text string
	num  float64

	value lua51.Value // of a string
}

type jsonDecoder struct {
	state  *state
	l      *lua51.Thread
	config *jsonConfig
	text   string
	at     int
	depth  int
}

func (s *state) jsonDecode(l *lua51.Thread, c *jsonConfig) int {
	if l.Top() != 1 {
		l.ArgError(1, "expected 1 argument")
	}
	text := checkString(l, 1)
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		l.Raise("JSON parser does not support UTF-16 or UTF-32")
	}
	l.PassBytes(len(text))
	text, _, _ = strings.Cut(text, "\x00") // where it ends in C
	d := jsonDecoder{state: s, l: l, config: c, text: text}
	v := d.value(d.next())
	if end := d.next(); end.kind != "T_END" {
		d.expected("the end", end)
	}
	l.Push(v)
	return 1
}

func (d *jsonDecoder) expected(what string, t jsonToken) {
	found := t.kind
	if t.kind == "T_ERROR" {
		found = t.text
	}
	d.l.Raise("Expected %s but found %s at character %d", what, found, t.at+1)
}

func (d *jsonDecoder) value(t jsonToken) lua51.Value {
	d.l.Pass(1)
	switch t.kind {
	case "T_STRING":
		return t.value
	case "T_NUMBER":
		return lua51.Number(t.num)
	case "T_BOOLEAN":
		return lua51.Bool(t.text == "true")
	case "T_NULL":
		return jsonNull
	case "T_OBJ_BEGIN":
		return d.object()
	case "T_ARR_BEGIN":
		return d.array()
	}
	d.expected("value", t)
	return lua51.Nil
}

// open begins a table. It is on the stack until close, so that it is weighed.
func (d *jsonDecoder) open() *lua51.Table {
	t := d.state.vm.NewTable(0, 0)
	d.l.PushTable(t)
	return t
}

func (d *jsonDecoder) close(t *lua51.Table) lua51.Value {
	d.depth--
	d.l.Pop()
	return t.Value()
}

func (d *jsonDecoder) descend() {
	d.depth++
	if d.depth > min(d.config.decodeDepth, maxJSONDepth) {
		d.l.Raise("Found too many nested data structures (%d) at character %d", d.depth, d.at)
	}
}

func (d *jsonDecoder) object() lua51.Value {
	d.descend()
	t := d.open()
	token := d.next()
	if token.kind == "T_OBJ_END" {
		return d.close(t)
	}
	for {
		if token.kind != "T_STRING" {
			d.expected("object key string", token)
		}
		key := token.value
		if token = d.next(); token.kind != "T_COLON" {
			d.expected("colon", token)
		}
		t.Set(d.state.vm, key, d.value(d.next()))
		token = d.next()
		if token.kind == "T_OBJ_END" {
			return d.close(t)
		}
		if token.kind != "T_COMMA" {
			d.expected("comma or object end", token)
		}
		token = d.next()
	}
}

func (d *jsonDecoder) array() lua51.Value {
	d.descend()
	t := d.open()
	token := d.next()
	if token.kind == "T_ARR_END" {
		return d.close(t)
	}
	for i := 1; ; i++ {
		t.SetInt(d.state.vm, i, d.value(token))
		token = d.next()
		if token.kind == "T_ARR_END" {
			return d.close(t)
		}
		if token.kind != "T_COMMA" {
			d.expected("comma or array end", token)
		}
		token = d.next()
	}
}

// jsonSigns are the names of the tokens of one byte.
var jsonSigns = [256]string{
	'{': "T_OBJ_BEGIN", '}': "T_OBJ_END", '[': "T_ARR_BEGIN", ']': "T_ARR_END", ',': "T_COMMA", ':': "T_COLON",
}

func (d *jsonDecoder) next() jsonToken {
	for d.at < len(d.text) && strings.IndexByte(" \t\n\r", d.text[d.at]) >= 0 {
		if d.at++; d.at&0xfff == 0 {
			d.l.Pass(0x1000)
		}
	}
	start := d.at
	if start >= len(d.text) {
		return jsonToken{kind: "T_END", at: start}
	}
	c := d.text[start]
	if kind := jsonSigns[c]; kind != "" {
		d.at++
		return jsonToken{kind: kind, at: start}
	}
	if c == '"' {
		return d.stringToken()
	}
	if c == '-' || isDigit(c) || c == '+' && d.config.decodeInvalid {
		return d.numberToken()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(d.text[start:], word) {
			d.at += len(word)
			if word == "null" {
				return jsonToken{kind: "T_NULL", at: start}
			}
			return jsonToken{kind: "T_BOOLEAN", at: start, text: word}
		}
	}
	if d.config.decodeInvalid && strings.IndexByte("iInN", c) >= 0 {
		if t := d.numberToken(); t.kind == "T_NUMBER" {
			return t
		}
	}
	return jsonToken{kind: "T_ERROR", at: start, text: "invalid token"}
}

// numberToken reads what C's strtod would: hexadecimal, inf and nan as well,
// unless they are switched off.
func (d *jsonDecoder) numberToken() jsonToken {
	start := d.at
	rest := d.text[start:]
	if !d.config.decodeInvalid && invalidNumber(rest) {
		return jsonToken{kind: "T_ERROR", at: start, text: "invalid number"}
	}
	f, n := lua51.NumberPrefix(rest[:min(len(rest), lua51.MaxNumberText+1)])
	if n == 0 || n > lua51.MaxNumberText {
		return jsonToken{kind: "T_ERROR", at: start, text: "invalid number"}
	}
	d.at += n
	return jsonToken{kind: "T_NUMBER", at: start, num: f}
}

// invalidNumber says whether what begins as a number is one that JSON does not
// have: hexadecimal, with zeros before it, or none at all.
func invalidNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	switch {
	case text == "":
		return false
	case text[0] == '0' && len(text) > 1:
		return text[1]|0x20 == 'x' || isDigit(text[1])
	default:
		return hasPrefixFold(text, "inf") || hasPrefixFold(text, "nan")
	}
}

func (d *jsonDecoder) stringToken() jsonToken {
	start := d.at
	end := start + 1 // most have nothing to replace
	for end < len(d.text) && d.text[end] != '"' && d.text[end] != '\\' {
		if end++; end&0xfff == 0 {
			d.l.Pass(0x1000 / movedPerStep)
		}
	}
	if end < len(d.text) && d.text[end] == '"' {
		d.at = end + 1
		d.l.PassBytes(end - start)
		return jsonToken{kind: "T_STRING", at: start, value: d.state.piece(d.text, start+1, end)}
	}
	out := d.state.output(d.l)
	out.add(d.text[start+1 : min(end, len(d.text))])
	for i := end; i < len(d.text); i++ {
		out.tidy()
		switch c := d.text[i]; c {
		case '"':
			d.at = i + 1
			return jsonToken{kind: "T_STRING", at: start, value: out.value()}
		case '\\':
			i++
			if i < len(d.text) && d.text[i] == 'u' {
				r, used := unicodeEscape(d.text[i+1:])
				if used == 0 {
					return jsonToken{kind: "T_ERROR", at: i - 1, text: "invalid unicode escape code"}
				}
				out.text = utf8.AppendRune(out.text, r)
				i += used
				continue
			}
			at := -1
			if i < len(d.text) {
				at = strings.IndexByte("\"\\/btnfr", d.text[i])
			}
			if at < 0 {
				return jsonToken{kind: "T_ERROR", at: i - 1, text: "invalid escape code"}
			}
			out.text = append(out.text, "\"\\/\b\t\n\f\r"[at])
		default:
			out.text = append(out.text, c)
		}
	}
	return jsonToken{kind: "T_ERROR", at: len(d.text), text: "unexpected end of string"}
}

// unicodeEscape reads XXXX, or XXXX\uXXXX for a surrogate pair; used is 0
// when it is neither.
func unicodeEscape(text string) (r rune, used int) {
	if len(text) < 4 {
		return 0, 0
	}
	n, err := strconv.ParseUint(text[:4], 16, 32)
	if err != nil {
		return 0, 0
	}
	if n&0xf800 != 0xd800 {
		return rune(n), 4
	}
	if n&0x400 != 0 || len(text) < 10 || text[4:6] != "\\u" {
		return 0, 0
	}
	low, err := strconv.ParseUint(text[6:10], 16, 32)
	if err != nil || low&0xfc00 != 0xdc00 {
		return 0, 0
	}
	return rune((n&0x3ff)<<10|low&0x3ff) + 0x10000, 10
}
