package lua

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// The basic functions of Lua 5.1 that Redis leaves to scripts.

// maxResults is Lua's limit on the values a function may put on its stack.
const maxResults = 8000

func (s *state) baseFunctions() library {
	base := s.functions(map[string]glua.LGFunction{
		"assert": baseAssert, "collectgarbage": baseCollect, "error": baseError, "gcinfo": baseGcinfo,
		"getmetatable": s.getmetatable, "load": s.load, "loadstring": s.loadstring, "next": s.next,
		"pcall": s.pcall, "rawequal": baseRawequal, "rawget": s.rawget, "rawset": s.rawset,
		"select": baseSelect, "setmetatable": s.setmetatable, "tonumber": baseTonumber,
		"tostring": s.tostring, "type": baseType, "unpack": s.unpack, "xpcall": s.xpcall, "ipairs": s.ipairs(),
	})
	next := base["next"]
	base["pairs"] = s.function(func(l *glua.LState) int {
		t := checkTable(l, 1, "pairs")
		l.Push(next)
		l.Push(t)
		l.Push(glua.LNil)
		return 3
	})
	return base
}

func baseAssert(l *glua.LState) int {
	if glua.LVAsBool(checkAny(l, 1, "assert")) {
		return l.GetTop()
	}
	raise(l, "%s", optString(l, 2, "assert", "assertion failed!"))
	return 0
}

func baseCollect(l *glua.LState) int {
	// The memory is Go's to collect; a script has no business there.
	switch option := optString(l, 1, "collectgarbage", "collect"); option {
	case "count":
		return baseGcinfo(l)
	case "step":
		l.Push(glua.LFalse)
	case "collect", "stop", "restart", "setpause", "setstepmul":
		l.Push(glua.LNumber(0))
	default:
		argError(l, 1, "collectgarbage", "invalid option '"+option+"'")
	}
	return 1
}

func baseGcinfo(l *glua.LState) int {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	l.Push(glua.LNumber(math.Floor(float64(stats.HeapAlloc) / 1024)))
	return 1
}

func baseError(l *glua.LState) int {
	v := l.Get(1)
	level := optInt(l, 2, "error", 1)
	if text, ok := toText(v); ok && level > 0 {
		position, _ := where(l, level)
		v = glua.LString(position + text)
	}
	l.Error(v, 0)
	return 0
}

func (s *state) getmetatable(l *glua.LState) int {
	v := checkAny(l, 1, "getmetatable")
	if t, ok := v.(*glua.LTable); ok && s.isFrozen(t) {
		l.Push(glua.LNil)
		return 1
	}
	l.Push(l.GetMetatable(v))
	return 1
}

func (s *state) setmetatable(l *glua.LState) int {
	t := checkTable(l, 1, "setmetatable")
	meta := l.Get(2)
	if _, ok := meta.(*glua.LTable); !ok && (meta != glua.LNil || l.GetTop() < 2) {
		argError(l, 2, "setmetatable", "nil or table expected")
	}
	if s.isFrozen(t) {
		raisePlain(l, readonlyMessage)
	}
	if l.GetMetaField(t, "__metatable") != glua.LNil {
		raise(l, "cannot change a protected metatable")
	}
	t.Metatable = meta
	l.SetTop(1)
	return 1
}

func (s *state) load(l *glua.LState) int {
	reader := checkFunction(l, 1, "load")
	name := optString(l, 2, "load", "=(load)")
	var source strings.Builder
	for {
		l.Push(reader)
		l.Call(0, 1)
		piece := l.Get(-1)
		l.Pop(1)
		if piece == glua.LNil {
			break
		}
		text, ok := toText(piece)
		if !ok {
			raise(l, "reader function must return a string")
		}
		if text == "" {
			break
		}
		if source.Len()+len(text) > maxSourceBytes {
			raise(l, noMemory)
		}
		source.WriteString(text)
	}
	return s.loadChunk(l, source.String(), name)
}

func (s *state) loadstring(l *glua.LState) int {
	source := checkString(l, 1, "loadstring")
	return s.loadChunk(l, source, optString(l, 2, "loadstring", source))
}

// loadChunk compiles text at run time. It is rewritten like a script, so it
// can reach no more than one.
func (s *state) loadChunk(l *glua.LState, source, name string) int {
	const treeFactor = 100 // the syntax tree's bytes for each of the text
	s.meter.reserve(l, treeFactor*min(len(source), maxSourceBytes))
	s.meter.pass(l, min(len(source), maxSourceBytes))
	proto, err := s.compile(source, chunkName(name))
	if err != nil {
		l.Push(glua.LNil)
		l.Push(glua.LString(err.Error()))
		return 2
	}
	l.Push(l.NewFunctionFromProto(proto))
	return 1
}

// chunkName shows the origin of a chunk in messages, as Lua does.
func chunkName(name string) string {
	if strings.HasPrefix(name, "=") || strings.HasPrefix(name, "@") {
		return name[1:]
	}
	line, _, more := strings.Cut(name, "\n")
	if len(line) > 40 {
		line, more = line[:40], true
	}
	if more {
		line += "..."
	}
	return `[string "` + line + `"]`
}

func (s *state) next(l *glua.LState) int {
	t := s.unwrap(checkTable(l, 1, "next"))
	key, value := t.Next(l.Get(2))
	l.Push(key)
	if key == glua.LNil {
		return 1
	}
	l.Push(value)
	return 2
}

func (s *state) ipairs() glua.LGFunction {
	step := s.function(func(l *glua.LState) int {
		t, ok := l.Get(1).(*glua.LTable)
		i := checkInt(l, 2, "ipairs") + 1
		if !ok {
			typeError(l, 1, "ipairs", "table")
		}
		v := s.unwrap(t).RawGetInt(i)
		if v == glua.LNil {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(glua.LNumber(i))
		l.Push(v)
		return 2
	})
	return func(l *glua.LState) int {
		t := checkTable(l, 1, "ipairs")
		l.Push(step)
		l.Push(t)
		l.Push(glua.LNumber(0))
		return 3
	}
}

// pcall answers an error table that has a text in "err" by that text: so a
// failed redis.call looks like any other error.
func (s *state) pcall(l *glua.LState) int {
	checkAny(l, 1, "pcall")
	l.Insert(s.guard, 1)
	if err := l.PCall(l.GetTop()-1, glua.MultRet, nil); err != nil {
		v := errorValue(err)
		if t, ok := v.(*glua.LTable); ok {
			if text, ok := t.RawGetString("err").(glua.LString); ok {
				v = text
			}
		}
		l.SetTop(0)
		l.Push(glua.LFalse)
		l.Push(v)
		return 2
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

func (s *state) xpcall(l *glua.LState) int {
	if l.GetTop() < 2 {
		argError(l, 2, "xpcall", "value expected")
	}
	handler := l.Get(2)
	l.SetTop(1)
	l.Insert(s.guard, 1)
	if err := l.PCall(1, glua.MultRet, nil); err != nil {
		l.SetTop(0)
		l.Push(glua.LFalse)
		l.Push(handler)
		l.Push(errorValue(err))
		l.Call(1, 1)
		return 2
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

func errorValue(err error) glua.LValue {
	var api *glua.ApiError
	if !errors.As(err, &api) {
		return glua.LString(err.Error())
	}
	if text, ok := api.Object.(glua.LString); ok {
		return glua.LString(translate(string(text)))
	}
	return api.Object
}

func baseRawequal(l *glua.LState) int {
	l.Push(glua.LBool(l.RawEqual(checkAny(l, 1, "rawequal"), checkAny(l, 2, "rawequal"))))
	return 1
}

func (s *state) rawget(l *glua.LState) int {
	t := s.unwrap(checkTable(l, 1, "rawget"))
	l.Push(t.RawGet(checkAny(l, 2, "rawget")))
	return 1
}

func (s *state) rawset(l *glua.LState) int {
	t := checkTable(l, 1, "rawset")
	if s.isFrozen(t) {
		raisePlain(l, readonlyMessage)
	}
	key, value := checkAny(l, 2, "rawset"), checkAny(l, 3, "rawset")
	s.reserveKey(l, t, key)
	l.RawSet(t, key, value)
	l.SetTop(1)
	return 1
}

func baseSelect(l *glua.LState) int {
	n := l.GetTop()
	if text, ok := l.Get(1).(glua.LString); ok && strings.HasPrefix(string(text), "#") {
		l.Push(glua.LNumber(n - 1))
		return 1
	}
	i := checkInt(l, 1, "select")
	if i < 0 {
		i = n + i
	} else if i > n {
		i = n
	}
	if i < 1 {
		argError(l, 1, "select", "index out of range")
	}
	return n - i
}

func baseTonumber(l *glua.LState) int {
	base := optInt(l, 2, "tonumber", 10)
	if base == 10 {
		v := checkAny(l, 1, "tonumber")
		if _, ok := v.(glua.LNumber); ok {
			l.Push(v)
		} else if f, ok := toNumber(v); ok {
			l.Push(value(f))
		} else {
			l.Push(glua.LNil)
		}
		return 1
	}
	text := checkString(l, 1, "tonumber")
	if base < 2 || base > 36 {
		argError(l, 2, "tonumber", "base out of range")
	}
	if f, ok := parseInBase(text, base); ok {
		l.Push(f)
	} else {
		l.Push(glua.LNil)
	}
	return 1
}

// parseInBase reads as C's strtoul does: a sign is allowed and wraps.
func parseInBase(text string, base int) (glua.LNumber, bool) {
	text = strings.ToLower(strings.Trim(text, " \t\n\v\f\r"))
	negative := strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	if base == 16 {
		text = strings.TrimPrefix(text, "0x")
	}
	if text == "" {
		return 0, false
	}
	var n uint64
	for i := 0; i < len(text); i++ {
		digit := strings.IndexByte("0123456789abcdefghijklmnopqrstuvwxyz", text[i])
		if digit < 0 || digit >= base {
			return 0, false
		}
		if n > (math.MaxUint64-uint64(digit))/uint64(base) {
			return glua.LNumber(math.MaxUint64), true
		}
		n = n*uint64(base) + uint64(digit)
	}
	if negative {
		n = -n
	}
	return glua.LNumber(n), true
}

func (s *state) tostring(l *glua.LState) int {
	v := checkAny(l, 1, "tostring")
	if f := l.GetMetaField(v, "__tostring"); f != glua.LNil {
		l.Push(f)
		l.Push(v)
		l.Call(1, 1)
		return 1
	}
	l.Push(glua.LString(s.display(v)))
	return 1
}

func (s *state) display(v glua.LValue) string {
	if text, ok := toText(v); ok {
		return text
	}
	switch v := v.(type) {
	case *glua.LFunction:
		if v.IsG {
			return fmt.Sprintf("function: %p", v)
		}
	case *glua.LUserData:
		if v == jsonNull {
			return "userdata: (nil)"
		}
		return fmt.Sprintf("userdata: %p", v)
	}
	return v.String()
}

func baseType(l *glua.LState) int {
	l.Push(glua.LString(checkAny(l, 1, "type").Type().String()))
	return 1
}

func (s *state) unpack(l *glua.LState) int {
	t := s.unwrap(checkTable(l, 1, "unpack"))
	from := optInt(l, 2, "unpack", 1)
	to := 0
	if l.Get(3) == glua.LNil {
		to = t.Len()
	} else {
		to = checkInt(l, 3, "unpack")
	}
	if from > to {
		return 0
	}
	n := to - from + 1
	if n <= 0 || n+l.GetTop() > maxResults {
		raise(l, "too many results to unpack")
	}
	for i := from; i <= to; i++ {
		l.Push(t.RawGet(glua.LNumber(i)))
	}
	return n
}
