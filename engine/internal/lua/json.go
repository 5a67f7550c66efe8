package lua

import (
	"fmt"
	"math"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
)

// The library cjson, in the behaviour of lua-cjson 2.1 as Redis carries it.
// Its settings last for one script; Redis keeps them until it restarts.

// jsonNull is cjson.null: a value that is its own kind of nothing.
var jsonNull = lua51.Null

// maxJSONDepth bounds what a script may set: nesting takes Go's stack.
const maxJSONDepth = 100000

type jsonConfig struct {
	sparseConvert bool
	sparseRatio   int
	sparseSafe    int
	encodeDepth   int
	decodeDepth   int
	precision     int
	keepBuffer    bool
	encodeInvalid int // 0 refuse, 1 write, 2 write null
	decodeInvalid bool
}

func (c *jsonConfig) reset() {
	*c = jsonConfig{
		sparseRatio: 2, sparseSafe: 10, encodeDepth: 1000, decodeDepth: 1000,
		precision: 14, keepBuffer: true, decodeInvalid: true,
	}
}

func (s *state) jsonLibrary() library {
	s.json.reset()
	members := s.jsonFunctions(&s.json)
	members["new"] = s.function(func(l *lua51.Thread) int {
		config := new(jsonConfig)
		config.reset()
		l.PushTable(s.tableOf(s.jsonFunctions(config)))
		return 1
	})
	return members
}

func (s *state) jsonFunctions(c *jsonConfig) library {
	members := s.functions(map[string]lua51.GoFunction{
		"encode":                  func(l *lua51.Thread) int { return s.jsonEncode(l, c) },
		"decode":                  func(l *lua51.Thread) int { return s.jsonDecode(l, c) },
		"encode_sparse_array":     func(l *lua51.Thread) int { return jsonSparse(l, c) },
		"encode_max_depth":        jsonInteger(&c.encodeDepth, 1, 1<<31-1),
		"decode_max_depth":        jsonInteger(&c.decodeDepth, 1, 1<<31-1),
		"encode_number_precision": jsonInteger(&c.precision, 1, 14),
		"encode_keep_buffer":      jsonSwitch(&c.keepBuffer),
		"decode_invalid_numbers":  jsonSwitch(&c.decodeInvalid),
		"encode_invalid_numbers":  func(l *lua51.Thread) int { return jsonInvalid(l, c) },
	})
	members["null"] = jsonNull
	members["_NAME"] = lua51.String("cjson")
	members["_VERSION"] = lua51.String("2.1.0")
	return members
}

// jsonArguments checks that a setting got at most n arguments.
func jsonArguments(l *lua51.Thread, n int) {
	if l.Top() > n {
		l.ArgError(n+1, "found too many arguments")
	}
}

func jsonInteger(setting *int, lowest, highest int) lua51.GoFunction {
	return func(l *lua51.Thread) int {
		jsonArguments(l, 1)
		jsonOption(l, 1, setting, lowest, highest)
		l.PushInt(*setting)
		return 1
	}
}

func jsonOption(l *lua51.Thread, n int, setting *int, lowest, highest int) {
	if l.Arg(n).IsNil() {
		return
	}
	value := checkInt32(l, n)
	if value < lowest || value > highest {
		l.ArgError(n, fmt.Sprintf("expected integer between %d and %d", lowest, highest))
	}
	*setting = value
}

func jsonSwitch(setting *bool) lua51.GoFunction {
	return func(l *lua51.Thread) int {
		jsonArguments(l, 1)
		jsonBool(l, 1, setting)
		l.Push(lua51.Bool(*setting))
		return 1
	}
}

func jsonBool(l *lua51.Thread, n int, setting *bool) {
	switch v := l.Arg(n); v.Kind() {
	case lua51.KindNil:
	case lua51.KindBool:
		*setting = v.Truth()
	default:
		text := checkString(l, n)
		if text != "on" && text != "off" {
			l.ArgError(n, "invalid option '"+inLine(text)+"'")
		}
		*setting = text == "on"
	}
}

func jsonSparse(l *lua51.Thread, c *jsonConfig) int {
	jsonArguments(l, 3)
	jsonBool(l, 1, &c.sparseConvert)
	jsonOption(l, 2, &c.sparseRatio, 0, 1<<31-1)
	jsonOption(l, 3, &c.sparseSafe, 0, 1<<31-1)
	l.Push(lua51.Bool(c.sparseConvert))
	l.PushInt(c.sparseRatio)
	l.PushInt(c.sparseSafe)
	return 3
}

func jsonInvalid(l *lua51.Thread, c *jsonConfig) int {
	jsonArguments(l, 1)
	switch v := l.Arg(1); v.Kind() {
	case lua51.KindNil:
	case lua51.KindBool:
		c.encodeInvalid = 0
		if v.Truth() {
			c.encodeInvalid = 1
		}
	default:
		text := checkString(l, 1)
		choice := map[string]int{"off": 0, "on": 1, "null": 2}
		n, ok := choice[text]
		if !ok {
			l.ArgError(1, "invalid option '"+inLine(text)+"'")
		}
		c.encodeInvalid = n
	}
	if c.encodeInvalid == 2 {
		l.Push(lua51.String("null"))
	} else {
		l.Push(lua51.Bool(c.encodeInvalid == 1))
	}
	return 1
}

func (s *state) jsonEncode(l *lua51.Thread, c *jsonConfig) int {
	if l.Top() != 1 {
		l.ArgError(1, "expected 1 argument")
	}
	e := jsonEncoder{l: l, config: c, out: s.output(l)}
	e.value(l.Arg(1), 0)
	l.Push(e.out.value())
	return 1
}

type jsonEncoder struct {
	l      *lua51.Thread
	config *jsonConfig
	out    output
}

func (e *jsonEncoder) add(text string) { e.out.text = append(e.out.text, text...) }

func (e *jsonEncoder) value(v lua51.Value, depth int) {
	e.l.Pass(1)
	e.out.tidy()
	switch v.Kind() {
	case lua51.KindString:
		text, _ := v.AsString()
		e.text(text)
	case lua51.KindNumber:
		e.number(v)
	case lua51.KindBool:
		if v.Truth() {
			e.add("true")
		} else {
			e.add("false")
		}
	case lua51.KindTable:
		e.table(v.AsTable(), depth+1)
	case lua51.KindNil, lua51.KindUser:
		e.add("null")
	default:
		e.refuse(v, "type not supported")
	}
}

func (e *jsonEncoder) refuse(v lua51.Value, reason string) {
	e.l.Raise("Cannot serialise %s: %s", v.TypeName(), reason)
}

func (e *jsonEncoder) number(v lua51.Value) {
	f, _ := v.AsNumber()
	if f != f || f-f != 0 {
		switch e.config.encodeInvalid {
		case 0:
			e.refuse(v, "must not be NaN or Inf")
		case 2:
			e.add("null")
			return
		}
		if f != f {
			e.add("nan")
			return
		}
	}
	e.out.text = lua51.AppendG(e.out.text, f, e.config.precision)
}

const hexDigits = "0123456789abcdef"

func (e *jsonEncoder) text(text string) {
	out := append(e.out.text, '"')
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 32 && c != '"' && c != '\\' && c != '/' && c != 127:
			out = append(out, c)
		case strings.IndexByte("\"\\/\b\t\n\f\r", c) >= 0:
			out = append(out, '\\', "\"\\/btnfr"[strings.IndexByte("\"\\/\b\t\n\f\r", c)])
		default:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		if len(out) >= longBytes {
			e.out.text = out
			e.out.flush()
			out = e.out.text
		}
	}
	e.out.text = append(out, '"')
}

func (e *jsonEncoder) table(t *lua51.Table, depth int) {
	if depth > min(e.config.encodeDepth, maxJSONDepth) {
		e.l.Raise("Cannot serialise, excessive nesting (%d)", depth)
	}
	if n := e.arrayLength(t); n > 0 {
		e.add("[")
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.add(",")
			}
			e.value(t.GetInt(i), depth)
		}
		e.add("]")
		return
	}
	e.object(t, depth)
}

// arrayLength gives 0 for what is to be an object.
func (e *jsonEncoder) arrayLength(t *lua51.Table) int {
	longest, items := 0, 0
	for k := range e.l.All(t) {
		e.l.Pass(1)
		f, ok := k.AsNumber()
		if !ok || f < 1 || f != math.Floor(f) {
			return 0
		}
		if f > float64(longest) {
			longest = math.MinInt32 // what the original makes of a number too large for an int
			if f <= math.MaxInt32 {
				longest = int(f)
			}
		}
		items++
	}
	c := e.config
	if c.sparseRatio > 0 && longest > items*c.sparseRatio && longest > c.sparseSafe {
		if !c.sparseConvert {
			e.refuse(t.Value(), "excessively sparse array")
		}
		return 0
	}
	return longest
}

func (e *jsonEncoder) object(t *lua51.Table, depth int) {
	e.add("{")
	first := true
	for k, v := range e.l.All(t) {
		if !first {
			e.add(",")
		}
		first = false
		switch k.Kind() {
		case lua51.KindString:
			text, _ := k.AsString()
			e.text(text)
		case lua51.KindNumber:
			e.add("\"")
			e.number(k)
			e.add("\"")
		default:
			e.refuse(k, "table key must be a number or string")
		}
		e.add(":")
		e.value(v, depth)
	}
	e.add("}")
}
