package lua

import (
	"bytes"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Lua's patterns: a backtracking matcher over bytes. The one of gopher-lua
// lacks %f, compiles each pattern anew and differs in corner cases.

const (
	maxCaptures     = 32
	maxPatternDepth = 100000
	openCapture     = -1
	positionCapture = -2
)

type capture struct{ start, length int }

type matcher struct {
	l        *glua.LState
	state    *state
	text     string
	pattern  string
	level    int
	captures [maxCaptures]capture
	depth    int
	steps    int
}

func (m *matcher) fail(text string) { raise(m.l, "%s", text) }

// match tries the pattern from p on at position i of the text; it gives the
// end of the match, or -1.
func (m *matcher) match(i, p int) int {
	m.depth++
	if m.depth > maxPatternDepth {
		m.fail("pattern too complex")
	}
	end := m.rest(i, p)
	m.depth--
	return end
}

// rest is match at a depth that is counted.
func (m *matcher) rest(i, p int) int {
	for p < len(m.pattern) {
		switch m.pattern[p] {
		case '(':
			return m.startCapture(i, p)
		case ')':
			return m.endCapture(i, p+1)
		case '$':
			if p+1 == len(m.pattern) {
				if i == len(m.text) {
					return i
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pattern) {
				next, rest, special := m.special(i, p)
				if special {
					if next < 0 {
						return -1
					}
					i, p = next, rest
					continue
				}
			}
		}
		end := m.classEnd(p)
		if end < len(m.pattern) {
			switch m.pattern[end] {
			case '?':
				if m.single(i, p, end) {
					if r := m.match(i+1, end+1); r >= 0 {
						return r
					}
				}
				p = end + 1
				continue
			case '*':
				return m.longest(i, i, p, end)
			case '+':
				if !m.single(i, p, end) {
					return -1
				}
				return m.longest(i, i+1, p, end)
			case '-':
				return m.shortest(i, p, end)
			}
		}
		if !m.single(i, p, end) {
			return -1
		}
		i, p = i+1, end
	}
	return i
}

// special handles %b, %f and %1; special is false for other escapes.
func (m *matcher) special(i, p int) (next, rest int, special bool) {
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.balance(i, p+2), p + 4, true
	case c == 'f':
		p += 2
		if p >= len(m.pattern) || m.pattern[p] != '[' {
			m.fail("missing '[' after '%f' in pattern")
		}
		end := m.classEnd(p)
		var before, after byte
		if i > 0 {
			before = m.text[i-1]
		}
		if i < len(m.text) {
			after = m.text[i]
		}
		if m.inSet(before, p, end-1) || !m.inSet(after, p, end-1) {
			return -1, 0, true
		}
		return i, end, true
	case '0' <= c && c <= '9':
		n := m.checkCapture(c)
		c := m.captures[n]
		if c.length < 0 || !strings.HasPrefix(m.text[i:], m.text[c.start:c.start+c.length]) {
			return -1, 0, true
		}
		return i + c.length, p + 2, true
	}
	return 0, 0, false
}

func (m *matcher) checkCapture(digit byte) int {
	n := int(digit) - '1'
	if n < 0 || n >= m.level || m.captures[n].length == openCapture {
		m.fail("invalid capture index")
	}
	return n
}

func (m *matcher) balance(i, p int) int {
	if p+1 >= len(m.pattern) {
		m.fail("unbalanced pattern")
	}
	if i >= len(m.text) || m.text[i] != m.pattern[p] {
		return -1
	}
	open, closing, depth := m.pattern[p], m.pattern[p+1], 1
	for i++; i < len(m.text); i++ {
		switch m.text[i] {
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

func (m *matcher) startCapture(i, p int) int {
	kind := openCapture
	p++
	if p < len(m.pattern) && m.pattern[p] == ')' {
		kind = positionCapture
		p++
	}
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{i, kind}
	m.level++
	r := m.match(i, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) endCapture(i, p int) int {
	n := m.level - 1
	for n >= 0 && m.captures[n].length != openCapture {
		n--
	}
	if n < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[n].length = i - m.captures[n].start
	r := m.match(i, p)
	if r < 0 {
		m.captures[n].length = openCapture
	}
	return r
}

// longest has matched up to from already; it takes as many more as it can.
func (m *matcher) longest(i, from, p, end int) int {
	n := from
	for m.single(n, p, end) {
		n++
	}
	for ; n >= from; n-- {
		m.tick()
		if r := m.match(n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) shortest(i, p, end int) int {
	for {
		m.tick()
		if r := m.match(i, end+1); r >= 0 {
			return r
		}
		if !m.single(i, p, end) {
			return -1
		}
		i++
	}
}

// tick lets a script be stopped inside a pattern that backtracks for ages.
func (m *matcher) tick() {
	m.steps++
	if m.steps&0xff == 0 {
		m.state.meter.pass(m.l, 0x100)
	}
}

// classEnd gives the end of the single-character class at p.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pattern) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pattern) || m.pattern[p] != ']'; first = false {
			if p >= len(m.pattern) {
				m.fail("malformed pattern (missing ']')")
			}
			if m.pattern[p] == '%' && p+1 < len(m.pattern) {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

func (m *matcher) single(i, p, end int) bool {
	if i >= len(m.text) {
		return false
	}
	c := m.text[i]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pattern[p] == c
}

// inSet checks the set from '[' at p to ']' at last.
func (m *matcher) inSet(c byte, p, last int) bool {
	found := true
	p++
	if m.pattern[p] == '^' {
		found = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if inClass(c, m.pattern[p]) {
				return found
			}
		case p+2 < last && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return found
			}
			p += 2
		case m.pattern[p] == c:
			return found
		}
	}
	return !found
}

func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isAlpha(c)
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = isDigit(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = 32 < c && c < 127 && !isAlpha(c) && !isDigit(c)
	case 's':
		in = c == ' ' || 9 <= c && c <= 13
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = isAlpha(c) || isDigit(c)
	case 'x':
		in = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !isAlpha(class) {
		return class == c
	}
	return in == (class&0x20 != 0)
}

func isAlpha(c byte) bool    { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool    { return '0' <= c && c <= '9' }
func isHexDigit(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// captured gives capture n of a match at [i, end); without captures the
// first is the whole match.
func (m *matcher) captured(n, i, end int) glua.LValue {
	if n >= m.level {
		if n != 0 {
			m.fail("invalid capture index")
		}
		return piece(m.text, i, end)
	}
	switch c := m.captures[n]; c.length {
	case openCapture:
		m.fail("unfinished capture")
		return glua.LNil
	case positionCapture:
		return glua.LNumber(c.start + 1)
	default:
		return piece(m.text, c.start, c.start+c.length)
	}
}

// pushCaptures pushes all captures; the whole match when there are none and
// whole is set.
func (m *matcher) pushCaptures(i, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for c := 0; c < n; c++ {
		m.l.Push(m.captured(c, i, end))
	}
	return n
}

// start sets the matcher to try at a new position.
func (m *matcher) start() {
	m.level, m.depth = 0, 0
	m.tick()
}

// substituteText appends a replacement text with its %0 to %9 filled in.
func (m *matcher) substituteText(out *bytes.Buffer, replacement string, i, end int) {
	for n := 0; n < len(replacement); n++ {
		c := replacement[n]
		if c != '%' {
			out.WriteByte(c)
			continue
		}
		n++
		switch {
		case n >= len(replacement):
			out.WriteByte(0)
		case !isDigit(replacement[n]):
			out.WriteByte(replacement[n])
		case replacement[n] == '0':
			out.WriteString(m.text[i:end])
		default:
			text, _ := toText(m.captured(int(replacement[n]-'1'), i, end))
			out.WriteString(text)
		}
	}
}
