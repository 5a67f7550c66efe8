package lua51

import (
	"fmt"
	"strings"
)

// token is a kind of token: a byte for signs of one, or one of these.
type token int

const (
	tokenAnd token = iota + 257
	tokenBreak
	tokenDo
	tokenElse
	tokenElseif
	tokenEnd
	tokenFalse
	tokenFor
	tokenFunction
	tokenIf
	tokenIn
	tokenLocal
	tokenNil
	tokenNot
	tokenOr
	tokenRepeat
	tokenReturn
	tokenThen
	tokenTrue
	tokenUntil
	tokenWhile
	tokenConcat
	tokenDots
	tokenEqual
	tokenGreaterEq
	tokenLessEq
	tokenNotEqual
	tokenNumber
	tokenName
	tokenString
	tokenEOF
)

var tokenTexts = [...]string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
	"or", "repeat", "return", "then", "true", "until", "while", "..", "...", "==", ">=", "<=", "~=",
	"<number>", "<name>", "<string>", "<eof>",
}

var reserved = func() map[string]token {
	words := map[string]token{}
	for t := tokenAnd; t <= tokenWhile; t++ {
		words[tokenTexts[t-tokenAnd]] = t
	}
	return words
}()

func (t token) String() string {
	switch {
	case t >= tokenAnd:
		return tokenTexts[t-tokenAnd]
	case t < 32 || t == 127:
		return fmt.Sprintf("char(%d)", int(t))
	}
	return string([]byte{byte(t)})
}

// lexer splits a source into tokens.
type lexer struct {
	source string
	chunk  string // as errors name it
	at     int
	line   int
	pass   func(steps int) // may be nil
	tokens int

	kind      token
	text      string // of a name or a string
	number    float64
	start     int // where the token begins
	lastLine  int // where the token before ended
	ahead     bool
	aheadKind token
	saved     struct {
		text   string
		number float64
		line   int
	}
}

// SyntaxError says what is wrong with a source, and where.
type SyntaxError string

func (e SyntaxError) Error() string { return string(e) }

// These bound the name of a chunk in a syntax error and in others.
const maxSyntaxChunk, maxErrorChunk = 80, 60

// fail ends the compilation. near is what the message shows, if anything.
func (x *lexer) fail(message, near string) {
	text := fmt.Sprintf("%s:%d: %s", x.chunk, x.line, message)
	if near != "" {
		near, _, _ = strings.Cut(near, "\x00")
		text += " near '" + near + "'"
	}
	panic(SyntaxError(text))
}

// failHere names the present token.
func (x *lexer) failHere(message string) { x.fail(message, x.shown(x.kind)) }

// shown is how messages show the present token.
func (x *lexer) shown(kind token) string {
	switch kind {
	case tokenName, tokenString, tokenNumber:
		return x.source[x.start:x.at]
	case 0: // a zero byte
		return ""
	}
	return kind.String()
}

// failRead names what has been read of a token.
func (x *lexer) failRead(message string) { x.fail(message, x.source[x.start:x.at]) }

func (x *lexer) next() {
	const tokensPerPass, stepsPerToken = 256, 8
	if x.tokens++; x.tokens%tokensPerPass == 0 && x.pass != nil {
		x.pass(tokensPerPass * stepsPerToken)
	}
	x.lastLine = x.line
	if x.ahead {
		x.ahead = false
		x.kind, x.text, x.number = x.aheadKind, x.saved.text, x.saved.number
		return
	}
	x.kind = x.scan()
}

// peek looks at the token after the present one.
func (x *lexer) peek() token {
	kind, text, number := x.kind, x.text, x.number
	x.aheadKind = x.scan()
	x.saved.text, x.saved.number = x.text, x.number
	x.kind, x.text, x.number = kind, text, number
	x.ahead = true
	return x.aheadKind
}

// char is the byte at the present place, 0 at the end.
func (x *lexer) char() byte {
	if x.at < len(x.source) {
		return x.source[x.at]
	}
	return 0
}

func (x *lexer) charAfter() byte {
	if x.at+1 < len(x.source) {
		return x.source[x.at+1]
	}
	return 0
}

// newLine skips an end of line; \r\n and \n\r are one.
func (x *lexer) newLine() {
	first := x.char()
	x.at++
	if second := x.char(); (second == '\n' || second == '\r') && second != first {
		x.at++
	}
	x.line++
}

func (x *lexer) scan() token {
	for {
		x.start = x.at
		if x.at >= len(x.source) {
			return tokenEOF
		}
		switch c := x.source[x.at]; c {
		case '\n', '\r':
			x.newLine()
		case ' ', '\t', '\v', '\f':
			x.at++
		case '-':
			x.at++
			if x.char() != '-' {
				return '-'
			}
			x.comment()
		case '[':
			if level, ok := x.longOpening(); ok {
				x.longText(level, false)
				return tokenString
			} else if level > 0 {
				x.failRead("invalid long string delimiter")
			}
			x.at = x.start + 1
			return '['
		case '=':
			return x.orEqual('=', tokenEqual)
		case '<':
			return x.orEqual('<', tokenLessEq)
		case '>':
			return x.orEqual('>', tokenGreaterEq)
		case '~':
			return x.orEqual('~', tokenNotEqual)
		case '"', '\'':
			x.quoted(c)
			return tokenString
		case '.':
			return x.dots()
		default:
			return x.word(c)
		}
	}
}

func (x *lexer) orEqual(single, double token) token {
	x.at++
	if x.char() != '=' {
		return single
	}
	x.at++
	return double
}

func (x *lexer) dots() token {
	if isDigit(x.charAfter()) {
		return x.numeral()
	}
	x.at++
	if x.char() != '.' {
		return '.'
	}
	x.at++
	if x.char() != '.' {
		return tokenConcat
	}
	x.at++
	return tokenDots
}

// word scans a number, a name, or a sign of one byte.
func (x *lexer) word(c byte) token {
	if isDigit(c) {
		return x.numeral()
	}
	if !isAlpha(c) && c != '_' {
		x.at++
		return token(c)
	}
	for x.at < len(x.source) && isNameByte(x.source[x.at]) {
		x.at++
	}
	x.text = x.source[x.start:x.at]
	if kind := reserved[x.text]; kind != 0 {
		return kind
	}
	return tokenName
}

func isNameByte(c byte) bool { return isAlpha(c) || isDigit(c) || c == '_' }

func (x *lexer) numeral() token {
	for isDigit(x.char()) || x.char() == '.' {
		x.at++
	}
	if x.char()|0x20 == 'e' {
		x.at++
		if x.char() == '+' || x.char() == '-' {
			x.at++
		}
	}
	for isNameByte(x.char()) {
		x.at++
	}
	f, ok := ParseNumber(x.source[x.start:x.at])
	if !ok {
		x.failRead("malformed number")
	}
	x.number = f
	return tokenNumber
}

func (x *lexer) comment() {
	x.at++
	if x.char() == '[' {
		if level, ok := x.longOpening(); ok {
			x.longText(level, true)
			return
		}
	}
	for x.at < len(x.source) && x.source[x.at] != '\n' && x.source[x.at] != '\r' {
		x.at++
	}
}

// longOpening scans [, some =, [. If it is none, level is how many = there are.
func (x *lexer) longOpening() (level int, ok bool) {
	x.at++
	for x.char() == '=' {
		level++
		x.at++
	}
	if x.char() == '[' {
		x.at++
		return level, true
	}
	return level, false
}

// longText scans the rest of a long string or comment.
func (x *lexer) longText(level int, comment bool) {
	if c := x.char(); c == '\n' || c == '\r' {
		x.newLine()
	}
	begin := x.at
	closing := "]" + strings.Repeat("=", level) + "]"
	plain := true // no line ends other than \n
	for {
		if x.at >= len(x.source) {
			if comment {
				x.fail("unfinished long comment", "<eof>")
			}
			x.fail("unfinished long string", "<eof>")
		}
		switch c := x.source[x.at]; c {
		case ']':
			if strings.HasPrefix(x.source[x.at:], closing) {
				x.text = x.source[begin:x.at]
				if !plain {
					x.text = unifyLines(x.text)
				}
				x.at += len(closing)
				return
			}
			x.at++
		case '[':
			if level == 0 && x.charAfter() == '[' { // it had a meaning once
				x.at += 2
				x.fail("nesting of [[...]] is deprecated", "[")
			}
			x.at++
		case '\r', '\n':
			was := x.at
			x.newLine()
			plain = plain && c == '\n' && x.at == was+1
		default:
			x.at++
		}
	}
}

// unifyLines makes every end of line \n.
func unifyLines(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\r' && c != '\n' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('\n')
		if i+1 < len(text) && (text[i+1] == '\r' || text[i+1] == '\n') && text[i+1] != c {
			i++
		}
	}
	return b.String()
}

// quoted scans a string in quotes.
func (x *lexer) quoted(quote byte) {
	x.at++
	begin := x.at
	for x.at < len(x.source) { // most have nothing to replace
		switch x.source[x.at] {
		case quote:
			x.text = x.source[begin:x.at]
			x.at++
			return
		case '\\', '\n', '\r':
			x.escaped(quote, begin)
			return
		}
		x.at++
	}
	x.fail("unfinished string", "<eof>")
}

func (x *lexer) escaped(quote byte, begin int) {
	text := []byte(x.source[begin:x.at])
	for {
		if x.at >= len(x.source) {
			x.fail("unfinished string", "<eof>")
		}
		switch c := x.source[x.at]; c {
		case quote:
			x.at++
			x.text = string(text)
			return
		case '\n', '\r':
			x.failRead("unfinished string")
		case '\\':
			x.at++
			text = x.escape(text)
		default:
			text = append(text, c)
			x.at++
		}
	}
}

// escape scans what stands behind a backslash.
func (x *lexer) escape(text []byte) []byte {
	if x.at >= len(x.source) {
		return text // the caller finds the end
	}
	c := x.source[x.at]
	if at := strings.IndexByte("abfnrtv", c); at >= 0 {
		x.at++
		return append(text, "\a\b\f\n\r\t\v"[at])
	}
	switch {
	case c == '\n' || c == '\r':
		x.newLine()
		return append(text, '\n')
	case !isDigit(c):
		x.at++
		return append(text, c)
	}
	before, n := x.at-1, 0
	for i := 0; i < 3 && isDigit(x.char()); i++ {
		n = 10*n + int(x.char()-'0')
		x.at++
	}
	if n > 255 {
		x.fail("escape sequence too large", x.source[x.start:before])
	}
	return append(text, byte(n))
}
