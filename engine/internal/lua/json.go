package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// The library cjson, in the behaviour of lua-cjson 2.1 as Redis carries it.
// Its settings last for one script; Redis keeps them until it restarts.

// jsonNull is cjson.null: a value that is its own kind of nothing.
var jsonNull = &glua.LUserData{Metatable: glua.LNil}

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
	members["new"] = s.function(func(l *glua.LState) int {
		config := new(jsonConfig)
		config.reset()
		t := l.CreateTable(0, 16)
		for name, value := range s.jsonFunctions(config) {
			t.RawSetString(name, value)
		}
		l.Push(t)
		return 1
	})
	return members
}

func (s *state) jsonFunctions(c *jsonConfig) library {
	members := s.functions(map[string]glua.LGFunction{
		"encode":                  func(l *glua.LState) int { return s.jsonEncode(l, c) },
		"decode":                  func(l *glua.LState) int { return s.jsonDecode(l, c) },
		"encode_sparse_array":     func(l *glua.LState) int { return jsonSparse(l, c) },
		"encode_max_depth":        jsonInteger("encode_max_depth", &c.encodeDepth, 1, 1<<31-1),
		"decode_max_depth":        jsonInteger("decode_max_depth", &c.decodeDepth, 1, 1<<31-1),
		"encode_number_precision": jsonInteger("encode_number_precision", &c.precision, 1, 14),
		"encode_keep_buffer":      jsonSwitch("encode_keep_buffer", &c.keepBuffer),
		"decode_invalid_numbers":  jsonSwitch("decode_invalid_numbers", &c.decodeInvalid),
		"encode_invalid_numbers":  func(l *glua.LState) int { return jsonInvalid(l, c) },
	})
	members["null"] = jsonNull
	members["_NAME"] = glua.LString("cjson")
	members["_VERSION"] = glua.LString("2.1.0")
	return members
}

// jsonArguments checks that a setting got at most n arguments.
func jsonArguments(l *glua.LState, n int, function string) {
	if l.GetTop() > n {
		argError(l, n+1, function, "found too many arguments")
	}
}

func jsonInteger(function string, setting *int, lowest, highest int) glua.LGFunction {
	return func(l *glua.LState) int {
		jsonArguments(l, 1, function)
		jsonOption(l, 1, function, setting, lowest, highest)
		l.Push(glua.LNumber(*setting))
		return 1
	}
}

func jsonOption(l *glua.LState, n int, function string, setting *int, lowest, highest int) {
	if l.Get(n) == glua.LNil {
		return
	}
	value := checkInt(l, n, function)
	if value < lowest || value > highest {
		argError(l, n, function, fmt.Sprintf("expected integer between %d and %d", lowest, highest))
	}
	*setting = value
}

func jsonSwitch(function string, setting *bool) glua.LGFunction {
	return func(l *glua.LState) int {
		jsonArguments(l, 1, function)
		jsonBool(l, 1, function, setting)
		l.Push(glua.LBool(*setting))
		return 1
	}
}

func jsonBool(l *glua.LState, n int, function string, setting *bool) {
	switch v := l.Get(n).(type) {
	case *glua.LNilType:
	case glua.LBool:
		*setting = bool(v)
	default:
		text := checkString(l, n, function)
		if text != "on" && text != "off" {
			argError(l, n, function, "invalid option '"+text+"'")
		}
		*setting = text == "on"
	}
}

func jsonSparse(l *glua.LState, c *jsonConfig) int {
	const function = "encode_sparse_array"
	jsonArguments(l, 3, function)
	jsonBool(l, 1, function, &c.sparseConvert)
	jsonOption(l, 2, function, &c.sparseRatio, 0, 1<<31-1)
	jsonOption(l, 3, function, &c.sparseSafe, 0, 1<<31-1)
	l.Push(glua.LBool(c.sparseConvert))
	l.Push(glua.LNumber(c.sparseRatio))
	l.Push(glua.LNumber(c.sparseSafe))
	return 3
}

func jsonInvalid(l *glua.LState, c *jsonConfig) int {
	const function = "encode_invalid_numbers"
	jsonArguments(l, 1, function)
	switch v := l.Get(1).(type) {
	case *glua.LNilType:
	case glua.LBool:
		c.encodeInvalid = 0
		if v {
			c.encodeInvalid = 1
		}
	default:
		text := checkString(l, 1, function)
		choice := map[string]int{"off": 0, "on": 1, "null": 2}
		n, ok := choice[text]
		if !ok {
			argError(l, 1, function, "invalid option '"+text+"'")
		}
		c.encodeInvalid = n
	}
	if c.encodeInvalid == 2 {
		l.Push(glua.LString("null"))
	} else {
		l.Push(glua.LBool(c.encodeInvalid == 1))
	}
	return 1
}

func (s *state) jsonEncode(l *glua.LState, c *jsonConfig) int {
	if l.GetTop() != 1 {
		argError(l, 1, "encode", "expected 1 argument")
	}
	e := jsonEncoder{state: s, l: l, config: c}
	e.value(l.Get(1), 0)
	s.meter.reserve(l, len(e.out))
	l.Push(glua.LString(e.out))
	return 1
}

type jsonEncoder struct {
	state  *state
	l      *glua.LState
	config *jsonConfig
	out    []byte
}

func (e *jsonEncoder) value(v glua.LValue, depth int) {
	switch v := v.(type) {
	case glua.LString:
		e.text(string(v))
	case glua.LNumber:
		e.number(v)
	case glua.LBool:
		if v {
			e.out = append(e.out, "true"...)
		} else {
			e.out = append(e.out, "false"...)
		}
	case *glua.LTable:
		e.table(e.state.unwrap(v), depth+1)
	case *glua.LNilType:
		e.out = append(e.out, "null"...)
	case *glua.LUserData:
		if v != jsonNull {
			e.refuse(v, "type not supported")
		}
		e.out = append(e.out, "null"...)
	default:
		e.refuse(v, "type not supported")
	}
	if len(e.out) > maxTextBytes {
		raise(e.l, noMemory)
	}
}

func (e *jsonEncoder) refuse(v glua.LValue, reason string) {
	raise(e.l, "Cannot serialise %s: %s", v.Type().String(), reason)
}

func (e *jsonEncoder) number(f glua.LNumber) {
	if f != f || f-f != 0 {
		switch e.config.encodeInvalid {
		case 0:
			e.refuse(f, "must not be NaN or Inf")
		case 2:
			e.out = append(e.out, "null"...)
			return
		}
		if f != f {
			e.out = append(e.out, "nan"...)
			return
		}
	}
	e.out = appendG(e.out, float64(f), e.config.precision)
}

const hexDigits = "0123456789abcdef"

func (e *jsonEncoder) text(text string) {
	e.out = append(e.out, '"')
	for i := 0; i < len(text); i++ {
		c := text[i]
		if at := strings.IndexByte("\"\\/\b\t\n\f\r", c); at >= 0 {
			e.out = append(e.out, '\\', "\"\\/btnfr"[at])
		} else if c < 32 || c == 127 {
			e.out = append(e.out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		} else {
			e.out = append(e.out, c)
		}
	}
	e.out = append(e.out, '"')
}

func (e *jsonEncoder) table(t *glua.LTable, depth int) {
	e.state.meter.pass(e.l, 1)
	if depth > min(e.config.encodeDepth, maxJSONDepth) {
		raise(e.l, "Cannot serialise, excessive nesting (%d)", depth)
	}
	if n := e.arrayLength(t); n > 0 {
		e.out = append(e.out, '[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.out = append(e.out, ',')
			}
			e.value(t.RawGet(glua.LNumber(i)), depth)
		}
		e.out = append(e.out, ']')
		return
	}
	e.object(t, depth)
}

// arrayLength gives 0 for what is to be an object.
func (e *jsonEncoder) arrayLength(t *glua.LTable) int {
	longest, items := 0, 0
	for k, _ := t.Next(glua.LNil); k != glua.LNil; k, _ = t.Next(k) {
		f, ok := k.(glua.LNumber)
		if !ok || f < 1 || f != glua.LNumber(int(f)) {
			return 0
		}
		longest = max(longest, int(f))
		items++
	}
	c := e.config
	if c.sparseRatio > 0 && longest > items*c.sparseRatio && longest > c.sparseSafe {
		if !c.sparseConvert {
			e.refuse(t, "excessively sparse array")
		}
		return 0
	}
	return longest
}

func (e *jsonEncoder) object(t *glua.LTable, depth int) {
	e.out = append(e.out, '{')
	first := true
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		switch k := k.(type) {
		case glua.LString:
			e.text(string(k))
		case glua.LNumber:
			e.out = append(e.out, '"')
			e.number(k)
			e.out = append(e.out, '"')
		default:
			e.refuse(k, "table key must be a number or string")
		}
		e.out = append(e.out, ':')
		e.value(v, depth)
	}
	e.out = append(e.out, '}')
}
