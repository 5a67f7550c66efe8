package lua

import (
	"math"
	"regexp"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// arithmetic is what operators do when an operand is a string: gopher-lua
// asks the metatable of strings before it converts them in its own way.
var arithmetic = map[string]glua.LGFunction{
	"__add": operator(func(a, b float64) float64 { return a + b }),
	"__sub": operator(func(a, b float64) float64 { return a - b }),
	"__mul": operator(func(a, b float64) float64 { return a * b }),
	"__div": operator(func(a, b float64) float64 { return a / b }),
	"__mod": operator(func(a, b float64) float64 { return a - math.Floor(a/b)*b }),
	"__pow": operator(math.Pow),
	"__unm": func(l *glua.LState) int {
		a, ok := toNumber(l.Get(1))
		if !ok {
			raise(l, "attempt to perform arithmetic on a string value")
		}
		l.Push(-a)
		return 1
	},
}

func operator(compute func(a, b float64) float64) glua.LGFunction {
	return func(l *glua.LState) int {
		a, aok := toNumber(l.Get(1))
		b, bok := toNumber(l.Get(2))
		if !aok || !bok {
			bad := l.Get(1)
			if aok {
				bad = l.Get(2)
			}
			raise(l, "attempt to perform arithmetic on a %s value", bad.Type().String())
		}
		l.Push(value(glua.LNumber(compute(float64(a), float64(b)))))
		return 1
	}
}

// concat is the operator "..": all operands of a chain in one call.
func (s *state) concat(l *glua.LState) int {
	n := l.GetTop()
	var room [256]byte
	text := room[:0]
	length := 0
	for i := 1; i <= n; i++ {
		if v, ok := l.Get(i).(glua.LString); ok {
			length += len(v)
		}
	}
	if length > len(room) && length <= maxTextBytes {
		s.meter.reserve(l, length)
		text = make([]byte, 0, length+16)
	}
	for i := 1; i <= n; i++ {
		switch v := l.Get(i).(type) {
		case glua.LString:
			text = s.grow(l, text, string(v))
		case glua.LNumber:
			text = appendNumber(text, float64(v))
		default:
			l.Push(s.concatStep(l, n))
			return 1
		}
	}
	l.Push(glua.LString(text))
	return 1
}

// grow appends, up to the size that a string may have.
func (s *state) grow(l *glua.LState, text []byte, more string) []byte {
	if len(text)+len(more) > maxTextBytes {
		raise(l, noMemory)
	}
	return append(text, more...)
}

// concatStep joins pair by pair from the right, asking metatables.
func (s *state) concatStep(l *glua.LState, n int) glua.LValue {
	right := l.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := l.Get(i)
		a, aok := toText(left)
		b, bok := toText(right)
		if aok && bok {
			if len(a)+len(b) > maxTextBytes {
				raise(l, noMemory)
			}
			s.meter.reserve(l, len(a)+len(b))
			right = glua.LString(a + b)
			continue
		}
		joiner := l.GetMetaField(left, "__concat")
		if joiner == glua.LNil {
			joiner = l.GetMetaField(right, "__concat")
		}
		if joiner == glua.LNil {
			bad := left
			if aok {
				bad = right
			}
			raise(l, "attempt to concatenate a %s value", bad.Type().String())
		}
		l.Push(joiner)
		l.Push(left)
		l.Push(right)
		l.Call(2, 1)
		right = l.Get(-1)
		l.Pop(1)
	}
	return right
}

// translate gives the texts of Lua 5.1 to the errors the interpreter raises
// by itself. It cannot name the variable, as Lua does.
func translate(text string) string {
	if text == "lua callstack overflow" {
		return "stack overflow"
	}
	head, rest, found := strings.Cut(text, ": ")
	if found && isChunk(head) || !found {
		if !found {
			head, rest = "", text
		} else {
			head += ": "
		}
	} else {
		return text
	}
	switch {
	case rest == "registry overflow":
		return head + "stack overflow"
	case rest == "attempt to call a non-function object":
		return head + "attempt to call a nil value"
	case rest == "__len undefined":
		return head + "attempt to get length of a nil value"
	case rest == "__unm undefined":
		return head + "attempt to perform arithmetic on a nil value"
	case strings.HasPrefix(rest, "attempt to index a non-table object("):
		kind, _, _ := strings.Cut(rest[len("attempt to index a non-table object("):], ")")
		return head + "attempt to index a " + kind + " value"
	}
	if m := badArithmetic.FindStringSubmatch(rest); m != nil {
		bad := m[1]
		if bad == "number" {
			bad = m[2]
		}
		return head + "attempt to perform arithmetic on a " + bad + " value"
	}
	if m := badCompare.FindStringSubmatch(rest); m != nil && m[1] == m[2] {
		return head + "attempt to compare two " + m[1] + " values"
	}
	return text
}

func isChunk(place string) bool {
	return strings.HasPrefix(place, scriptChunk+":") || strings.HasPrefix(place, functionChunk+":")
}

var (
	badArithmetic = regexp.MustCompile(`^cannot perform \w+ operation between (\w+) and (\w+)$`)
	badCompare    = regexp.MustCompile(`^attempt to compare (\w+) with (\w+)$`)
)
