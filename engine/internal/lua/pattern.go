package lua

import (
	"math/bits"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// Lua's patterns: a backtracking matcher over bytes.
//
// What may match in several ways tries them one after the other, and puts the captures back
// before each (mark): whatever else fails leaves them as they are.

const (
	maxCaptures     = 32
	maxPatternDepth = 100000
	positionCapture = -1 // as a length
)

type capture struct{ start, length int }

type matcher struct {
	l        *lua51.Thread
	state    *state
	text     string
	pattern  string
	level    int    // how many captures have begun
	open     uint32 // a bit for each that has not ended
	captures [maxCaptures]capture
	depth    int
	steps    int
}

// matcher gives one for a text and a pattern, the same again and again unless
// several are in use.
func (s *state) matcher(l *lua51.Thread, text, pattern string) *matcher {
	m := s.idle
	s.idle = nil
	if m == nil {
		m = &matcher{state: s}
	}
	m.l, m.text, m.pattern = l, text, pattern
	return m
}

func (s *state) release(m *matcher) {
	m.l, m.text, m.pattern = nil, "", ""
	s.idle = m
}

func (m *matcher) fail(text string) { m.l.Raise("%s", text) }

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
		m.tick()
		end := p + 1
		switch m.pattern[p] {
		case '(':
			p = m.startCapture(i, p+1)
			continue
		case ')':
			m.endCapture(i)
			p++
			continue
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
			end = m.classEnd(p)
		case '[':
			end = m.classEnd(p)
		}
		if end < len(m.pattern) {
			switch m.pattern[end] {
			case '?':
				if r := m.optional(i, p, end); r >= 0 {
					return r
				}
				p = end + 1
				continue
			case '*':
				return m.longest(i, p, end)
			case '+':
				if !m.single(i, p, end) {
					return -1
				}
				return m.longest(i+1, p, end)
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

// mark is what the captures are before something is tried.
type mark struct {
	level int
	open  uint32
}

func (m *matcher) mark() mark { return mark{m.level, m.open} }

func (m *matcher) back(to mark) { m.level, m.open = to.level, to.open }

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
		m.work(2 * (end - p))
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
		m.work(c.length / bytesPerTick)
		if c.length < 0 || !strings.HasPrefix(m.text[i:], m.text[c.start:c.start+c.length]) {
			return -1, 0, true
		}
		return i + c.length, p + 2, true
	}
	return 0, 0, false
}

func (m *matcher) checkCapture(digit byte) int {
	n := int(digit) - '1'
	if n < 0 || n >= m.level || m.open&(1<<n) != 0 {
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
		m.tick()
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

// startCapture begins a capture, and gives the place behind its '('.
func (m *matcher) startCapture(i, p int) (next int) {
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	if p < len(m.pattern) && m.pattern[p] == ')' {
		m.captures[m.level] = capture{i, positionCapture}
		p++
	} else {
		m.captures[m.level].start = i
		m.open |= 1 << m.level
	}
	m.level++
	return p
}

func (m *matcher) endCapture(i int) {
	n := bits.Len32(m.open) - 1
	if n < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[n].length = i - m.captures[n].start
	m.open &^= 1 << n
}

// optional tries what is there once or not; -1 if it is not.
func (m *matcher) optional(i, p, end int) int {
	if !m.single(i, p, end) {
		return -1
	}
	before := m.mark()
	r := m.match(i+1, end+1)
	if r < 0 {
		m.back(before)
	}
	return r
}

// longest takes as many as it can, and then fewer.
func (m *matcher) longest(from, p, end int) int {
	n := m.run(from, p, end)
	if end+1 == len(m.pattern) {
		return n
	}
	for before := m.mark(); n >= from; n-- {
		m.tick()
		if r := m.match(n, end+1); r >= 0 {
			return r
		}
		m.back(before)
	}
	return -1
}

// run gives the end of all that matches a class from i on.
func (m *matcher) run(i, p, end int) int {
	const most = 0x100 // in one go
	for {
		window := m.text[i:min(len(m.text), i+most)]
		n := m.runIn(window, p, end)
		m.work(n)
		if i += n; n < most {
			return i
		}
	}
}

func (m *matcher) runIn(text string, p, end int) int {
	var in uint16
	is := true
	switch m.pattern[p] {
	case '.':
		return len(text)
	case '%':
		in, is = classOf(m.pattern[p+1])
		p++
	case '[':
		for n := range len(text) {
			if m.work(end - p); !m.inSet(text[n], p, end-1) {
				return n
			}
		}
		return len(text)
	}
	for n := range len(text) {
		if in == 0 && text[n] != m.pattern[p] || in != 0 && (classes[text[n]]&in != 0) != is {
			return n
		}
	}
	return len(text)
}

func (m *matcher) shortest(i, p, end int) int {
	for before := m.mark(); ; i++ {
		m.tick()
		if r := m.match(i, end+1); r >= 0 {
			return r
		}
		if m.back(before); !m.single(i, p, end) {
			return -1
		}
	}
}

// tick lets a script be stopped inside a pattern that backtracks for ages, or is
// long.
func (m *matcher) tick() { m.work(1) }

func (m *matcher) work(steps int) {
	if m.steps += steps; m.steps >= 0x100 {
		m.l.Pass(m.steps)
		m.steps = 0
	}
}

// bytesPerTick is how many bytes are compared in the time of a step.
const bytesPerTick = 64

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
		start := p
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
		m.work(p - start)
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
		m.work(end - p)
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

// classes has, for each byte, a bit for each class that it is in.
var classes = func() (classes [256]uint16) {
	for i := range classes {
		c := byte(i)
		for bit, in := range [...]bool{
			isAlpha(c),
			c < 32 || c == 127,
			isDigit(c),
			'a' <= c && c <= 'z',
			32 < c && c < 127 && !isAlpha(c) && !isDigit(c),
			c == ' ' || 9 <= c && c <= 13,
			'A' <= c && c <= 'Z',
			isAlpha(c) || isDigit(c),
			isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f',
			c == 0,
		} {
			if in {
				classes[i] |= 1 << bit
			}
		}
	}
	return classes
}()

// classLetters are the names of the classes, in the order of their bits.
const classLetters = "acdlpsuwxz"

// classBits has, for each letter that names a class, the bit of that.
var classBits = func() (named [256]uint16) {
	for i := range len(classLetters) {
		named[classLetters[i]] = 1 << i
		named[classLetters[i]&^0x20] = 1 << i
	}
	return named
}()

// classOf gives the bit of the class behind a '%', and whether what has it is in the class: not
// with a capital letter. Other bytes stand for themselves and have none.
func classOf(letter byte) (bit uint16, in bool) { return classBits[letter], letter&0x20 != 0 }

func inClass(c, class byte) bool {
	if bit, in := classOf(class); bit != 0 {
		return (classes[c]&bit != 0) == in
	}
	return c == class
}

// captured gives capture n of a match at [i, end); without captures the
// first is the whole match.
func (m *matcher) captured(n, i, end int) lua51.Value {
	if n >= m.level {
		if n != 0 {
			m.fail("invalid capture index")
		}
		return m.state.piece(m.text, i, end)
	}
	c := m.captures[n]
	switch {
	case m.open&(1<<n) != 0:
		m.fail("unfinished capture")
		return lua51.Nil
	case c.length == positionCapture:
		return lua51.Int(c.start + 1)
	}
	return m.state.piece(m.text, c.start, c.start+c.length)
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
	m.level, m.open, m.depth = 0, 0, 0
	m.tick()
}

// substituteText appends a replacement text with its %0 to %9 filled in.
func (m *matcher) substituteText(out *output, replacement string, i, end int) {
	for {
		m.tick()
		plain, rest, more := strings.Cut(replacement, "%")
		out.add(plain)
		if !more {
			return
		}
		if rest == "" {
			out.text = append(out.text, 0)
			return
		}
		switch c := rest[0]; {
		case !isDigit(c):
			out.text = append(out.text, c)
		case c == '0':
			out.add(m.text[i:end])
		default:
			text, _ := m.captured(int(c-'1'), i, end).ToText()
			out.add(text)
		}
		out.tidy()
		replacement = rest[1:]
	}
}
