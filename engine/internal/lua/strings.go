package lua

import (
	"bytes"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

func (s *state) stringLibrary() library {
	return s.functions(map[string]glua.LGFunction{
		"byte": stringByte, "char": stringChar, "dump": stringDump, "find": s.find, "format": s.format,
		"gfind": s.gmatch, "gmatch": s.gmatch, "gsub": s.gsub, "len": stringLen, "lower": s.stringLower,
		"match": s.match, "rep": s.stringRep, "reverse": s.stringReverse, "sub": stringSub, "upper": s.stringUpper,
	})
}

// piece is part of a text. A small part of a large text is copied: it must not
// keep the whole alive.
func piece(text string, from, to int) glua.LString {
	const large = 4096
	if len(text) > large && (to-from) < len(text)/2 {
		return glua.LString(strings.Clone(text[from:to]))
	}
	return glua.LString(text[from:to])
}

// position turns a negative index into one from the front.
func position(i, length int) int {
	if i < 0 {
		i += length + 1
	}
	return max(i, 0)
}

func stringByte(l *glua.LState) int {
	text := checkString(l, 1, "byte")
	from := position(optInt(l, 2, "byte", 1), len(text))
	to := min(position(optInt(l, 3, "byte", from), len(text)), len(text))
	from = max(from, 1)
	if from > to {
		return 0
	}
	if to-from+1+l.GetTop() > maxResults {
		raise(l, "string slice too long")
	}
	for i := from; i <= to; i++ {
		l.Push(glua.LNumber(text[i-1]))
	}
	return to - from + 1
}

func stringChar(l *glua.LState) int {
	text := make([]byte, l.GetTop())
	for i := range text {
		c := checkInt(l, i+1, "char")
		if c != int(byte(c)) {
			argError(l, i+1, "char", "invalid value")
		}
		text[i] = byte(c)
	}
	l.Push(glua.LString(text))
	return 1
}

func stringDump(l *glua.LState) int {
	checkFunction(l, 1, "dump")
	raise(l, "unable to dump given function")
	return 0
}

func stringLen(l *glua.LState) int {
	l.Push(glua.LNumber(len(checkString(l, 1, "len"))))
	return 1
}

// mapBytes changes ASCII letters only, as C's "C" locale does.
func mapBytes(text string, first, last byte) string {
	changed := []byte(text)
	for i, c := range changed {
		if first <= c && c <= last {
			changed[i] = c ^ 0x20
		}
	}
	return string(changed)
}

func (s *state) stringLower(l *glua.LState) int {
	text := checkString(l, 1, "lower")
	s.meter.reserve(l, len(text))
	l.Push(glua.LString(mapBytes(text, 'A', 'Z')))
	return 1
}

func (s *state) stringUpper(l *glua.LState) int {
	text := checkString(l, 1, "upper")
	s.meter.reserve(l, len(text))
	l.Push(glua.LString(mapBytes(text, 'a', 'z')))
	return 1
}

func (s *state) stringRep(l *glua.LState) int {
	text, n := checkString(l, 1, "rep"), checkInt(l, 2, "rep")
	if n <= 0 || text == "" {
		l.Push(glua.LString(""))
		return 1
	}
	if n > maxTextBytes/len(text) {
		raise(l, noMemory)
	}
	s.meter.reserve(l, n*len(text))
	l.Push(glua.LString(strings.Repeat(text, n)))
	return 1
}

func (s *state) stringReverse(l *glua.LState) int {
	original := checkString(l, 1, "reverse")
	s.meter.reserve(l, len(original))
	text := []byte(original)
	for i, j := 0, len(text)-1; i < j; i, j = i+1, j-1 {
		text[i], text[j] = text[j], text[i]
	}
	l.Push(glua.LString(text))
	return 1
}

func stringSub(l *glua.LState) int {
	text := checkString(l, 1, "sub")
	from := max(position(checkInt(l, 2, "sub"), len(text)), 1)
	to := min(position(optInt(l, 3, "sub", -1), len(text)), len(text))
	if from > to {
		l.Push(glua.LString(""))
	} else {
		l.Push(piece(text, from-1, to))
	}
	return 1
}

func (s *state) find(l *glua.LState) int  { return s.search(l, "find") }
func (s *state) match(l *glua.LState) int { return s.search(l, "match") }

func (s *state) search(l *glua.LState, function string) int {
	text, pattern := checkString(l, 1, function), checkString(l, 2, function)
	from := optInt(l, 3, function, 1)
	if from < 0 {
		from += len(text) + 1
	}
	i := min(max(from-1, 0), len(text))
	if function == "find" && (glua.LVAsBool(l.Get(4)) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		at := strings.Index(text[i:], pattern)
		if at < 0 {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(glua.LNumber(i + at + 1))
		l.Push(glua.LNumber(i + at + len(pattern)))
		return 2
	}
	anchored := strings.HasPrefix(pattern, "^")
	m := &matcher{l: l, state: s, text: text, pattern: strings.TrimPrefix(pattern, "^")}
	if !anchored {
		m.pattern = pattern
	}
	for ; i <= len(text); i++ {
		m.start()
		if end := m.match(i, 0); end >= 0 {
			if function == "match" {
				return m.pushCaptures(i, end, true)
			}
			l.Push(glua.LNumber(i + 1))
			l.Push(glua.LNumber(end))
			return 2 + m.pushCaptures(i, end, false)
		}
		if anchored {
			break
		}
	}
	l.Push(glua.LNil)
	return 1
}

func (s *state) gmatch(l *glua.LState) int {
	text, pattern := checkString(l, 1, "gmatch"), checkString(l, 2, "gmatch")
	i := 0
	// The text is an upvalue, so that it can be found (weigh.go).
	l.Push(l.NewClosure(func(l *glua.LState) int {
		m := &matcher{l: l, state: s, text: text, pattern: pattern}
		for ; i <= len(text); i++ {
			m.start()
			if end := m.match(i, 0); end >= 0 {
				start := i
				i = end
				if end == start {
					i++
				}
				return m.pushCaptures(start, end, true)
			}
		}
		return 0
	}, glua.LString(text)))
	return 1
}

func (s *state) gsub(l *glua.LState) int {
	text, pattern := checkString(l, 1, "gsub"), checkString(l, 2, "gsub")
	replacement := l.Get(3)
	switch replacement.(type) {
	case glua.LString, glua.LNumber, *glua.LTable, *glua.LFunction:
	default:
		argError(l, 3, "gsub", "string/function/table expected")
	}
	limit := optInt(l, 4, "gsub", len(text)+1)
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		pattern = pattern[1:]
	}
	m := &matcher{l: l, state: s, text: text, pattern: pattern}
	var out bytes.Buffer
	i, n := 0, 0
	for n < limit {
		m.start()
		end := m.match(i, 0)
		if end >= 0 {
			n++
			s.substitute(m, &out, replacement, i, end)
		}
		switch {
		case end > i:
			i = end
		case i < len(text):
			out.WriteByte(text[i])
			i++
		default:
			i = len(text) + 1
		}
		if out.Len() > maxTextBytes {
			raise(l, noMemory)
		}
		if i > len(text) || anchored {
			break
		}
	}
	if i < len(text) {
		out.WriteString(text[i:])
	}
	s.meter.reserve(l, out.Len())
	l.Push(glua.LString(out.String()))
	l.Push(glua.LNumber(n))
	return 2
}

// substitute appends what replaces the match at [i, end).
func (s *state) substitute(m *matcher, out *bytes.Buffer, replacement glua.LValue, i, end int) {
	l := m.l
	var v glua.LValue
	switch r := replacement.(type) {
	case *glua.LTable:
		v = l.GetTable(r, m.captured(0, i, end))
	case *glua.LFunction:
		l.Push(r)
		n := m.pushCaptures(i, end, true)
		l.Call(n, 1)
		v = l.Get(-1)
		l.Pop(1)
	default:
		text, _ := toText(r)
		m.substituteText(out, text, i, end)
		return
	}
	if text, ok := toText(v); ok {
		out.WriteString(text)
		return
	}
	if glua.LVAsBool(v) {
		raise(l, "invalid replacement value (a %s)", v.Type().String())
	}
	out.WriteString(m.text[i:end])
}
