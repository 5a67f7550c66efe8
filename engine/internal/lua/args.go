package lua

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The checks of arguments, with the errors of Lua's auxiliary library.

// raisePlain raises an error without a place.
func raisePlain(l *lua51.Thread, text string) { l.Throw(lua51.String(text)) }

func checkAny(l *lua51.Thread, n int) lua51.Value {
	if n > l.Top() {
		l.ArgError(n, "value expected")
	}
	return l.Arg(n)
}

func checkString(l *lua51.Thread, n int) string {
	s, ok := l.Arg(n).ToText()
	if !ok {
		l.TypeError(n, "string")
	}
	return s
}

func checkNumber(l *lua51.Thread, n int) float64 {
	f, ok := l.Arg(n).ToNumber()
	if !ok {
		l.TypeError(n, "number")
	}
	return f
}

func checkInt(l *lua51.Thread, n int) int { return int(lua51.ToInt64(checkNumber(l, n))) }

// checkInt32 is for what the original keeps in an int of C, which is cut to 32 bits.
func checkInt32(l *lua51.Thread, n int) int { return int(int32(checkInt(l, n))) }

func optInt32(l *lua51.Thread, n, otherwise int) int {
	if l.Arg(n).IsNil() {
		return otherwise
	}
	return checkInt32(l, n)
}

func optInt(l *lua51.Thread, n, otherwise int) int {
	if l.Arg(n).IsNil() {
		return otherwise
	}
	return checkInt(l, n)
}

func optString(l *lua51.Thread, n int, otherwise string) string {
	if l.Arg(n).IsNil() {
		return otherwise
	}
	return checkString(l, n)
}

func checkTable(l *lua51.Thread, n int) *lua51.Table {
	t := l.Arg(n).AsTable()
	if t == nil {
		l.TypeError(n, "table")
	}
	return t
}

func checkFunction(l *lua51.Thread, n int) *lua51.Function {
	f := l.Arg(n).AsFunction()
	if f == nil {
		l.TypeError(n, "function")
	}
	return f
}

// maxLineBytes bounds the text of an error or a status in replies, and what errors
// quote: longer ones would hold up others.
const maxLineBytes = 1 << 20

func inLine(text string) string { return text[:min(len(text), maxLineBytes)] }

// joined is two texts as one.
func joined(l *lua51.Thread, a, b string) lua51.Value {
	if len(b) < longBytes {
		return lua51.String(a + b)
	}
	builder := l.NewBuilder(len(a) + len(b))
	builder.Add(a)
	builder.Add(b)
	return builder.Text()
}

// output gathers what a function makes: a short text in memory that is used
// again, a long one in a builder.
type output struct {
	s    *state
	l    *lua51.Thread
	text []byte
	long *lua51.Builder
}

// longBytes is from where on a builder takes over.
const longBytes = 64 << 10

func (s *state) output(l *lua51.Thread) output {
	o := output{s: s, l: l, text: s.scratch[:0]}
	s.scratch = nil // whoever calls back may want one as well
	return o
}

// tidy is called now and then, while text is short.
func (o *output) tidy() {
	if len(o.text) >= longBytes {
		o.flush()
	}
}

func (o *output) flush() {
	if o.long == nil {
		o.long = o.l.NewBuilder(2 * longBytes)
	}
	o.long.AddBytes(o.text)
	o.l.PassBytes(8 * len(o.text))
	o.text = o.text[:0]
}

// add adds a text of any length.
func (o *output) add(text string) {
	if len(text) < longBytes {
		o.text = append(o.text, text...)
		o.tidy()
		return
	}
	o.flush()
	o.long.Add(text)
}

func (o *output) len() int {
	if o.long == nil {
		return len(o.text)
	}
	return o.long.Len() + len(o.text)
}

// value is what was gathered. The output is not used again.
func (o *output) value() lua51.Value {
	if o.long == nil {
		o.s.scratch = o.text
		return o.l.State().Text(o.text)
	}
	o.flush()
	o.s.scratch = o.text
	return o.long.Text()
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}
