package engine_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/internal/difftest"
)

// Random scripts, which must answer the same here, on a real redis-server and, where they use the libraries of Lua alone, in
// lua5.1. A script is made of bytes: each decides one choice, and when there are none left the first choice is taken. So the
// fuzzer knows which bytes lead somewhere new.
//
// What is known to differ is not written: addresses, the sign of what is no number, functions whose last bit depends on the C
// library. The order of pairs, which is not the same everywhere in lua5.1, is for the random tables.

// scriptWriter writes a script.
type scriptWriter struct {
	choices []byte
	b       strings.Builder
	depth   int
	redis   bool // it may use what Lua alone does not have
}

// pick chooses one of n.
func (w *scriptWriter) pick(n int) int {
	if len(w.choices) == 0 {
		return 0
	}
	c := int(w.choices[0])
	w.choices = w.choices[1:]
	return c % n
}

func (w *scriptWriter) one(of ...string) string { return of[w.pick(len(of))] }

// scriptHead is before each script: p keeps what it is given, as a text that says all of it.
const scriptHead = `local out = {}
local function show(v, depth)
  local kind = type(v)
  if v ~= v then return 'nan' end
  if kind == 'string' then return string.format('%q', v) end
  if kind ~= 'table' then return kind == 'function' and kind or tostring(v) end
  if depth > 4 then return '{...}' end
  local parts, n = {}, 0
  for k, e in pairs(v) do n = n + 1 parts[n] = show(k, depth + 1) .. '=' .. show(e, depth + 1) end
  table.sort(parts)
  return '{' .. table.concat(parts, ',') .. '}'
end
local function p(...)
  for i = 1, select('#', ...) do out[#out + 1] = show((select(i, ...)), 0) end
  out[#out + 1] = '\n'
end
local a, b, c, s, t, u, f = 1.5, '12', nil, 'hello world', {1, 2, 3, 'x'}, {x = 'y', z = {1}}, function(...) return ... end
`

const scriptTail = "return table.concat(out, ' ')"

// writeScript makes a script of bytes.
func writeScript(choices []byte, redis bool) string {
	w := &scriptWriter{choices: choices, redis: redis}
	w.b.WriteString(scriptHead)
	for range 200 {
		w.statement()
		if len(w.choices) == 0 {
			break
		}
	}
	w.b.WriteString("p(a, b, c, s, t, u) " + scriptTail)
	return w.b.String()
}

func (w *scriptWriter) statement() {
	switch w.pick(8) {
	case 0, 1:
		w.b.WriteString("p(pcall(function() return " + w.call() + " end))\n")
	case 2:
		w.b.WriteString("p(pcall(" + w.function() + ", " + w.one(w.text(), w.number(), w.name()) + ", " + w.one(w.text(), w.number(), "nil", "f") + ", " + w.number() + "))\n")
	case 3:
		w.b.WriteString("pcall(function() " + w.one("a", "b", "c", "s", "u") + " = " + w.expr() + " end)\n")
	case 4:
		w.b.WriteString("pcall(function() u[" + w.one(w.text(), "0.5", "-1", "2^53", "true", "nil", "a") + "] = " + w.one(w.text(), w.number(), "true", "{}") + " end)\n")
	case 5:
		w.b.WriteString("for i = " + w.one("1", "-1", "0.5") + ", " + w.one("2", "0", "5.1", "3") + " do pcall(function() " + w.one("a", "b", "c", "s", "u") + " = " + w.expr() + " end) end\n")
	case 6:
		w.b.WriteString("p(pcall(function() return " + w.expr() + " end))\n")
	default:
		w.b.WriteString("p(pcall(function() for w, x in string.gmatch(" + w.text() + ", " + w.pattern() + ") do p(w, x) end end))\n")
	}
}

func (w *scriptWriter) name() string { return w.one("a", "b", "c", "s", "t", "u") }

func (w *scriptWriter) small() string {
	return w.one("1", "2", "3", "0", "-1", "-2", "5", "10", "#t", "2.5", "-0.5", "nil", "'2'", "40")
}

func (w *scriptWriter) number() string {
	return w.one("1", "0", "-1", "0.1", "1e15", "-1e15", "2^31", "2^53", "1e300", "1/3", "123456789012345", "-2^63", "0xff", "1e-5", "-7.75", "255", "1e14")
}

func (w *scriptWriter) text() string { return w.one(w.literal(), w.literal(), w.literal(), "s", "b") }

func (w *scriptWriter) literal() string {
	return w.one("'abc'", "''", "'a,b,,c'", "'  x y  '", "'\\0\\1\\255'", "'12'", "'0x1F'", "'1e3'", "'key = value'", "'((a)(b))'",
		"'THE (quick) fox'", "'aaaa'", "'[1,2,{\"a\":null}]'", "'\\n\\t\"\\\\'", "'%d %s'", "' 7 '", "'0x'")
}

func (w *scriptWriter) value() string {
	switch w.pick(7) {
	case 0:
		return w.name()
	case 1:
		return w.number()
	case 2:
		return w.one("nil", "true", "false", "f", "{}", "{{}}", "{1, 2, 3}", "{x = 1}", "t[1]", "u.x", "u.z[1]")
	case 3:
		return w.small()
	default:
		return w.text()
	}
}

func (w *scriptWriter) expr() string {
	if w.depth++; w.depth > 4 {
		w.depth--
		return w.value()
	}
	defer func() { w.depth-- }()
	switch w.pick(10) {
	case 0, 1:
		return w.value()
	case 2, 3, 4:
		return w.expr() + " " + w.one("..", "+", "-", "*", "/", "%", "==", "~=", "<", "<=", ">", ">=", "and", "or") + " " + w.expr()
	case 5:
		return w.one("- ", "not ", "#") + w.value()
	case 6:
		return "(" + w.expr() + ")"
	case 7:
		return w.name() + w.one("[1]", ".x", "[#t]", ".x.y", ":len()", "()")
	default:
		return w.call()
	}
}

func (w *scriptWriter) pattern() string {
	const parts = 4
	var pattern strings.Builder
	for range w.pick(parts) + 1 {
		pattern.WriteString(w.one("%a", ".", "a", "[^,]", "%d", "%s", "(%w", ")", "()", "[a-c]", "%1", "%b()", "%f[%w]", "^", "$", "[%]x]", "%", "[", "%W", "b", "%z", "\\\\"))
		pattern.WriteString(w.one("", "*", "+", "-", "?", ")"))
	}
	return "'" + pattern.String() + "'"
}

func (w *scriptWriter) layout() string {
	return "'" + w.one("", "<", "x ") + "%" + w.one("", "-", "+", "0", " ", "#", "-0", "++++++") + w.one("", "5", "12", "100") + w.one("", ".3", ".0", ".", ".20", ".100") +
		w.one("d", "s", "x", "g", "f", "e", "c", "q", "i", "o", "X", "u", "G", "E", "%", "y", "") + w.one("", ">", "%s") + "'"
}

// call is a function of a library, with arguments that are mostly what it wants.
func (w *scriptWriter) call() string {
	if w.redis && w.pick(3) == 0 {
		return w.redisCall()
	}
	v, txt, n := w.value, w.text, w.small
	switch w.pick(30) {
	case 0:
		return "string.find(" + txt() + ", " + w.pattern() + w.one("", ", "+n(), ", 1, true") + ")"
	case 1:
		return "string.match(" + txt() + ", " + w.pattern() + ")"
	case 2:
		return "string.gsub(" + txt() + ", " + w.pattern() + ", " + w.one("'<%0>'", "'%1'", "u", "f", "string.upper", "'%2%%'", "'%'", v()) + w.one("", ", "+n()) + ")"
	case 3, 4:
		return "string.format(" + w.layout() + ", " + v() + ", " + v() + ")"
	case 5:
		return "string.sub(" + txt() + ", " + n() + w.one("", ", "+n()) + ")"
	case 6:
		return "string.rep(" + txt() + ", " + n() + ")"
	case 7:
		return "string.byte(" + txt() + ", " + n() + w.one("", ", "+n()) + ")"
	case 8:
		return "string.char(" + n() + ", " + w.one("65", "255", "256", "0", "-1", v()) + ")"
	case 9:
		return "string." + w.one("upper", "lower", "reverse", "len") + "(" + v() + ")"
	case 10:
		return "tostring(" + w.one(w.number(), "'1e3'", "nil", "true") + ")"
	case 11, 12:
		return "tonumber(" + v() + w.one("", ", "+w.one("16", "2", "36", "10", "8", "1", "37")) + ")"
	case 13:
		return "table.concat(" + w.one("t", "{}", "{1, 2}", "{'a', {}}", v()) + w.one("", ", "+v()) + w.one("", ", "+n()+", "+n()) + ")"
	case 14:
		return "table.insert(t, " + w.one("", "1, ", "2, ", "2.5, ", "#t + 1, ") + w.literal() + ")"
	case 15:
		return "(function() local l = {1, " + v() + ", 'x'} return table.remove(l" + w.one("", ", "+n()) + "), l end)()"
	case 16:
		return "(function() local l = {" + v() + ", " + v() + ", " + v() + ", " + v() + "} table.sort(l" + w.one("", ", function(x, y) return x > y end", ", f") + ") return l end)()"
	case 17:
		return "unpack(" + w.one("t", "{}", "{1, nil, 3}", v()) + w.one("", ", "+n()+", "+n()) + ")"
	case 18:
		return "select(" + w.one("'#'", n(), v()) + ", " + v() + ", " + v() + ")"
	case 19:
		return "math." + w.one("floor", "ceil", "abs", "sqrt", "modf", "frexp") + "(" + w.one(w.number(), v()) + ")"
	case 20:
		return "math." + w.one("max", "min", "fmod") + "(" + w.one(w.number(), v()) + ", " + w.number() + ")"
	case 21:
		return "next(" + w.one("{}", "{5}", txt()) + w.one("", ", "+txt(), ", 1", ", 7") + ")"
	case 22:
		return "type(" + w.expr() + ")"
	case 23:
		return "setmetatable({}, {__index = " + v() + ", __concat = f, __add = f})" + w.one(".x", " .. 'y'", " + 1", "[1]", "()")
	case 24:
		return "loadstring(" + w.one("'return 1 + '", "'return ...'", "'x ='", "'return \"\\\\65\"'", "'for'", "'return 0x'", "'goto'", "'local a <'", txt()) + ")"
	case 25:
		return "rawequal(" + v() + ", " + v() + ")"
	case 26:
		return "pcall(error, " + w.one(w.literal(), w.number()) + w.one("", ", 1", ", 0", ", nil") + ")"
	case 27:
		return "(function(...) return select('#', ...), ... end)(" + v() + ", " + v() + ")"
	case 28:
		return "coroutine.wrap(function(x) local y = coroutine.yield(x) return y end)(" + v() + ")"
	default:
		return "xpcall(function() return " + w.expr() + " end, function(e) return type(e) end)"
	}
}

// redisCall is one of the libraries that Redis adds.
func (w *scriptWriter) redisCall() string {
	v, txt := w.value, w.text
	plain := func() string {
		return w.one(txt(), w.number(), w.small(), "true", "{}", "{1, 2, 'x'}", "{{}, 0.5}", "f", "{[3] = 1}")
	} // or the order of pairs shows
	switch w.pick(10) {
	case 0:
		return "cjson.encode(" + w.one(plain(), "{x = "+plain()+"}", "{{}, "+plain()+"}") + ")"
	case 1:
		return "cjson.decode(" + w.one("'[1, 2.50, -3e2]'", "'{\"a\": [true, null]}'", "'\"\\\\u00e4\\\\n\"'", "'[1'", "'{}'", "'[01]'", txt()) + ")"
	case 2:
		return "cmsgpack.unpack(cmsgpack.pack(" + w.one(plain(), "{"+plain()+", "+plain()+"}") + "))"
	case 3:
		return "cmsgpack.pack(" + w.one(plain(), "{x = "+plain()+"}") + ")"
	case 4:
		return "bit." + w.one("band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror") + "(" + w.one(w.number(), v()) + ", " + w.small() + ")"
	case 5:
		return "bit." + w.one("tobit", "bnot", "bswap", "tohex") + "(" + w.one(w.number(), v()) + ")"
	case 6:
		return "struct.pack(" + w.one("'>I2'", "'<i4'", "'s'", "'c3'", "'bB'", "'d'", "'!4 bi4'", "'f'", "'q'") + ", " + v() + ", " + v() + ")"
	case 7:
		return "struct.unpack(" + w.one("'>I2'", "'<i4'", "'s'", "'c3'", "'bB'", "'d'", "'!4 bi4'", "'c0'", "'q'") + ", " + txt() + w.one("", ", "+w.small()) + ")"
	case 8:
		return "redis.sha1hex(" + v() + ")"
	default:
		return w.one("redis.error_reply(", "redis.status_reply(") + v() + ")"
	}
}

// function is one of a library, by itself.
func (w *scriptWriter) function() string {
	return w.one("string.sub", "string.find", "table.concat", "string.byte", "tonumber", "select", "math.max", "math.floor", "unpack",
		"string.format", "rawget", "string.len", "type", "string.gsub", "getmetatable", "assert")
}

// oracles run scripts.
type oracles struct {
	engine, redis *difftest.Conn
	lua           string // "" if there is none
}

func startOracles(t testing.TB) *oracles {
	t.Helper()
	o := &oracles{engine: connectTo(t, dial(t)), redis: connectTo(t, difftest.Redis(t).Dial)}
	o.lua, _ = exec.LookPath("lua5.1") // on other machines there may be none
	return o
}

// compare runs the script of some bytes everywhere.
func (o *oracles) compare(t testing.TB, choices []byte, withLua bool) {
	t.Helper()
	script := writeScript(choices, !withLua)
	got, want := ask(t, o.engine, "EVAL", script, "0"), ask(t, o.redis, "EVAL", script, "0")
	ask(t, o.redis, "SCRIPT", "FLUSH", "ASYNC")
	ask(t, o.engine, "SCRIPT", "FLUSH", "ASYNC")
	if got != want {
		t.Fatalf("%s\n\n got %s\nwant %s", script, got, want)
	}
	if !withLua || o.lua == "" {
		return
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, o.lua, "-")
	command.Stdin = strings.NewReader("io.write((function() " + script + " end)())")
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil && errors.Len() == 0 {
		return // lua5.1 itself crashes or hangs on a few
	}
	if err != nil {
		t.Fatalf("lua5.1: %v: %s\n%s", err, errors.String(), script)
	}
	alone := difftest.Value{Kind: difftest.BulkString, Text: strings.ReplaceAll(string(out), "stdin:", "user_script:")}
	if want := alone.String(); got != want {
		t.Fatalf("%s\n\n got %s\nlua5.1 %s", script, got, want)
	}
}

// TestRandomScripts: a few of each kind, the same every time. RANDOM_SCRIPTS says how many, RANDOM_SEED which.
func TestRandomScripts(t *testing.T) {
	t.Parallel()
	count, seed := uint64(500), uint64(1)
	for name, value := range map[string]*uint64{"RANDOM_SCRIPTS": &count, "RANDOM_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := startOracles(t)
	for i := range count {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[:], seed)
		binary.LittleEndian.PutUint64(key[8:], i)
		choices := make([]byte, 300)
		_, _ = rand.NewChaCha8(key).Read(choices) // it never fails
		o.compare(t, choices, i%4 == 0)
	}
}

// FuzzScriptsAsRedis is the same without end.
func FuzzScriptsAsRedis(f *testing.F) {
	f.Add([]byte("a few choices that the fuzzer can begin with"), true)
	f.Add([]byte{200, 3, 8, 17, 33, 2, 9, 1, 0, 77, 5, 6, 120, 41, 19}, false)
	o := startOracles(f)
	f.Fuzz(func(t *testing.T, choices []byte, withLua bool) {
		o.compare(t, choices[:min(len(choices), 1000)], withLua)
	})
}
