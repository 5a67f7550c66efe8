package lua

import (
	"strconv"
	"strings"
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"
)

// The decoder reads token by token; the names of the tokens are part of the
// error messages.
type jsonToken struct {
	kind string
	at   int // offset of its first byte
	text string
	num  float64
}

type jsonDecoder struct {
	state  *state
	l      *glua.LState
	config *jsonConfig
	text   string
	at     int
	depth  int
}

func (s *state) jsonDecode(l *glua.LState, c *jsonConfig) int {
	if l.GetTop() != 1 {
		argError(l, 1, "decode", "expected 1 argument")
	}
	text := checkString(l, 1, "decode")
	if len(text) >= 2 && (text[0] == 0 || text[1] == 0) {
		raise(l, "JSON parser does not support UTF-16 or UTF-32")
	}
	text, _, _ = strings.Cut(text, "\x00") // where it ends in C
	d := jsonDecoder{state: s, l: l, config: c, text: text}
	defer s.meter.release()
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
	raise(d.l, "Expected %s but found %s at character %d", what, found, t.at+1)
}

func (d *jsonDecoder) value(t jsonToken) glua.LValue {
	d.state.meter.pass(d.l, 1)
	d.state.meter.hold(d.l, slotBytes+len(t.text))
	switch t.kind {
	case "T_STRING":
		return glua.LString(t.text)
	case "T_NUMBER":
		return glua.LNumber(t.num)
	case "T_BOOLEAN":
		return glua.LBool(t.text == "true")
	case "T_NULL":
		return jsonNull
	case "T_OBJ_BEGIN":
		return d.object()
	case "T_ARR_BEGIN":
		return d.array()
	}
	d.expected("value", t)
	return glua.LNil
}

func (d *jsonDecoder) descend() {
	d.depth++
	if d.depth > min(d.config.decodeDepth, maxJSONDepth) {
		raise(d.l, "Found too many nested data structures (%d) at character %d", d.depth, d.at)
	}
}

func (d *jsonDecoder) object() glua.LValue {
	d.descend()
	d.state.meter.hold(d.l, 2*tableBytes)
	t := d.l.CreateTable(0, 4)
	token := d.next()
	if token.kind == "T_OBJ_END" {
		d.depth--
		return t
	}
	for {
		if token.kind != "T_STRING" {
			d.expected("object key string", token)
		}
		key := token.text
		if token = d.next(); token.kind != "T_COLON" {
			d.expected("colon", token)
		}
		d.state.meter.hold(d.l, 8*slotBytes+len(key))
		t.RawSetString(key, d.value(d.next()))
		token = d.next()
		if token.kind == "T_OBJ_END" {
			d.depth--
			return t
		}
		if token.kind != "T_COMMA" {
			d.expected("comma or object end", token)
		}
		token = d.next()
	}
}

func (d *jsonDecoder) array() glua.LValue {
	d.descend()
	d.state.meter.hold(d.l, 2*tableBytes)
	t := d.l.CreateTable(4, 0)
	token := d.next()
	if token.kind == "T_ARR_END" {
		d.depth--
		return t
	}
	for i := 1; ; i++ {
		t.RawSetInt(i, d.value(token))
		token = d.next()
		if token.kind == "T_ARR_END" {
			d.depth--
			return t
		}
		if token.kind != "T_COMMA" {
			d.expected("comma or array end", token)
		}
		token = d.next()
	}
}

var jsonSigns = map[byte]string{
	'{': "T_OBJ_BEGIN", '}': "T_OBJ_END", '[': "T_ARR_BEGIN", ']': "T_ARR_END", ',': "T_COMMA", ':': "T_COLON",
}

func (d *jsonDecoder) next() jsonToken {
	for d.at < len(d.text) && strings.IndexByte(" \t\n\r", d.text[d.at]) >= 0 {
		d.at++
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
	for word, kind := range map[string]string{"true": "T_BOOLEAN", "false": "T_BOOLEAN", "null": "T_NULL"} {
		if strings.HasPrefix(d.text[start:], word) {
			d.at += len(word)
			return jsonToken{kind: kind, at: start, text: word}
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
	f, n := numberPrefix(rest)
	if n == 0 {
		return jsonToken{kind: "T_ERROR", at: start, text: "invalid number"}
	}
	d.at += n
	return jsonToken{kind: "T_NUMBER", at: start, num: float64(f)}
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
	var out []byte
	for i := start + 1; i < len(d.text); i++ {
		switch c := d.text[i]; c {
		case '"':
			d.at = i + 1
			return jsonToken{kind: "T_STRING", at: start, text: string(out)}
		case '\\':
			i++
			if i < len(d.text) && d.text[i] == 'u' {
				r, used := unicodeEscape(d.text[i+1:])
				if used == 0 {
					return jsonToken{kind: "T_ERROR", at: i - 1, text: "invalid unicode escape code"}
				}
				out = utf8.AppendRune(out, r)
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
			out = append(out, "\"\\/\b\t\n\f\r"[at])
		default:
			out = append(out, c)
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
