package lua

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

func (s *state) stringLibrary() library {
	return s.functions(map[string]lua51.GoFunction{
		"byte": stringByte, "char": stringChar, "dump": stringDump, "find": s.find, "format": s.format,
		"gfind": s.gmatch, "gmatch": s.gmatch, "gsub": s.gsub, "len": stringLen, "lower": stringLower,
		"match": s.match, "rep": stringRep, "reverse": stringReverse, "sub": s.stringSub, "upper": stringUpper,
	})
}

// piece is part of a text. A small part of a large text is copied: it must not
// keep the whole alive.
func (s *state) piece(text string, from, to int) lua51.Value {
	const large = 4096
	if len(text) > large && (to-from) < len(text)/2 {
		b := s.vm.Current().NewBuilder(to - from)
		b.Add(text[from:to])
		return b.Text()
	}
	return lua51.String(text[from:to])
}

// position turns a negative index into one from the front.
func position(i, length int) int {
	if i < 0 {
		i += length + 1
	}
	return max(i, 0)
}

func stringByte(l *lua51.Thread) int {
	text := checkString(l, 1)
	from := position(optInt(l, 2, 1), len(text))
	to := min(position(optInt(l, 3, from), len(text)), len(text))
	from = max(from, 1)
	if from > to {
		return 0
	}
	if to-from+1+l.Top() > maxResults {
		l.Raise("string slice too long")
	}
	for i := from; i <= to; i++ {
		l.PushInt(int(text[i-1]))
	}
	return to - from + 1
}

func stringChar(l *lua51.Thread) int {
	text := make([]byte, l.Top())
	for i := range text {
		c := checkInt32(l, i+1)
		if c != int(byte(c)) {
			l.ArgError(i+1, "invalid value")
		}
		text[i] = byte(c)
	}
	l.Push(l.State().Text(text))
	return 1
}

func stringDump(l *lua51.Thread) int {
	checkFunction(l, 1)
	l.Raise("unable to dump given function")
	return 0
}

func stringLen(l *lua51.Thread) int {
	l.PushInt(len(checkString(l, 1)))
	return 1
}

// mapped makes a text of another, a piece at a time. A step is few bytes here.
func mapped(l *lua51.Thread, text string, change func(piece []byte)) int {
	const pieceBytes = 4096
	if len(text) <= pieceBytes {
		var room [256]byte
		piece := append(room[:0], text...)
		change(piece)
		l.Push(l.State().Text(piece))
		return 1
	}
	b := l.NewBuilder(len(text))
	var room [pieceBytes]byte
	for len(text) > 0 {
		piece := append(room[:0], text[:min(pieceBytes, len(text))]...)
		text = text[len(piece):]
		change(piece)
		b.AddBytes(piece)
		l.Pass(len(piece) / 4)
	}
	l.Push(b.Text())
	return 1
}

// changeCase changes ASCII letters only, as C's "C" locale does.
func changeCase(first, last byte) func([]byte) {
	return func(piece []byte) {
		for i, c := range piece {
			if first <= c && c <= last {
				piece[i] = c ^ 0x20
			}
		}
	}
}

func stringLower(l *lua51.Thread) int { return mapped(l, checkString(l, 1), changeCase('A', 'Z')) }
func stringUpper(l *lua51.Thread) int { return mapped(l, checkString(l, 1), changeCase('a', 'z')) }

func stringRep(l *lua51.Thread) int {
	text, n := checkString(l, 1), checkInt32(l, 2)
	if n <= 0 || text == "" {
		l.PushString("")
		return 1
	}
	if n > lua51.MaxTextBytes/len(text) {
		l.OutOfMemory()
	}
	b := l.NewBuilder(n * len(text))
	const pieceBytes = 64 << 10
	if many := pieceBytes / len(text); many > 1 && n > 1 {
		piece := strings.Repeat(text, min(many, n))
		for ; n > many; n -= many {
			b.Add(piece)
			l.PassBytes(len(piece))
		}
		b.Add(piece[:n*len(text)])
	} else {
		for ; n > 0; n-- {
			b.Add(text)
		}
	}
	l.Push(b.Text())
	return 1
}

func stringReverse(l *lua51.Thread) int {
	text := checkString(l, 1)
	b := l.NewBuilder(len(text))
	for i := len(text) - 1; i >= 0; i-- {
		b.AddByte(text[i])
		if i&0xfff == 0 {
			l.Pass(0x1000 / 4)
		}
	}
	l.Push(b.Text())
	return 1
}

func (s *state) stringSub(l *lua51.Thread) int {
	text := checkString(l, 1)
	from := max(position(checkInt(l, 2), len(text)), 1)
	to := min(position(optInt(l, 3, -1), len(text)), len(text))
	if from > to {
		l.Push(lua51.String(""))
	} else {
		l.Push(s.piece(text, from-1, to))
	}
	return 1
}

func (s *state) find(l *lua51.Thread) int  { return s.search(l, true) }
func (s *state) match(l *lua51.Thread) int { return s.search(l, false) }

func (s *state) search(l *lua51.Thread, find bool) int {
	text, pattern := checkString(l, 1), checkString(l, 2)
	from := optInt(l, 3, 1)
	if from < 0 {
		from += len(text) + 1
	}
	i := min(max(from-1, 0), len(text))
	if find && (l.Arg(4).Truth() || !hasSpecials(l, pattern)) {
		return findPlain(l, text, pattern, i)
	}
	pattern = patternOf(pattern)
	m := s.matcher(l, text, strings.TrimPrefix(pattern, "^"))
	defer s.release(m)
	for ; i <= len(text); i++ {
		m.start()
		if end := m.match(i, 0); end >= 0 {
			if !find {
				return m.pushCaptures(i, end, true)
			}
			l.PushInt(i + 1)
			l.PushInt(end)
			return 2 + m.pushCaptures(i, end, false)
		}
		if m.pattern != pattern { // anchored
			break
		}
	}
	l.Push(lua51.Nil)
	return 1
}

// windowBytes is how much of a text is looked through between two looks of the
// meter.
const windowBytes = 1 << 20

func hasSpecials(l *lua51.Thread, pattern string) bool {
	for ; len(pattern) > windowBytes; pattern = pattern[windowBytes:] {
		l.PassBytes(windowBytes)
		window := patternOf(pattern[:windowBytes])
		if special := isSpecial(window); special || len(window) < windowBytes {
			return special
		}
	}
	return isSpecial(patternOf(pattern))
}

func isSpecial(pattern string) bool {
	for i := range len(pattern) {
		switch pattern[i] {
		case '^', '$', '*', '+', '?', '.', '(', '[', '%', '-':
			return true
		}
	}
	return false
}

// patternOf is a pattern as C reads it: up to the first zero byte. One that has
// nothing special before that is looked for as a whole.
func patternOf(text string) string {
	pattern, _, _ := strings.Cut(text, "\x00")
	return pattern
}

// findPlain looks for a text from i on, a window at a time. Of a long pattern it
// looks for the beginning, and compares the rest.
func findPlain(l *lua51.Thread, text, pattern string, i int) int {
	head := pattern[:min(len(pattern), windowBytes/16)]
	for len(text)-i >= len(pattern) {
		window := text[i:min(len(text), i+windowBytes+len(head))]
		l.PassBytes(len(window))
		at := strings.Index(window, head)
		switch {
		case at >= 0 && len(text)-i-at >= len(pattern) && l.SameText(text[i+at:i+at+len(pattern)], pattern):
			l.PushInt(i + at + 1)
			l.PushInt(i + at + len(pattern))
			return 2
		case at >= 0:
			i += at + 1
		case i+len(window) == len(text):
			i = len(text) + 1
		default:
			i += len(window) - len(head)
		}
	}
	l.Push(lua51.Nil)
	return 1
}

func (s *state) gmatch(l *lua51.Thread) int {
	text, pattern := checkString(l, 1), patternOf(checkString(l, 2))
	i := 0
	l.Push(s.vm.NewFunction(func(l *lua51.Thread) int {
		m := s.matcher(l, text, pattern)
		defer s.release(m)
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
	}, l.Arg(1), l.Arg(2)).Value())
	return 1
}

func (s *state) gsub(l *lua51.Thread) int {
	text, pattern := checkString(l, 1), patternOf(checkString(l, 2))
	replacement := l.Arg(3)
	switch replacement.Kind() {
	case lua51.KindString, lua51.KindNumber, lua51.KindTable, lua51.KindFunction:
	default:
		l.ArgError(3, "string/function/table expected")
	}
	limit := optInt32(l, 4, len(text)+1)
	m := s.matcher(l, text, strings.TrimPrefix(pattern, "^"))
	defer s.release(m)
	anchored := m.pattern != pattern
	out := s.output(l)
	i, n := 0, 0
	for n < limit {
		m.start()
		end := m.match(i, 0)
		if end >= 0 {
			n++
			m.substitute(&out, replacement, i, end)
		}
		switch {
		case end > i:
			i = end
		case i < len(text):
			out.text = append(out.text, text[i])
			i++
		default:
			i = len(text) + 1
		}
		out.tidy()
		if i > len(text) || anchored {
			break
		}
	}
	if i < len(text) {
		out.add(text[i:])
	}
	l.Push(out.value())
	l.PushInt(n)
	return 2
}

// substitute adds what replaces the match at [i, end).
func (m *matcher) substitute(out *output, replacement lua51.Value, i, end int) {
	l := m.l
	var v lua51.Value
	switch replacement.Kind() {
	case lua51.KindTable:
		v = l.Index(replacement, m.captured(0, i, end))
	case lua51.KindFunction:
		l.Push(replacement)
		l.Call(m.pushCaptures(i, end, true), 1)
		v = l.Pop()
	default:
		text, _ := replacement.ToText()
		m.substituteText(out, text, i, end)
		return
	}
	if text, ok := v.ToText(); ok {
		out.add(text)
		return
	}
	if v.Truth() {
		l.Raise("invalid replacement value (a %s)", v.TypeName())
	}
	out.add(m.text[i:end])
}
