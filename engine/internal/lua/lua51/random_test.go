package lua51

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRandomPrograms runs random programs here and on lua5.1, if there is one. They are made of few names, so that those
// often mean one another, and of operations that often fail: what they print and what they fail with must be the same.
// LUA51_PROGRAMS says how many there are to be, LUA51_SEED which.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	oracle, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("there is no lua5.1")
	}
	count, seed := uint64(300), rand.Uint64()
	for name, value := range map[string]*uint64{"LUA51_PROGRAMS": &count, "LUA51_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			if *value, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	const batch = 100
	for first := uint64(0); first < count; first += batch {
		programs := make([]string, min(batch, count-first))
		for i := range programs {
			programs[i] = (&programWriter{r: rand.New(rand.NewPCG(seed, first+uint64(i)))}).program()
		}
		compareWithOracle(t, oracle, programs, seed)
	}
}

const endOfProgram = "-- end --\n"

func compareWithOracle(t *testing.T, oracle string, programs []string, seed uint64) {
	t.Helper()
	var all strings.Builder
	all.WriteString(`local plain = tostring arg = nil getmetatable('').__index = {}
function tostring(v) local k = type(v) if k == 'table' or k == 'function' or k == 'thread' then return k end return plain(v) end
local function run(source) arg = nil local f, e = loadstring(source, '=p') if not f then print(e) else print(pcall(f)) end print('-- end --') end
`)
	for _, p := range programs {
		all.WriteString("run[==[" + p + "]==]\n")
	}
	file := filepath.Join(t.TempDir(), "programs.lua")
	if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(oracle, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, out)
	}
	want := strings.Split(string(out), endOfProgram)
	for i, p := range programs {
		if got := newLab().protectedRun(p); got != want[i] {
			t.Fatalf("seed %d:\n%s\n got %s\nwant %s", seed, p, got, want[i])
		}
	}
}

// protectedRun prints what pcall returns of a program.
func (l *lab) protectedRun(source string) string {
	p, err := Compile(source, "=p", nil, nil)
	if err != nil {
		return err.Error() + "\n"
	}
	l.Start()
	th := l.Main()
	th.Push(l.globals.GetString("print"))
	th.Push(l.globals.GetString("pcall"))
	th.Push(l.Load(p).Value())
	th.Call(1, -1)
	n := th.top - 1
	th.Call(n, 0)
	return l.out.String()
}

// programWriter writes programs.
type programWriter struct {
	r          *rand.Rand
	b          strings.Builder
	depth      int
	statements int
	loops      int
	varargs    []bool
}

var programNames = []string{"a", "b", "c", "t", "f", "arg"}

func (w *programWriter) name() string { return programNames[w.r.IntN(len(programNames))] }

func (w *programWriter) program() string {
	w.varargs = []bool{true}
	w.b.WriteString("local a, b, t = 1, '2', {1, 2, 3, x = 'y', f = function(...) return ... end}\n" +
		"local c, f = nil, function(x, y) return y, x end\n" +
		"setmetatable(t, {__index = function(t, k) return k end, __call = function(t, ...) return ... end, " +
		"__concat = function(a, b) return 'joined' end, __unm = function() return 'minus' end, __lt = function() return true end})\n")
	w.block()
	w.b.WriteString("print(a, b, c, f, t)\n")
	return w.b.String()
}

func (w *programWriter) block() {
	w.depth++
	for range w.r.IntN(6) + 1 {
		if w.statements++; w.statements < 60 && w.depth < 6 {
			w.statement()
		}
	}
	w.depth--
}

func (w *programWriter) around(before, after string) {
	w.b.WriteString(before + "\n")
	w.block()
	w.b.WriteString(after + "\n")
}

func (w *programWriter) statement() {
	switch w.r.IntN(17) {
	case 0, 1:
		w.b.WriteString("local " + w.name() + " = " + w.expr(0) + "\n")
	case 2:
		w.b.WriteString("local " + w.name() + ", " + w.name() + " = " + w.list() + "\n")
	case 3:
		w.b.WriteString(w.name() + " = " + w.expr(0) + "\n")
	case 4:
		w.b.WriteString(w.target() + ", " + w.target() + " = " + w.list() + "\n")
	case 5:
		w.around("if "+w.expr(0)+" then", "elseif "+w.expr(0)+" then")
		w.around("", "else")
		w.around("", "end")
	case 6:
		w.loop("for "+w.name()+" = "+strconv.Itoa(w.r.IntN(3))+", 2 do", "end")
	case 7:
		w.loop("for "+w.name()+", "+w.name()+" in ipairs{"+w.list()+"} do", "end")
	case 8:
		w.loops++
		counter := "n" + strconv.Itoa(w.loops)
		w.b.WriteString("local " + counter + " = 0\n")
		w.loop("while "+counter+" < 3 do "+counter+" = "+counter+" + 1", "end")
	case 9:
		w.loops++
		counter := "n" + strconv.Itoa(w.loops)
		w.b.WriteString("local " + counter + " = 0\n")
		w.loop("repeat local "+w.name()+" = "+w.expr(0)+" "+counter+" = "+counter+" + 1", "until "+counter+" > 2 or "+w.expr(0))
	case 10:
		w.function("local function " + w.name())
		w.b.WriteString("\n")
	case 11:
		w.b.WriteString("print(pcall(" + w.name() + ", " + w.list() + "))\n")
	case 12:
		w.around("do", "end")
	case 13:
		w.b.WriteString("print(pcall(function() return " + w.list() + " end))\n")
	case 14:
		w.b.WriteString("print((coroutine.wrap(function(...) coroutine.yield(" + w.list() + ") end)()))\n")
	default:
		w.b.WriteString("print(" + w.list() + ")\n")
	}
}

func (w *programWriter) loop(before, after string) {
	if w.r.IntN(3) == 0 {
		after = "if " + w.expr(0) + " then break end\n" + after
	}
	w.around(before, after)
}

func (w *programWriter) function(head string) {
	dots := w.r.IntN(3) == 0
	parameters := w.name()
	if dots {
		parameters += ", ..."
	}
	w.varargs = append(w.varargs, dots)
	w.b.WriteString(head + "(" + parameters + ")\n")
	w.block()
	w.b.WriteString("return " + w.list() + "\nend")
	w.varargs = w.varargs[:len(w.varargs)-1]
}

func (w *programWriter) target() string {
	switch w.r.IntN(3) {
	case 0:
		return w.name() + "." + w.name()
	case 1:
		return "t[" + w.expr(1) + "]"
	}
	return w.name()
}

func (w *programWriter) list() string {
	items := make([]string, w.r.IntN(3)+1)
	for i := range items {
		items[i] = w.expr(0)
	}
	return strings.Join(items, ", ")
}

var programOperators = []string{"+", "-", "*", "/", "%", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or", "^"}

func (w *programWriter) expr(depth int) string {
	if depth > 3 {
		return w.name()
	}
	sub := func() string { return w.expr(depth + 1) }
	switch w.r.IntN(22) {
	case 0:
		return strconv.Itoa(w.r.IntN(5))
	case 1:
		return []string{"'x'", "'10'", "''", "nil", "true", "false", "0.5", "-0", "1e300", "{}"}[w.r.IntN(10)]
	case 2, 3, 4, 5, 6, 7:
		return sub() + " " + programOperators[w.r.IntN(len(programOperators))] + " " + sub()
	case 8:
		return "(" + sub() + ")"
	case 9:
		return []string{"-", "not ", "- -"}[w.r.IntN(3)] + sub()
	case 10:
		return "#" + []string{"'abc'", "t", w.name()}[w.r.IntN(3)]
	case 11:
		return w.name() + "." + w.name()
	case 12:
		return "t[" + sub() + "]"
	case 13:
		return w.name() + "(" + sub() + ")"
	case 14:
		return "t:" + w.name() + "(" + sub() + ")"
	case 15:
		return "{" + sub() + ", x = " + sub() + ", " + sub() + "}"
	case 16:
		if w.varargs[len(w.varargs)-1] {
			return "..."
		}
		return "select('#', " + sub() + ")"
	case 17:
		return fmt.Sprintf("(function(...) return %s end)(%s)", w.name(), sub())
	case 18:
		return "(" + w.name() + " or " + sub() + ")"
	case 19:
		return "f(f(" + sub() + "))"
	}
	return w.name()
}
