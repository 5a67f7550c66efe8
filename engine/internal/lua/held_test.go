package lua

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Scripts whose single instructions, or functions of a library, have much to do. Whatever they do, the meter must get to look
// soon: only then can others be told that a script runs, and end it. Time is that of the processor, and the measure a loop
// that does nothing: what takes so many times as long as that between two looks would take more than 100 ms with texts of
// 400 MB.

const mostLooks = 1000

// stopwatch is a host that measures the longest time that a script runs between two looks of the meter.
type stopwatch struct {
	*fakeHost
	last, longest time.Duration
	looks         int
	most          int // looks, then it is enough
}

func (w *stopwatch) Interrupt(int) string {
	now := threadTime()
	if w.looks++; w.looks > 1 {
		w.longest = max(w.longest, now-w.last)
	}
	w.last = threadTime()
	if w.looks > w.most {
		return "enough"
	}
	return ""
}

// big has a short pattern take long.
const big = "local function big(c, n) return string.rep(c, n or 6e7) end "

var heavyScripts = map[string]string{
	"question marks":           "return string.rep('a', 1e6):find(string.rep('a?', 26) .. string.rep('a', 26) .. 'b')",
	"optional on long":         "return string.rep('a', 3e7):find(string.rep('a?', 10) .. 'b')",
	"plain pattern class":      "return string.rep('a', 3e7):find('[b-z]c')",
	"long set":                 "return string.rep('a', 3e4):find('[' .. string.rep('b', 1e5) .. ']')",
	"long literal":             "local s = string.rep('a', 1e5) return s:find(string.rep('a', 5e4) .. '[b]')",
	"frontier":                 "return string.rep('a', 3e4):find('%f[' .. string.rep('b', 1e5) .. ']')",
	"back reference":           big + "local s = big('a', 1e6) return s:find('(a*)%1b')",
	"many captures":            "return string.rep('a', 3e7):gsub('(a)', '%1%1%1')",
	"substitution":             big + "return string.rep('a', 300):gsub('a', big('%0', 1e6))",
	"substitution long":        big + "return ('a'):gsub('a', big('b', 6e7))",
	"position captures":        "return string.rep('a', 3e7):find(string.rep('()', 30) .. 'b')",
	"balance":                  "return string.rep('(', 3e5):find('%b()b')",
	"anchored star":            big + "return big('a', 5e7):find('^a*b')",
	"find plain":               big + "return big('a'):find(big('a', 3e7) .. 'b', 1, true)",
	"find special in pattern":  big + "return ('x'):find(big('a'))",
	"gmatch":                   "local n = 0 for w in string.rep('a ', 1e6):gmatch('%a+') do n = n + 1 end return n",
	"gsub table":               "return string.rep('a', 3e6):gsub('a', {a = 'b'})",
	"sparse array":             "cjson.encode_sparse_array(false, 0, 0) return cjson.encode({[1] = 1, [2^40] = 2})",
	"sparse arrays":            "cjson.encode_sparse_array(true, 1e9, 1) local t = {[1e6] = 1} return cjson.encode(t)",
	"encode list":              "local t = {} for i = 1, 1e6 do t[i] = i end return #cjson.encode(t)",
	"encode texts":             big + "return #cjson.encode({big('a', 5e7)})",
	"encode quotes":            big + "return #cjson.encode({big('\"', 1e7)})",
	"encode shared":            big + "local s, t = big('a', 1e7), {} for i = 1, 30 do t[i] = s end return #cjson.encode(t)",
	"encode nil list":          "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do t[i] = nil end return cjson.encode(t)",
	"decode spaces":            big + "return cjson.decode(big(' '))",
	"decode zero":              big + "return cjson.decode(big(' ') .. '\\0')",
	"decode text":              big + "return #cjson.decode('\"' .. big('a') .. '\"')",
	"decode escapes":           big + "return #cjson.decode('\"' .. big('\\\\n', 1e7) .. '\"')",
	"decode after escape":      big + "return #cjson.decode('\"\\\\n' .. big('a', 3e7) .. '\"')",
	"decode number":            big + "return cjson.decode(big('1'))",
	"decode digits":            big + "return cjson.decode('0.' .. big('1'))",
	"decode words":             big + "return cjson.decode('[' .. big('1,', 1e7) .. '1]')[3]",
	"decode objects":           big + "return #cjson.decode('[' .. big('{},', 3e6) .. '1]')",
	"concat":                   big + "local s = big('a') return #(s .. 'b')",
	"concat compare":           big + "local s, r = big('a', 3e7), big('a', 3e7) return s == r",
	"compare less":             big + "local s, r = big('a'), big('a') return s < r",
	"compare less equal":       big + "local s, r = big('a'), big('a') return s <= r",
	"compare equal":            big + "local s, r = big('a'), big('a') return s == r and 1",
	"rawequal":                 big + "local s, r = big('a'), big('a') return rawequal(s, r)",
	"key":                      big + "local s = big('a') local t = {} for i = 1, 20 do t[i .. 'x'] = 1 end t[s] = 1 return t[s]",
	"key equal":                big + "local s, r = big('a'), big('a') local t = {[s] = 1} return t[r]",
	"key rehash":               big + "local s = big('a') local t = {[s] = 1} for i = 1, 200 do t[i .. 'x'] = 1 end return t[s]",
	"number of text":           big + "return tonumber(big('1'))",
	"number of spaces":         big + "return tonumber(big(' ') .. '1')",
	"number in base":           big + "return tonumber(big('1'), 3)",
	"number in base spaces":    big + "return tonumber(big(' '), 3)",
	"arithmetic":               big + "return pcall(function() return big('1') + 1 end)",
	"insert at 1":              "local t = {} for i = 1, 2e5 do table.insert(t, 1, i) end return #t",
	"insert at 1 long":         "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 20 do table.insert(t, 1, i) end return #t",
	"remove at 1":              "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 20 do table.remove(t, 1) end return #t",
	"insert below 1":           "local t = {} for i = 1, 1e6 do t[i] = i end table.insert(t, -1e6, 1) return #t",
	"insert far":               "local t = {} for i = 1, 1e6 do t[i] = i end table.insert(t, 1e7, 1) return #t",
	"sort":                     "local t = {} for i = 1, 1e6 do t[i] = -i end table.sort(t) return #t",
	"sort texts":               big + "local t = {} for i = 1, 100 do t[i] = big('a', 3e6) .. i end table.sort(t) return #t",
	"maxn":                     "local t = {} for i = 1, 1e6 do t[i] = i end return table.maxn(t)",
	"length":                   "local t = {} for i = 1, 2e6 do t[i * 2] = i end t[1] = 1 return #t",
	"foreach":                  "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do t[i] = nil end table.foreach(t, print) return 1",
	"next after holes":         "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do t[i] = nil end for i = 1, 20 do next(t) end return 1",
	"pairs of holes":           "local t = {} for i = 1, 1e6 do t[i .. ''] = i end for k in pairs(t) do t[k] = nil end return next(t)",
	"many keys":                "local t = {} for i = 1, 1e6 do t['k' .. i] = i end return 1",
	"colliding keys":           "local t = {} for i = 1, 2e4 do t[struct.unpack('<d', struct.pack('<I4I4', 2^31 - i, 2^30 + i))] = i end return 1",
	"colliding keys not there": "local t, s = {}, struct for i = 1, 2e4 do t[s.unpack('<d', s.pack('<I4I4', 2^31 - i, 2^30 + i))] = i end local k = s.unpack('<d', s.pack('<I4I4', 2^31, 2^30)) for i = 1, 1e4 do k = t[k] or k end return 1",
	"many numbers":             "local t = {} for i = 1, 1e6 do t[i] = i end return 1",
	"numbers down":             "local t = {} for i = 1e6, 1, -1 do t[i] = i end return 1",
	"rep":                      "return #string.rep('x', 1e8)",
	"rep of medium":            big + "return #string.rep(big('x', 7e4), 1000)",
	"upper":                    big + "return #big('x'):upper()",
	"reverse":                  big + "return #big('x'):reverse()",
	"sub":                      big + "return #big('x'):sub(2, 2.9e7)",
	"byte":                     big + "return big('x'):byte(-1)",
	"format s":                 big + "return #string.format('%s', big('x'))",
	"format q":                 big + "return #string.format('%q', big('x', 3e7))",
	"format text":              big + "return #string.format(big('x'))",
	"format percent":           big + "return #string.format(big('%%', 3e7))",
	"format short":             big + "return #string.format('%.10s', big('x'))",
	"format flags":             big + "return string.format('%' .. big('-') .. 'd', 1)",
	"table.concat":             big + "local s, t = big('x', 1e5), {} for i = 1, 600 do t[i] = s end return #table.concat(t, s, 1, 300)",
	"table.concat small":       "local t = {} for i = 1, 1e6 do t[i] = 'x' end return #table.concat(t, ',')",
	"pack":                     big + "return #cmsgpack.pack(big('x'))",
	"pack list":                "local t = {} for i = 1, 1e6 do t[i] = i end return #cmsgpack.pack(t)",
	"unpack text":              big + "return #cmsgpack.unpack(cmsgpack.pack(big('x', 3e7)))",
	"unpack list":              "local t = {} for i = 1, 2e6 do t[i] = i end return #cmsgpack.unpack(cmsgpack.pack(t))",
	"unpack many":              big + "return select('#', cmsgpack.unpack(big('\\1', 7000)))",
	"struct.pack":              big + "return #struct.pack('s', big('x'))",
	"struct.pack fill":         big + "return #struct.pack(big('x'))",
	"struct.pack align":        "return #struct.pack('!1024' .. string.rep('bi1024', 3), 1, 1, 1, 1, 1, 1)",
	"struct.unpack":            big + "return #struct.unpack('s', big('x') .. '\\0')",
	"struct.unpack skip":       big + "return struct.unpack(big('x'), big('x'))",
	"struct.size":              big + "return struct.size(big('b'))",
	"struct controls":          big + "return struct.size(big('<'))",
	"struct digits":            big + "return struct.size('i' .. big('0') .. '1')",
	"sha1hex":                  big + "return redis.sha1hex(big('x'))",
	"error reply":              big + "return redis.error_reply(big('x'))",
	"error reply line":         big + "return redis.error_reply(big('x') .. '\\r\\n')",
	"status reply":             big + "return redis.status_reply(big('x'))",
	"log":                      big + "return redis.log(redis.LOG_WARNING, big('x'))",
	"logs":                     big + "local s = big('x') return redis.log(redis.LOG_WARNING, s, s)",
	"error":                    big + "error(big('x'))",
	"error without place":      big + "error(big('x'), 0)",
	"error zeros":              big + "error(big('x') .. '\\r\\n', 0)",
	"assert":                   big + "assert(false, big('x'))",
	"return":                   big + "return big('x')",
	"return list":              "local t = {} for i = 1, 1e6 do t[i] = i end return t",
	"return list of long":      big + "local s = big('x', 1e7) local t = {} for i = 1, 40 do t[i] = s end return t",
	"return status":            big + "return {ok = big('x')}",
	"return verbatim":          big + "redis.setresp(3) return {verbatim_string = {format = 'txt', string = big('x')}}",
	"return big number":        big + "return {big_number = big('1')}",
	"return set":               "local t = {} for i = 1, 2e5 do t[i .. ''] = true end redis.setresp(3) return {set = t}",
	"return map":               "local t = {} for i = 1, 1e6 do t[i] = i end for i = 1, 1e6 do t[i] = nil end redis.setresp(3) return {map = t}",
	"loadstring":               big + "return loadstring(big('x'))",
	"loadstring long":          big + "return type(loadstring('return \"' .. big('x', 4e6) .. '\"'))",
	"loadstring name":          big + "return loadstring('x', big('x'))",
	"loadstring name line":     big + "return loadstring('x', '=' .. big('x'))",
	"load":                     big + "local n = 0 return load(function() n = n + 1 if n < 3 then return big('x') end end)",
	"unknown global":           big + "return _G[big('x')]",
	"setmetatable":             big + "return getmetatable(big('x'))",
	"index of text":            big + "local s = big('x') return s[s]",
	"tostring":                 big + "return #tostring(big('x'))",
	"stack":                    "local function f(n) if n > 0 then return 1 + f(n - 1) end return 0 end for i = 1, 20 do f(1.6e4) end return 1",
	"weighing":                 "local t = {} for i = 1, 1e6 do t[i] = {} end return 1",
	"weighing texts":           "local t = {} for i = 1, 1e6 do t[i] = string.rep('x', 300) end return 1",
	"tables dropped":           "for j = 1, 40 do local t = {} for i = 1, 1e6 do t[i] = {} end end return 1",
	"for text":                 big + "for i = 1, big('1') do end",
	"cjson setting":            big + "return pcall(cjson.encode_keep_buffer, big('x'))",
	"collectgarbage":           big + "return pcall(collectgarbage, big('x'))",
	"error handler":            big + "return xpcall(function() error(big('x')) end, function(e) return #e end)",
	"select":                   big + "return pcall(select, big('#'))",
	"compile error":            big + "return pcall(loadstring, big('x y ', 1e6))",
	"field of error":           big + "local t = {} return pcall(function() return t[big('x')].y end)",
}

// largeTables are those of tens of millions of values, whose memory Go makes in one piece: beside the script.
var largeTables = map[string]string{
	"large hash":    "local t = {} for i = 1, 6e6 do t[i + 0.5] = i end return 1",
	"large to list": "local t = {} for i = 6e6, 1, -1 do t[i] = i end return 1",
}

// measure runs a script for so many looks, and says what the longest time between two of them was.
func measure(t *testing.T, script string, most int) (longest, total time.Duration, looks int) {
	t.Helper()
	vm := New(nil)
	defer vm.Close()
	compiled, err := vm.Load([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	w := &stopwatch{fakeHost: newFakeHost(), most: most}
	out := resp.Writer{Proto: 3}
	begin := threadTime()
	vm.Run(w, compiled, nil, nil, &out)
	total = threadTime() - begin
	w.Interrupt(0)
	return w.longest, total, w.looks
}

func TestNothingHoldsUpTheMeter(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, total, looks := measure(t, "for i = 1, 1e7 do end", math.MaxInt)
	bound := mostLooks * total / time.Duration(looks)
	hold := func(name, script string, most int) {
		longest, _, _ := measure(t, script, most)
		for range 4 {
			if longest > bound { // the collector's share of the work is not always the same
				runtime.GC()
				again, _, _ := measure(t, script, most)
				longest = min(longest, again)
			}
		}
		if longest > bound {
			t.Errorf("%s: %v without a look, at most %v", name, longest, bound)
		}
	}
	for name, script := range largeTables {
		measure(t, script, math.MaxInt) // the next one has memory that has to be cleared
		hold(name, script, math.MaxInt)
	}
	for name, script := range heavyScripts {
		hold(name, script, 1500)
	}
}
