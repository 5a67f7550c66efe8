package lua

import (
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

func eval(t testing.TB, vm *VM, proto int, script string, args ...string) string {
	t.Helper()
	c := transcript{proto: proto, script: []string{script}, args: args}
	return c.run(vm)
}

func TestCache(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	script, err := vm.Load([]byte("return 1"))
	if err != nil || script.SHA != "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" || SHA([]byte("return 1")) != script.SHA {
		t.Fatalf("Load = %+v, %v", script, err)
	}
	if again, err := vm.Load([]byte("return 1")); again != script || err != nil || vm.Find([]byte(script.SHA)) != script {
		t.Fatalf("second Load = %+v, %v", again, err)
	}
	if _, err := vm.Load([]byte("return (")); err == nil || !strings.HasPrefix(err.Error(), "ERR Error compiling script (new function): user_script:1: ") {
		t.Fatalf("Load of a broken script: %v", err)
	}
	vm.Flush()
	if vm.Find([]byte(script.SHA)) != nil {
		t.Error("Flush has left a script")
	}
}

// TestTypedReplies covers the kinds of RESP3 that no command of Redis 7.0
// answers to a script, so that no transcript can.
func TestTypedReplies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		proto        int
		script, want string
	}{
		{2, "redis.setresp(3) return tostring(redis.call('typed','true'))", "$4\r\ntrue\r\n"},
		{3, "redis.setresp(3) return redis.call('typed','false')", "#f\r\n"},
		{3, "redis.setresp(3) return redis.call('typed','bignum')", "(1234567999999999999999999999999999999\r\n"},
		{2, "redis.setresp(3) return redis.call('typed','bignum').big_number", "$37\r\n1234567999999999999999999999999999999\r\n"},
		{3, "redis.setresp(3) return redis.call('typed','verbatim')", "=29\r\ntxt:This is a verbatim\nstring\r\n"},
		{2, "redis.setresp(3) return redis.call('typed','verbatim').verbatim_string.format", "$3\r\ntxt\r\n"},
		{3, "return redis.call('typed','true')", ":1\r\n"},
	} {
		vm := New(nil)
		if got := eval(t, vm, c.proto, c.script); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
		vm.Close()
	}
}

// TestRunsShareNothing runs one script that leaves what it can behind.
func TestRunsShareNothing(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	eval(t, vm, 2, `redis.setresp(3) cjson.encode_max_depth(1)
		local ok = redis.call('ping') ok.ok = 'changed' ok.more = 1 setmetatable(ok, {})
		setmetatable(ARGV, {__index=function() return 'left' end}) ARGV[5] = 'left' KEYS.x = 'left'
		coroutine.wrap(function() coroutine.yield() end)() return 1`, "a", "b")
	want := "*5\r\n$4\r\nPONG\r\n$3\r\nnil\r\n$3\r\nnil\r\n$3\r\nnil\r\n$6\r\n[[[]]]\r\n"
	want = strings.Replace(want, "[[[]]]", "[[{}]]", 1)
	if got := eval(t, vm, 2, `local p = redis.call('ping') return {p.ok, tostring(p.more), tostring(ARGV[5]), tostring(KEYS.x), cjson.encode({{{}}})}`); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRunaway: whatever a script does ends in an error reply, and the next
// script runs.
func TestRunaway(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"recursion":             "local function f() return 1 + f() end return f()",
		"recursion by pcall":    "local function f() pcall(f) error('x') end f()",
		"recursion by gsub":     "local function f() return (('x'):gsub('x', f)) end return f()",
		"recursion by index":    "local t = {} setmetatable(t, {__index = function(t, k) return t[k .. 'x'] end}) return t.a",
		"recursion by sort":     "local function f() table.sort({1,2,3}, f) return true end return f()",
		"recursion by tostring": "local t = {} setmetatable(t, {__tostring = function(t) return tostring(t) .. 'x' end}) return tostring(t)",
		"coroutines":            "local function f() return coroutine.wrap(f)() end return f()",
		"huge text":             "return string.rep('x', 1e9)",
		"endless JSON":          "cjson.encode_max_depth(2^31 - 1) local t = {} t[1] = t return cjson.encode(t)",
		"deep JSON":             "cjson.decode_max_depth(2^31 - 1) return cjson.decode(string.rep('[', 1e6))",
		"deep msgpack":          "return cmsgpack.unpack(string.rep('\\145', 1e6))",
		"deep syntax":           "return " + strings.Repeat("- ", 1e6) + "1",
		"unpack":                "return unpack({}, 1, 1e7)",
		"deep pattern":          "return string.rep('a', 1e6):match(string.rep('(a', 40))",
		"arguments":             "local t = {} for i = 1, 7990 do t[i] = 'x' end local function f(...) return (f(1, ...)) end return f(unpack(t))",
		"registers":             "local t = {" + strings.Repeat("{", 300) + strings.Repeat("}", 300) + "} return t.x.y",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vm := New(nil)
			defer vm.Close()
			if got := eval(t, vm, 2, script); !strings.HasPrefix(got, "-") {
				t.Errorf("got %.80q, want an error", got)
			}
			if got := eval(t, vm, 2, "return #KEYS + 1"); got != ":1\r\n" {
				t.Errorf("the next script: %q", got)
			}
		})
	}
}

func TestCyclicReplyEnds(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	got := eval(t, vm, 2, "local t = {} t[1] = t return t")
	if !strings.HasSuffix(got, "-ERR reached lua stack limit\r\n") {
		t.Errorf("got %.40q ...", got)
	}
}

// TestInterrupt: a script ends when the host says so, whatever it does.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"while true do end",
		"while true do pcall(function() while true do end end) end",
		"while true do redis.call('ping') end",
		"coroutine.wrap(function() while true do end end)()",
		"while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
		"local function f() return f() end f()",
		"loadstring('while true do end')()",
		"return string.rep('a', 40):match(string.rep('a*', 40) .. 'b')",
		"table.insert({}, -1e9, 1)",
		"return string.rep('a', 30):match(string.rep('a?', 30) .. string.rep('a', 30) .. 'b')",
		"return string.rep('a', 1e6):match('%b()')",
		"cjson.encode_sparse_array(false, 1e9, 2^31 - 1) return cjson.encode({[1] = 1, [3e8] = 1})",
		"local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 1) table.remove(t, 1) end",
		"local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e5 do t[i] = nil end while true do next(t) end",
		"local s = string.rep('x', 3e7) return s .. s",
		"local s = string.rep('x', 3e7) return s < s .. 'x'",
		"return string.rep('xyz', 1e7):upper():reverse()",
		"return loadstring('return {' .. string.rep('1,', 1e6) .. '}')",
		"local s = string.rep('x', 3e7) return {s, s, s}",
		"local t = {} for i = 1, 10 do t = {t, t, t, t, t, t} end return cjson.encode(t)",
		"local t = {} for i = 1, 15 do t = {t, t, t, t, t, t} end return cmsgpack.pack(t)",
		"local t = {} for i = 1, 30 do t = {t, t, t, t, t, t} end return t",
	} {
		vm := New(nil)
		s, err := vm.Load([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		var out resp.Writer
		host := newFakeHost()
		host.lasts = 100_000
		vm.Run(host, s, nil, nil, &out)
		if !strings.Contains(string(out.Bytes()), "Script killed by user with SCRIPT KILL...") {
			t.Errorf("%s: %.200q", script, out.Bytes())
		}
		if got := eval(t, vm, 2, "return 1"); got != ":1\r\n" {
			t.Errorf("the next script: %q", got)
		}
		vm.Close()
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var lines []string
	vm := New(func(level int, msg string) { lines = append(lines, string(rune('0'+level))+msg) })
	defer vm.Close()
	eval(t, vm, 2, "redis.log(redis.LOG_WARNING, 'a', 1.5, 'b')")
	if len(lines) != 1 || lines[0] != "3a 1.5 b" {
		t.Errorf("logged %q", lines)
	}
}

// benchHost answers at once, as a fast engine would.
type benchHost struct{}

func (benchHost) Permits([][]byte) (permitted, known bool) { return true, true }

func (benchHost) Interrupt(int) string { return "" }

func (benchHost) Record(bool) {}

func (benchHost) Heavy(int64) {}

func (benchHost) Beside(work func()) (ended func() bool) {
	work()
	return func() bool { return true }
}

func (benchHost) Call(args [][]byte, out *resp.Writer) {
	switch len(args[0]) {
	case 3:
		if args[0][0] == 'S' {
			out.SimpleString("OK")
		} else {
			out.BulkString("12")
		}
	case 6:
		out.Array(2)
		out.BulkString("first")
		out.BulkString("second")
	default:
		out.Int(3)
	}
}

func benchmark(b *testing.B, script string, keys, args []string) {
	vm := New(nil)
	defer vm.Close()
	loaded, err := vm.Load([]byte(script))
	if err != nil {
		b.Fatal(err)
	}
	k, a := byteSlices(keys), byteSlices(args)
	var out resp.Writer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		vm.Run(benchHost{}, loaded, k, a, &out)
	}
}

func BenchmarkReturnOne(b *testing.B) { benchmark(b, "return 1", nil, nil) }

func BenchmarkSixCalls(b *testing.B) {
	benchmark(b, `local v = redis.call('GET', KEYS[1])
		redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
		local r = redis.call('ZRANGE', KEYS[2], 0, 0)
		redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
		local n = redis.call('INCR', KEYS[3])
		redis.call('ZREM', KEYS[2], r[1])
		return n`, []string{"lock:a", "lock:b", "lock:c"}, []string{"1700000000000", "owner", "30000"})
}

func BenchmarkConcat(b *testing.B) {
	benchmark(b, "return KEYS[1] .. ':' .. ARGV[1] .. ':' .. 12", []string{"lock:a"}, []string{"x"})
}

// FuzzScripts: no text is so wrong that it does more than fail.
func FuzzScripts(f *testing.F) {
	f.Add("return cjson.decode('[1,{}]')")
	f.Add("return {cmsgpack.unpack('\\145\\193')}")
	f.Add("return string.format('%5.1f', 1) .. ('x'):gsub('(x)', '%1')")
	f.Add("local t = setmetatable({}, {__index=_G}) return t.x")
	f.Fuzz(func(t *testing.T, script string) {
		vm := New(nil)
		defer vm.Close()
		if s, err := vm.Load([]byte(script)); err == nil {
			var out resp.Writer
			host := newFakeHost()
			host.lasts = 100_000 // loops must not hold up the fuzzer
			vm.Run(host, s, nil, nil, &out)
		}
	})
}

// FuzzDecoders feeds the decoders of the libraries what they do not expect.
func FuzzDecoders(f *testing.F) {
	f.Add(`{"a":[1,2.5e3,"\u00e4\ud83d\ude00",null,true]}`, ">bi4!8dc0s")
	f.Add("\x93\x01\xa1x\xcb", "%f[%a](()%1)")
	f.Fuzz(func(t *testing.T, data, format string) {
		vm := New(nil)
		defer vm.Close()
		got := eval(t, vm, 2, `local n = 0
			for _, f in ipairs({cjson.decode, cmsgpack.unpack}) do pcall(f, ARGV[1]) end
			pcall(struct.unpack, ARGV[2], ARGV[1]) pcall(string.format, ARGV[2], 1, 2, 3)
			pcall(string.find, ARGV[1]:sub(1, 20), ARGV[2]:sub(1, 8)) pcall(struct.size, ARGV[2])
			return 1`, data, format)
		if got != ":1\r\n" {
			t.Errorf("got %q", got)
		}
	})
}
