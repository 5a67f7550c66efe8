package lua

import (
	"fmt"
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The basic functions of Lua 5.1 that Redis leaves to scripts.

// maxResults is Lua's limit on the values a function may put on its stack.
const maxResults = 8000

func (s *state) baseFunctions() library {
	base := s.functions(map[string]lua51.GoFunction{
		"assert": baseAssert, "collectgarbage": baseCollect, "error": baseError, "gcinfo": baseGcinfo,
		"getmetatable": s.getmetatable, "load": s.load, "loadstring": s.loadstring, "next": baseNext,
		"pcall": basePcall, "rawequal": baseRawequal, "rawget": baseRawget, "rawset": baseRawset,
		"select": baseSelect, "setmetatable": baseSetmetatable, "tonumber": baseTonumber,
		"tostring": s.tostring, "type": baseType, "unpack": baseUnpack, "xpcall": baseXpcall, "ipairs": s.ipairs(),
	})
	base["pairs"] = s.function(func(l *lua51.Thread) int {
		t := checkTable(l, 1)
		l.Push(base["next"])
		l.Push(t.Value())
		l.Push(lua51.Nil)
		return 3
	})
	return base
}

func baseAssert(l *lua51.Thread) int {
	if checkAny(l, 1).Truth() {
		return l.Top()
	}
	l.Raise("%s", cText(optString(l, 2, "assertion failed!")))
	return 0
}

func baseCollect(l *lua51.Thread) int {
	// The memory is Go's to collect; a script has no business there.
	switch option := optString(l, 1, "collect"); option {
	case "count":
		return baseGcinfo(l)
	case "step":
		l.Push(lua51.False)
	case "collect", "stop", "restart", "setpause", "setstepmul":
		l.PushInt(0)
	default:
		l.ArgError(1, "invalid option '"+inLine(option)+"'")
	}
	return 1
}

func baseGcinfo(l *lua51.Thread) int {
	l.PushInt(int(l.State().MadeBytes() >> 10))
	return 1
}

func baseError(l *lua51.Thread) int {
	v := l.Arg(1)
	level := optInt32(l, 2, 1)
	if text, ok := v.ToText(); ok && level > 0 {
		v = joined(l, l.Where(level), text)
	}
	l.Throw(v)
	return 0
}

func (s *state) getmetatable(l *lua51.Thread) int {
	meta := s.vm.MetaTable(checkAny(l, 1))
	if meta == nil {
		l.Push(lua51.Nil)
	} else if face := meta.GetString("__metatable"); !face.IsNil() {
		l.Push(face)
	} else {
		l.PushTable(meta)
	}
	return 1
}

func baseSetmetatable(l *lua51.Thread) int {
	t := checkTable(l, 1)
	meta := l.Arg(2).AsTable()
	if meta == nil && (!l.Arg(2).IsNil() || l.Top() < 2) {
		l.ArgError(2, "nil or table expected")
	}
	if before := t.Meta(); before != nil && !before.GetString("__metatable").IsNil() {
		l.Raise("cannot change a protected metatable")
	}
	if t.ReadOnly() {
		raisePlain(l, lua51.ReadOnlyMessage)
	}
	t.SetMeta(meta)
	l.SetTop(1)
	return 1
}

func (s *state) load(l *lua51.Thread) int {
	reader := checkFunction(l, 1)
	name := optString(l, 2, "=(load)")
	source := s.output(l)
	for length := 0; ; {
		piece := l.Call1(reader.Value())
		text, ok := piece.ToText()
		if !ok && !piece.IsNil() {
			l.Raise("reader function must return a string")
		}
		if text == "" {
			break
		}
		if length += len(text); length > maxSourceBytes {
			l.OutOfMemory()
		}
		source.add(text)
	}
	text, _ := source.value().AsString()
	return s.loadChunk(l, text, name)
}

func (s *state) loadstring(l *lua51.Thread) int {
	source := checkString(l, 1)
	return s.loadChunk(l, source, optString(l, 2, source))
}

// loadChunk compiles text at run time.
func (s *state) loadChunk(l *lua51.Thread, source, name string) int {
	const codeFactor = 32 // the code's bytes for each of the text
	l.Charge(codeFactor * min(len(source), maxSourceBytes))
	if len(name) > maxLineBytes && name[0] == '@' { // of a name the end is shown, of others the beginning
		name = "@" + name[len(name)-maxLineBytes:]
	}
	proto, err := s.compile(source, cText(name), l.Pass)
	if err != nil {
		l.Push(lua51.Nil)
		l.PushString(err.Error())
		return 2
	}
	l.Push(s.vm.Load(proto).Value())
	return 1
}

func baseNext(l *lua51.Thread) int {
	key, value, ok := l.Next(checkTable(l, 1), l.Arg(2))
	if !ok {
		raisePlain(l, "invalid key to 'next'")
	}
	l.Push(key)
	if key.IsNil() {
		return 1
	}
	l.Push(value)
	return 2
}

func (s *state) ipairs() lua51.GoFunction {
	step := s.function(func(l *lua51.Thread) int {
		i := checkInt32(l, 2) + 1
		v := checkTable(l, 1).GetInt(i)
		if v.IsNil() {
			return 0
		}
		l.PushInt(i)
		l.Push(v)
		return 2
	})
	return func(l *lua51.Thread) int {
		t := checkTable(l, 1)
		l.Push(step)
		l.Push(t.Value())
		l.PushInt(0)
		return 3
	}
}

// basePcall answers an error table that has a text in "err" by that text: so a
// failed redis.call looks like any other error.
func basePcall(l *lua51.Thread) int {
	checkAny(l, 1)
	thrown := l.PCall(l.Top()-1, -1)
	if thrown == nil {
		l.Insert(lua51.True, 1)
		return l.Top()
	}
	v := thrown.Value
	l.Push(lua51.False)
	t := v.AsTable()
	if t == nil {
		l.Push(v)
		return 2
	}
	text := t.GetString("err")
	if _, ok := text.ToText(); ok {
		l.Push(text)
		return 2
	}
	l.Push(v)
	l.Push(text) // Redis leaves it there
	return 3
}

func baseXpcall(l *lua51.Thread) int {
	checkAny(l, 2)
	handler := l.Arg(2)
	l.SetTop(1)
	if thrown := l.XPCall(0, -1, handler); thrown != nil {
		l.Push(lua51.False)
		l.Push(thrown.Value)
		return 2
	}
	l.Insert(lua51.True, 1)
	return l.Top()
}

func baseRawequal(l *lua51.Thread) int {
	a, b := checkAny(l, 1), checkAny(l, 2)
	x, isText := a.AsString()
	if y, areTexts := b.AsString(); isText && areTexts {
		l.PushBool(l.SameText(x, y))
	} else {
		l.PushBool(a.Equal(b))
	}
	return 1
}

func baseRawget(l *lua51.Thread) int {
	l.Push(checkTable(l, 1).Get(checkAny(l, 2)))
	return 1
}

func baseRawset(l *lua51.Thread) int {
	t := checkTable(l, 1)
	l.RawSet(t, checkAny(l, 2), checkAny(l, 3))
	l.SetTop(1)
	return 1
}

func baseSelect(l *lua51.Thread) int {
	n := l.Top()
	if text, ok := l.Arg(1).AsString(); ok && strings.HasPrefix(text, "#") {
		l.PushInt(n - 1)
		return 1
	}
	i := checkInt32(l, 1)
	if i < 0 {
		i = n + i
	} else if i > n {
		i = n
	}
	if i < 1 {
		l.ArgError(1, "index out of range")
	}
	return n - i
}

func baseTonumber(l *lua51.Thread) int {
	base := optInt32(l, 2, 10)
	if base == 10 {
		if f, ok := checkAny(l, 1).ToNumber(); ok {
			l.PushNumber(f)
		} else {
			l.Push(lua51.Nil)
		}
		return 1
	}
	text := checkString(l, 1)
	if base < 2 || base > 36 {
		l.ArgError(2, "base out of range")
	}
	if f, ok := parseInBase(text, base); ok {
		l.PushNumber(f)
	} else {
		l.Push(lua51.Nil)
	}
	return 1
}

// parseInBase reads as C's strtoul does: a sign is allowed and wraps.
func parseInBase(text string, base int) (float64, bool) {
	if len(text) > lua51.MaxNumberText {
		return 0, false
	}
	text, _, _ = strings.Cut(text, "\x00") // where it ends in C
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
			return math.MaxUint64, true
		}
		n = n*uint64(base) + uint64(digit)
	}
	if negative {
		n = -n
	}
	return float64(n), true
}

func (s *state) tostring(l *lua51.Thread) int {
	v := checkAny(l, 1)
	if meta := s.vm.MetaTable(v); meta != nil {
		if f := meta.GetString("__tostring"); !f.IsNil() {
			l.Push(l.Call1(f, v))
			return 1
		}
	}
	if _, ok := v.AsString(); ok {
		l.Push(v)
	} else if f, ok := v.AsNumber(); ok {
		var room [32]byte
		l.Push(s.vm.Text(lua51.AppendNumber(room[:0], f)))
	} else {
		l.PushString(s.display(v))
	}
	return 1
}

// display shows a value as tostring does, without metatables.
func (s *state) display(v lua51.Value) string {
	if text, ok := v.ToText(); ok {
		return text
	}
	switch v.Kind() {
	case lua51.KindNil:
		return "nil"
	case lua51.KindBool:
		if v.Truth() {
			return "true"
		}
		return "false"
	case lua51.KindUser:
		return "userdata: (nil)"
	}
	return fmt.Sprintf("%s: 0x%x", v.TypeName(), v.Address())
}

func baseType(l *lua51.Thread) int {
	l.PushString(checkAny(l, 1).TypeName())
	return 1
}

func baseUnpack(l *lua51.Thread) int {
	t := checkTable(l, 1)
	from := optInt32(l, 2, 1)
	to := 0
	if l.Arg(3).IsNil() {
		to = t.Len()
	} else {
		to = checkInt32(l, 3)
	}
	if from > to {
		return 0
	}
	n := to - from + 1
	if n <= 0 || n+l.Top() > maxResults {
		l.Raise("too many results to unpack")
	}
	for i := from; i <= to; i++ {
		l.Push(t.GetInt(i))
	}
	return n
}
