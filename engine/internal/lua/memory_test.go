package lua

import (
	"runtime"
	"strings"
	"testing"
)

// TestMemoryIsBounded: whatever holds the memory, and however it came to be,
// the script ends with an error before the process is in danger.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 8 << 20
	for name, script := range map[string]string{
		"doubling":               "local s = 'x' while true do s = s .. s end",
		"repetition":             "return string.rep('x', 4e7)",
		"texts in a list":        "local t = {} while true do t[#t + 1] = string.rep('x', 1000) .. #t end",
		"distinct keys":          "local t = {} for i = 1, 1e9 do t['key' .. i] = i end",
		"a list":                 "local t = {} for i = 1, 1e9 do t[i] = i end",
		"lists emptied":          "local k = {} for j = 1, 1e9 do local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e5 do t[i] = nil end k[j] = t end",
		"holes":                  "local t = {} for i = 1, 1e9 do t[i] = {} t[i][6e7] = 1 end",
		"holes by a loop":        "local t = {} for i = 1, 1e9 do t[i] = {} for j = 6e7, 6e7 do t[i][j] = 1 end end",
		"holes by a changed i":   "local t = {} for i = 1, 1e9 do t[i] = {} for j = 1, 1 do j = 6e7 t[i][j] = 1 end end",
		"holes by a length":      "local s, t = string.rep('x', 1e7), {} for i = 1, 1e9 do t[i] = {} t[i][#s + 1] = 1 end",
		"holes by a constructor": "local t, n = {}, 6e7 for i = 1, 1e9 do t[i] = {[n] = 1} end",
		"holes by rawset":        "local t = {} for i = 1, 1e9 do t[i] = {} rawset(t[i], 6e7, 1) end",
		"holes by insert":        "local t = {} for i = 1, 1e9 do t[i] = {} table.insert(t[i], 6e7, 1) end",
		"tables":                 "local t while true do t = {t} end",
		"functions":              "local f while true do local g = f f = function() return g end end",
		"coroutines":             "local t = {} while true do t[#t + 1] = coroutine.wrap(function() coroutine.yield() end) end",
		"in a coroutine":         "coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end)()",
		"an unstarted coroutine": "local t = {} while true do local s = string.rep('x', 1e5) t[#t + 1] = coroutine.create(function() return s end) end",
		"arguments":              "local function f(...) return f(string.rep('x', 1e5), ...) end f()",
		"a recursion":            "local function f() local s = string.rep('x', 1e5) f() return s end f()",
		"behind a tail call":     "local function f() local t = {} return (function() for i = 1, 1e5 do t[i] = i end f() return t[1] end)() end f()",
		"parts of large texts":   "local t = {} while true do t[#t + 1] = string.rep('x', 1e7):sub(1, 6e6) end",
		"captures":               "local t = {} while true do t[#t + 1] = string.rep('x', 1e7):match('.*') end",
		"iterators":              "local t = {} while true do t[#t + 1] = string.rep('x', 1e6):gmatch('y') end",
		"table.concat":           "local s = string.rep('x', 1e6) local t = {} for i = 1, 100 do t[i] = s end return table.concat(t)",
		"format":                 "local s = string.rep('x', 4e6) local t = {} for i = 1, 1e9 do t[i] = string.format('%s%s', s, i) end",
		"gsub":                   "local s = string.rep('x', 1e6) local t = {} for i = 1, 1e9 do t[i] = s:gsub('x', 'yyyy') end",
		"JSON of tables":         "return cjson.decode('[' .. string.rep('[],', 1e6) .. '1]')",
		"JSON of objects":        "return cjson.decode('[' .. string.rep('{\"a\":1},', 1e6) .. '1]')",
		"MessagePack of tables":  "return cmsgpack.unpack('\\221\\0\\15\\66\\64' .. string.rep('\\145\\1', 1e6))",
		"MessagePack promises":   "return cmsgpack.unpack(string.rep('\\221\\1\\0\\0\\0', 1e5))",
		"caught":                 "local t = {} while true do local ok, e = pcall(function() while true do t[#t + 1] = {} end end) if not ok then error(e) end end",
	} {
		t.Run(name, func(t *testing.T) {
			vm := New(nil)
			defer vm.Close()
			vm.interpreter().vm.SetLimit(limit)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := eval(t, vm, 2, script)
			runtime.ReadMemStats(&after)
			if !strings.Contains(got, "not enough memory") && name != "arguments" && name != "MessagePack promises" {
				t.Errorf("got %.200q", got)
			}
			if !strings.HasPrefix(got, "-") {
				t.Errorf("got %.200q, want an error", got)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 1<<30 {
				t.Errorf("the heap has grown by %d MB", grown>>20)
			}
			runtime.GC()
		})
	}
}

// TestGarbageIsNotCounted: a script may make far more than it may hold.
func TestGarbageIsNotCounted(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	vm.interpreter().vm.SetLimit(16 << 20)
	for _, script := range []string{
		"for i = 1, 100 do local s = string.rep('x', 1e6) .. i end return 1",
		"local t for i = 1, 100000 do t = {i, {i}} end return 1",
		"local s = string.rep('x', 1e6) local t = {} for i = 1, 3000 do t[i] = s end return 1",
		"for i = 1, 50 do cjson.decode('[' .. string.rep('[],', 1e4) .. '1]') end return 1",
		"local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 200000 do t[i] = nil end return 1",
		"local t = {} for i = 1, 300000 do t['key' .. i] = i t['key' .. i] = nil end return 1",
		"local t = {} for i = 1, 100 do local k = string.rep('x', 1e6) .. i t[k] = 1 t[k] = nil end return 1",
		"local n, t = 0, {} while n < 300000 do n = n + 1 t[n] = n end return 1",
	} {
		if got := eval(t, vm, 2, script); got != ":1\r\n" {
			t.Errorf("%s: %.200q", script, got)
		}
	}
}

// TestALongReplyIsNotCopied: what a command answers is its text's memory, and stays whole when other commands answer.
func TestALongReplyIsNotCopied(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	vm.interpreter().vm.SetLimit(10 << 20)
	const script = `local s = redis.call('echo', string.rep('x', 3e6)) local r = redis.call('echo', string.rep('y', 2e6))
		redis.call('echo', 'z') return (s == string.rep('x', 3e6) and r == string.rep('y', 2e6)) and 1 or 0`
	if got := eval(t, vm, 2, script); got != ":1\r\n" {
		t.Errorf("got %.200q", got)
	}
}
