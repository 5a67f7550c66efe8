package lua

import (
	"fmt"
	"strconv"

	glua "github.com/yuin/gopher-lua"
)

// The checks here replace those of gopher-lua's auxiliary library, whose
// texts and conversions differ from Lua 5.1: users read these errors.

// argError raises "bad argument #n to 'function' (what)".
func argError(l *glua.LState, n int, function, what string) {
	raise(l, "bad argument #%d to '%s' (%s)", n, function, what)
}

// raise raises an error that begins with the place of the function that
// called the running one, if that is written in Lua.
func raise(l *glua.LState, format string, args ...any) {
	position, _ := where(l, 1)
	raisePlain(l, position+fmt.Sprintf(format, args...))
}

// raisePlain raises an error without a place.
func raisePlain(l *glua.LState, text string) { l.Error(glua.LString(text), 0) }

func typeError(l *glua.LState, n int, function, want string) {
	got := "no value"
	if n <= l.GetTop() {
		got = l.Get(n).Type().String()
	}
	argError(l, n, function, want+" expected, got "+got)
}

func checkAny(l *glua.LState, n int, function string) glua.LValue {
	if n > l.GetTop() {
		argError(l, n, function, "value expected")
	}
	return l.Get(n)
}

func checkString(l *glua.LState, n int, function string) string {
	if s, ok := l.Get(n).(glua.LString); ok {
		return string(s)
	}
	s, ok := toText(l.Get(n))
	if !ok {
		typeError(l, n, function, "string")
	}
	return s
}

func checkNumber(l *glua.LState, n int, function string) glua.LNumber {
	f, ok := toNumber(l.Get(n))
	if !ok {
		typeError(l, n, function, "number")
	}
	return f
}

func checkInt(l *glua.LState, n int, function string) int {
	return int(toInt64(checkNumber(l, n, function)))
}

func optInt(l *glua.LState, n int, function string, otherwise int) int {
	if l.Get(n) == glua.LNil {
		return otherwise
	}
	return checkInt(l, n, function)
}

func optString(l *glua.LState, n int, function, otherwise string) string {
	if l.Get(n) == glua.LNil {
		return otherwise
	}
	return checkString(l, n, function)
}

func checkTable(l *glua.LState, n int, function string) *glua.LTable {
	t, ok := l.Get(n).(*glua.LTable)
	if !ok {
		typeError(l, n, function, "table")
	}
	return t
}

func checkFunction(l *glua.LState, n int, function string) *glua.LFunction {
	f, ok := l.Get(n).(*glua.LFunction)
	if !ok {
		typeError(l, n, function, "function")
	}
	return f
}

// where gives "chunk:line: " of the function at a level of the stack, and
// the line; "" and -1 for a function in Go.
func where(l *glua.LState, level int) (string, int) {
	frame, ok := l.GetStack(level)
	if !ok {
		return "", -1
	}
	if _, err := l.GetInfo("Sl", frame, glua.LNil); err != nil || frame.CurrentLine <= 0 || frame.Source == "" {
		return "", -1
	}
	return frame.Source + ":" + strconv.Itoa(frame.CurrentLine) + ": ", frame.CurrentLine
}
