package exec_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/lua"
)

// scriptCalls are what scripts mostly do, and how many allocations one run of each may take, the commands' own among
// them: a text that was not seen lately takes two, a number above 255 one, a table that a script makes two.
var scriptCalls = []struct {
	name, body string
	budget     float64
	keys, args []string
	reply      string
}{
	{"nothing", "return 1", 0, nil, nil, ":1\r\n"},
	{"get", "return redis.call('GET', KEYS[1])", 0, []string{"text"}, nil, "$5\r\nvalue\r\n"},
	{"set", "return redis.call('SET', KEYS[1], ARGV[1])", 0, []string{"other"}, []string{"value"}, "+OK\r\n"},
	{"number", "return redis.call('INCR', KEYS[1]) % 2 + 1 > 0", 0, []string{"n"}, nil, ":1\r\n"},
	{
		"list", "local t = redis.call('HMGET', KEYS[1], 'a', 'b', 'none') return tonumber(t[1]) + tonumber(t[2] or 0)", 0,
		[]string{"hash"},
		nil, ":3\r\n",
	},
	{"format", "return string.format('%d:%s', tonumber(ARGV[1]), ARGV[2])", 0, nil, []string{"17", "x"}, "$4\r\n17:x\r\n"},
	{"match", "return string.match(ARGV[1], '^L %d+ (%d+) ')", 2, nil, []string{"L 1 42 x"}, "$2\r\n42\r\n"},
	{
		"functions",
		"local a, b = tonumber(ARGV[1]), 2 local function sum() return a + b end local function half() return sum() / 2 end return half()", 0,
		nil,
		[]string{"4"},
		":3\r\n",
	},
	{
		"lock, compare and delete",
		"if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and redis.call('GET', KEYS[1]) == ARGV[1] then " +
			"return redis.call('DEL', KEYS[1]) end return 0",
		5,
		[]string{"lock"},
		[]string{"me", "30000"},
		":1\r\n",
	},
}

// newScriptLab is a machine that knows a script, and the request that runs it. A reply is valid until the next.
func newScriptLab(tb testing.TB, body string, keys, args []string) (run func() []byte) {
	tb.Helper()
	m := exec.New(exec.Options{}, labStartUs)
	tb.Cleanup(m.Close)
	s := m.ConnectLocal(labStartUs)
	step := func(words ...string) [][]byte {
		request := make([][]byte, len(words))
		for i, word := range words {
			request[i] = []byte(word)
		}
		return request
	}
	for _, request := range [][]string{
		{"SET", "text", "value"}, {"HSET", "hash", "a", "1", "b", "2"}, {"SCRIPT", "LOAD", body},
	} {
		m.Step(labStartUs, s, step(request...))
		s.Out.Reset()
	}
	words := append([]string{"EVALSHA", lua.SHA([]byte(body)), strconv.Itoa(len(keys))}, keys...)
	request := step(append(words, args...)...)
	return func() []byte {
		m.Step(labStartUs, s, request)
		m.TakeEffects()
		reply := s.Out.Bytes()
		s.Out.Reset()
		return reply
	}
}

// TestScriptsAllocateLittle holds the way of a script, and of its commands' replies into Lua and back, to its budget.
func TestScriptsAllocateLittle(t *testing.T) {
	for _, c := range scriptCalls {
		t.Run(c.name, func(t *testing.T) {
			run := newScriptLab(t, c.body, c.keys, c.args)
			for range 3 {
				if reply := run(); string(reply) != c.reply {
					t.Fatalf("got %q, want %q", reply, c.reply)
				}
			}
			least := math.Inf(1)
			for range 3 { // what other tests have left behind may allocate, too
				least = min(least, testing.AllocsPerRun(1000, func() { run() }))
			}
			if least > c.budget {
				t.Errorf("%v allocations, at most %v are allowed", least, c.budget)
			}
		})
	}
}

func BenchmarkScript(b *testing.B) {
	for _, c := range scriptCalls {
		b.Run(c.name, func(b *testing.B) {
			run := newScriptLab(b, c.body, c.keys, c.args)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
