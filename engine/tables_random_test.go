package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Random tables: after anything that scripts do with them, pairs, next, the border, cmsgpack, cjson and replies must go through
// them in the order of a real redis-server. Keys are texts, numbers of all kinds and booleans; tables and functions have no
// order, since their hash is their address.

// tableWriter writes a script that makes tables and shows them.
type tableWriter struct {
	*rand.Rand
	b      strings.Builder
	spread int // how many different numbers and texts there are
}

// tablesHead is before each script. What the collector drops changes the order, and when it runs depends on all that a server
// did before.
const tablesHead = `collectgarbage('stop')
local out = {}
local function show(v)
  if type(v) == 'number' then return string.format('%.17g', v) end
  return type(v) == 'table' and '{}' or tostring(v)
end
local function p(t)
  local n = #t
  out[#out + 1] = '#' .. n
  for k, v in pairs(t) do out[#out + 1] = type(k):sub(1, 1) .. show(k) .. '=' .. show(v) end
  out[#out + 1] = '\n'
end
local function old(...) return arg end
local function hex(s) return (s:gsub('.', function(c) return string.format('%02x', c:byte()) end)) end
local a, b, c = {}, {}, {}
`

func (w *tableWriter) one(of ...string) string { return of[w.IntN(len(of))] }

func (w *tableWriter) table() string { return w.one("a", "b", "c") }

func (w *tableWriter) key() string {
	n := w.IntN(w.spread)
	switch w.IntN(12) {
	case 0, 1, 2:
		return strconv.Itoa(n)
	case 3, 4, 5:
		return fmt.Sprintf("'k%d'", n)
	case 6:
		return w.one("true", "false", "-0", "0", "''", "'a'", "'\\0\\255'", "1/0", "-1/0")
	case 7:
		return fmt.Sprintf("%d/8", n)
	case 8:
		return fmt.Sprintf("%d*1e%d", n-w.spread/2, w.IntN(300))
	case 9:
		return fmt.Sprintf("2^%d-%d", w.IntN(60), n)
	case 10:
		return fmt.Sprintf("string.rep('%c', %d)", 'a'+rune(w.IntN(26)), 1+w.IntN(100))
	default:
		return strconv.FormatFloat(w.NormFloat64()*1000, 'g', -1, 64)
	}
}

func (w *tableWriter) value() string {
	if w.IntN(5) == 0 {
		return "nil"
	}
	return w.one(strconv.Itoa(w.IntN(100)), "'v'", "true", "{}", "0.5")
}

// items is what stands in a constructor.
func (w *tableWriter) items() string {
	var b strings.Builder
	for range w.IntN(1 + w.IntN(60)) {
		switch w.IntN(3) {
		case 0:
			fmt.Fprintf(&b, "k%d = %s, ", w.IntN(w.spread), w.value())
		case 1:
			fmt.Fprintf(&b, "[%s] = %s, ", w.key(), w.value())
		default:
			b.WriteString(w.value() + ", ")
		}
	}
	return b.String()
}

func (w *tableWriter) statement() {
	t, n := w.table(), w.IntN(w.spread)
	switch w.IntN(20) {
	case 0, 1, 2, 3, 4:
		fmt.Fprintf(&w.b, "%s[%s] = %s\n", t, w.key(), w.value())
	case 5:
		fmt.Fprintf(&w.b, "%s = {%s%s}\n", t, w.items(), w.one("", "", "unpack(b, 1, 7)"))
	case 6:
		fmt.Fprintf(&w.b, "for i = %d, %d do %s[i] = i end\n", w.IntN(5)-1, n, t)
	case 7:
		fmt.Fprintf(&w.b, "for i = %d, %d, -1 do %s[i] = %s end\n", n, w.IntN(5)-1, t, w.value())
	case 8:
		fmt.Fprintf(&w.b, "for i = 1, %d do %s['x' .. i] = i end\n", n, t)
	case 9:
		fmt.Fprintf(&w.b, "for i = 1, %d do %s[#%s + 1] = %s end\n", n, t, t, w.value())
	case 10:
		fmt.Fprintf(&w.b, "for i = 1, %d do table.insert(%s, %s) end\n", w.IntN(9), t, w.one("1", "nil", "1, 2", "2, 3", "#"+t+", nil"))
	case 11:
		fmt.Fprintf(&w.b, "for i = 1, %d do table.remove(%s%s) end\n", w.IntN(9), t, w.one("", ", 1", ", 2"))
	case 12:
		fmt.Fprintf(&w.b, "local i = 0 for k in pairs(%s) do i = i + 1 if i %% %d == 0 then %s[k] = nil end end\n", t, 1+w.IntN(4), t)
	case 13:
		fmt.Fprintf(&w.b, "%s = {} setmetatable(%s, {__newindex = function(t, k, v) rawset(%s, k, v) end})\n", t, t, w.table())
	case 14:
		fmt.Fprintf(&w.b, "%s = old(unpack(%s, 1, %d))\n", t, w.table(), w.IntN(30))
	case 15:
		fmt.Fprintf(&w.b, "%s = cmsgpack.unpack(cmsgpack.pack(%s))\n", t, w.table())
	case 16:
		fmt.Fprintf(&w.b, "out[#out + 1] = hex(cmsgpack.pack(%s))\n", w.table())
	case 17:
		fmt.Fprintf(&w.b, "%s = cjson.decode('{\"z\": 1, \"k1\": 2, \"y\": 3, \"\": 4, \"k%d\": 5, \"2\": 6}')\n", t, n)
	case 18:
		fmt.Fprintf(&w.b, "local ok, text = pcall(cjson.encode, %s) if ok then out[#out + 1] = text end\n", w.table())
	default:
		w.command(t)
	}
	w.b.WriteString("p(" + t + ")\n")
}

// command gets a table as the reply of a command.
func (w *tableWriter) command(t string) {
	n := 1 + w.IntN(min(w.spread, 100)) // so that the hash keeps its order
	w.b.WriteString("redis.call('DEL', 'h') redis.setresp(" + w.one("2", "3") + ")\n")
	fmt.Fprintf(&w.b, "for i = 1, %d do redis.call('HSET', 'h', i %% 3 == 0 and i or 'f' .. i, i) end\n", n)
	w.b.WriteString(w.one(
		"local r = redis.call('HGETALL', 'h') "+t+" = r.map or r",
		t+" = redis.call('HMGET', 'h', '3', 'f4', 'none', 'f1', 'no', '2')",
		t+" = redis.call('HVALS', 'h')",
		"redis.call('DEL', 'h') redis.call('SADD', 'h', 1, 22, 3, -4, 500000, 17) local r = redis.call('SMEMBERS', 'h') "+t+" = r.set or r"))
	w.b.WriteString("\n")
}

// script is what is sent for a seed.
func (w *tableWriter) script() string {
	w.b.WriteString(tablesHead)
	for range 10 + w.IntN(60) {
		w.statement()
	}
	w.b.WriteString("p(a) p(b) p(c) redis.setresp(3) redis.call('PING')\n")
	w.b.WriteString("return {table.concat(out, ' '), {map = a}, {set = b}}")
	return w.b.String()
}

// TestTablesAsRedis: a few, the same every time. RANDOM_TABLES says how many, RANDOM_SEED which.
func TestTablesAsRedis(t *testing.T) {
	t.Parallel()
	count, seed := uint64(300), uint64(1)
	for name, value := range map[string]*uint64{"RANDOM_TABLES": &count, "RANDOM_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := startOracles(t)
	for i := range count {
		random := rand.New(rand.NewPCG(seed, i))
		w := tableWriter{Rand: random, spread: 2 + random.IntN(1+random.IntN(200))}
		script := w.script()
		got, want := ask(t, o.engine, "EVAL", script, "0"), ask(t, o.redis, "EVAL", script, "0")
		ask(t, o.redis, "SCRIPT", "FLUSH", "ASYNC")
		ask(t, o.engine, "SCRIPT", "FLUSH", "ASYNC")
		if got != want {
			t.Fatalf("seed %d, %d:\n%s\n\n got %s\nwant %s", seed, i, script, got, want)
		}
	}
}
