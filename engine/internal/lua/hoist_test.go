package lua

import (
	"fmt"
	"strings"
	"testing"

	glua "github.com/yuin/gopher-lua"
	"pgregory.net/rapid"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// TestHoistedScriptsForget runs one script twice: what the first run put into variables that functions share must neither
// be seen by the second nor stay in memory, even if the run ended in an error.
func TestHoistedScriptsForget(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	const body = `local kept
		local function put(v) kept = v end
		local function get() return kept end
		if ARGV[1] == 'put' then put({'left'}) error('end') end
		return tostring(get())`
	script, err := vm.Load([]byte(body))
	if err != nil || !script.hoisted {
		t.Fatalf("Load: hoisted %t, %v", script.hoisted, err)
	}
	if got := eval(t, vm, 2, body, "put"); !strings.HasPrefix(got, "-ERR user_script:4: end") {
		t.Fatalf("the first run: %q", got)
	}
	if len(script.variables) != 1 {
		t.Fatalf("%d shared variables, want 1", len(script.variables))
	}
	for _, v := range script.variables {
		if v.Value() != glua.LNil {
			t.Errorf("the run has left %v", v.Value())
		}
	}
	if got := eval(t, vm, 2, body); got != "$3\r\nnil\r\n" {
		t.Errorf("the second run: %q", got)
	}
}

// TestHoistedScriptsOutliveTheInterpreter overflows the stack, which costs the interpreter with all functions in it.
func TestHoistedScriptsOutliveTheInterpreter(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	const body = `local n = 0 local function deep() n = n + 1 return deep() + 1 end
		local function up() return n + 1 end
		if ARGV[1] then return deep() end return string.format('%d', up())`
	for range 2 {
		if got := eval(t, vm, 2, body); got != "$1\r\n1\r\n" {
			t.Fatalf("got %q", got)
		}
		if got := eval(t, vm, 2, body, "deep"); !strings.Contains(got, "stack overflow") || vm.state != nil {
			t.Fatalf("got %q, want an overflow that ends the interpreter", got)
		}
	}
}

// TestManyVariables: what has no room in one function is compiled as it is, and more than that is refused.
func TestManyVariables(t *testing.T) {
	t.Parallel()
	vm := New(nil)
	defer vm.Close()
	for n, want := range map[int]string{100: ":100\r\n", 190: ":190\r\n", 250: "-ERR Error compiling script"} {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, "local v%d = #ARGV + 1 ", i)
		}
		body.WriteString("local function sum() return v0")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&body, " + v%d", i)
		}
		body.WriteString(" end return sum()")
		if got := eval(t, vm, 2, body.String()); !strings.HasPrefix(got, want) {
			t.Errorf("%d variables: got %q, want %q", n, got, want)
		}
	}
}

// TestHoistingCannotBeSeen runs random scripts as they are and hoisted.
func TestHoistingCannotBeSeen(t *testing.T) {
	t.Parallel()
	hoisted := 0
	rapid.Check(t, func(t *rapid.T) {
		body := (&scriptWriter{t: t}).script()
		vm := New(nil)
		defer vm.Close()
		script, err := vm.Load([]byte(body))
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if script.hoisted {
			hoisted++
		}
		proto, err := vm.interpreter().compile(body, scriptChunk)
		if err != nil {
			t.Fatal(err)
		}
		plain := &Script{SHA: script.SHA, proto: proto}
		want := ""
		for i, s := range []*Script{plain, script, script, plain} {
			out := resp.Writer{Proto: 2}
			vm.Run(newFakeHost(), s, nil, nil, &out)
			if got := string(out.Bytes()); i == 0 {
				want = got
			} else if got != want {
				t.Fatalf("run %d: got %q, want %q\n%s", i, got, want, body)
			}
		}
	})
	if hoisted == 0 {
		t.Error("no script was hoisted")
	}
}

// scriptWriter writes scripts of functions, blocks and variables that often have one another's names.
type scriptWriter struct {
	t          *rapid.T
	b          strings.Builder
	scope      []string
	depth      int
	statements int
}

// randomPrelude is what those scripts have to say what they do: put notes a value, number and run take values of any
// kind, and fuel ends what would go on for ever.
const randomPrelude = `local out, fuel, max = {}, 100, math.max
local function put(v) out[#out + 1] = type(v) == 'function' and 'f' or tostring(v) end
local function number(v) return type(v) == 'number' and v or 1 end
local function run(f, v)
  fuel = fuel - 1
  if type(f) == 'function' and fuel > 0 then return f(v) end
  return v
end
`

func (w *scriptWriter) script() string {
	w.b.WriteString(randomPrelude)
	whole := rapid.Bool().Draw(w.t, "as a function")
	if whole {
		w.block(false)
		w.b.WriteString("return (function()\n")
	}
	w.block(false)
	w.b.WriteString("do return out end\n")
	if whole {
		w.b.WriteString("end)()\n")
	}
	return w.b.String()
}

func (w *scriptWriter) pick(of string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, of) }

func (w *scriptWriter) name() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.t, "name")
}

// known is a variable in scope.
func (w *scriptWriter) known() string {
	if len(w.scope) == 0 {
		return "fuel"
	}
	return w.scope[w.pick("variable", len(w.scope))]
}

func (w *scriptWriter) block(returns bool) {
	depth := len(w.scope)
	w.depth++
	for range w.pick("statements", 5) + 1 {
		if w.statements++; w.statements < 60 && w.depth < 5 {
			w.statement()
		}
	}
	if returns {
		w.b.WriteString("return " + w.expr() + "\n")
	}
	w.depth--
	w.scope = w.scope[:depth]
}

// body is that of a function, which may have a parameter.
func (w *scriptWriter) body(parameter bool) {
	depth := len(w.scope)
	if parameter {
		name := w.name()
		w.b.WriteString("(" + name + ")\n")
		w.scope = append(w.scope, name)
	} else {
		w.b.WriteString("()\n")
	}
	w.block(true)
	w.b.WriteString("end")
	w.scope = w.scope[:depth]
}

// around writes a block between two texts.
func (w *scriptWriter) around(before, after string) {
	w.b.WriteString(before + "\n")
	w.block(false)
	w.b.WriteString(after + "\n")
}

func (w *scriptWriter) statement() {
	name := w.name()
	switch w.pick("statement", 12) {
	case 0, 1:
		w.b.WriteString("local " + name + " = " + w.expr() + "\n")
		w.scope = append(w.scope, name)
	case 2:
		second := w.name()
		w.b.WriteString("local " + name + ", " + second + " = " + w.expr() + ", " + w.expr() + "\n")
		w.scope = append(w.scope, name, second)
	case 3, 4:
		w.scope = append(w.scope, name)
		w.b.WriteString("local function " + name)
		w.body(true)
		w.b.WriteString("\n")
	case 5:
		w.b.WriteString(w.known() + " = " + w.expr() + "\n")
	case 6:
		w.around("if "+w.expr()+" then", "end")
	case 7:
		w.around("for "+name+" = 1, 2 do", "end")
	case 8:
		w.around("do", "end")
	case 9:
		w.b.WriteString("local t = {} for i = 1, 2 do t[i] = function")
		w.body(true)
		w.b.WriteString(" end put(run(t[1], 1)) put(run(t[2], 2)) put(t[1] == t[2])\n")
	case 10:
		w.b.WriteString("put((function")
		w.body(false)
		w.b.WriteString(")())\n")
	default:
		w.b.WriteString("put(" + w.expr() + ")\n")
	}
}

func (w *scriptWriter) expr() string {
	switch w.pick("expression", 9) {
	case 0:
		return "7"
	case 1:
		return "number(" + w.known() + ") + 1"
	case 2:
		return "run(" + w.known() + ", " + w.known() + ")"
	case 3:
		return w.known() + " == " + w.known()
	case 4:
		return "max(number(" + w.known() + "), 3)"
	case 5:
		return "math.max"
	case 6:
		return "function(x) " + w.known() + " = x return x end"
	default:
		return w.known()
	}
}
