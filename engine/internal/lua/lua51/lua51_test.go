package lua51

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// lab is a state with the few functions that the tests of the language need.
// What a program prints is gathered.
type lab struct {
	*State
	out strings.Builder
}

func newLab() *lab {
	l := &lab{State: NewState(1 << 30)}
	define := func(name string, f GoFunction) { l.globals.SetString(l.State, name, l.NewFunction(f).Value()) }
	define("print", func(th *Thread) int {
		for i := 1; i <= th.Top(); i++ {
			if i > 1 {
				l.out.WriteByte('\t')
			}
			l.out.WriteString(show(th.Arg(i)))
		}
		l.out.WriteByte('\n')
		return 0
	})
	define("tostring", func(th *Thread) int { th.PushString(show(th.Arg(1))); return 1 })
	define("type", func(th *Thread) int { th.PushString(th.Arg(1).TypeName()); return 1 })
	define("error", func(th *Thread) int {
		v := th.Arg(1)
		level := 1
		if f, ok := th.Arg(2).ToNumber(); ok {
			level = int(f)
		}
		if text, ok := v.ToText(); ok && level > 0 {
			v = String(th.Where(level) + text)
		}
		th.Throw(v)
		return 0
	})
	define("pcall", func(th *Thread) int {
		if thrown := th.PCall(th.Top()-1, -1); thrown != nil {
			th.Push(False)
			th.Push(thrown.Value)
			return 2
		}
		th.Insert(True, 1)
		return th.Top()
	})
	define("xpcall", func(th *Thread) int {
		handler := th.Arg(2)
		th.SetTop(1)
		if thrown := th.XPCall(0, -1, handler); thrown != nil {
			th.Push(False)
			th.Push(thrown.Value)
			return 2
		}
		th.Insert(True, 1)
		return th.Top()
	})
	define("select", func(th *Thread) int {
		if th.Arg(1).isString() {
			th.PushInt(th.Top() - 1)
			return 1
		}
		n := int(th.Arg(1).float())
		if n < 0 {
			n += th.Top()
		}
		return th.Top() - min(n, th.Top())
	})
	define("setmetatable", func(th *Thread) int {
		th.Arg(1).AsTable().SetMeta(th.Arg(2).AsTable())
		th.SetTop(1)
		return 1
	})
	define("rawget", func(th *Thread) int { th.Push(th.Arg(1).AsTable().Get(th.Arg(2))); return 1 })
	define("unpack", func(th *Thread) int {
		t := th.Arg(1).AsTable()
		n := t.Len()
		for i := 1; i <= n; i++ {
			th.Push(t.GetInt(i))
		}
		return n
	})
	next := l.NewFunction(func(th *Thread) int {
		k, v, _ := th.Arg(1).AsTable().Next(th.Arg(2))
		th.Push(k)
		if k.IsNil() {
			return 1
		}
		th.Push(v)
		return 2
	}).Value()
	l.globals.SetString(l.State, "next", next)
	define("pairs", func(th *Thread) int { th.Push(next); th.Push(th.Arg(1)); th.Push(Nil); return 3 })
	step := l.NewFunction(func(th *Thread) int {
		i := int(th.Arg(2).float()) + 1
		v := th.Arg(1).AsTable().GetInt(i)
		if v.IsNil() {
			return 0
		}
		th.PushInt(i)
		th.Push(v)
		return 2
	}).Value()
	define("ipairs", func(th *Thread) int { th.Push(step); th.Push(th.Arg(1)); th.PushInt(0); return 3 })
	l.defineCoroutines()
	methods := l.NewTable(0, 1)
	methods.SetString(l.State, "__index", l.NewTable(0, 0).Value())
	l.SetStringMeta(methods)
	return l
}

func (l *lab) defineCoroutines() {
	t := l.NewTable(0, 4)
	l.globals.SetString(l.State, "coroutine", t.Value())
	define := func(name string, f GoFunction) { t.SetString(l.State, name, l.NewFunction(f).Value()) }
	resume := func(th, co *Thread, from int) (n int, ok bool) {
		var args []Value
		for i := from; i <= th.Top(); i++ {
			args = append(args, th.Arg(i))
		}
		results, problem, ok := th.Resume(co, args)
		if !ok {
			th.Push(problem)
			return 1, false
		}
		for _, v := range results {
			th.Push(v)
		}
		return len(results), true
	}
	define("create", func(th *Thread) int { th.Push(l.NewThread(th.Arg(1).AsFunction()).Value()); return 1 })
	define("resume", func(th *Thread) int {
		co := th.Arg(1).AsThread()
		args := th.Top()
		n, ok := resume(th, co, 2)
		_ = args
		results := make([]Value, n)
		for i := range results {
			results[n-1-i] = th.Pop()
		}
		th.PushBool(ok)
		for _, v := range results {
			th.Push(v)
		}
		return n + 1
	})
	define("yield", func(th *Thread) int { return th.Yield() })
	define("status", func(th *Thread) int { th.PushString(th.Arg(1).AsThread().Status(th)); return 1 })
	define("wrap", func(th *Thread) int {
		co := l.NewThread(th.Arg(1).AsFunction())
		th.Push(l.NewFunction(func(th *Thread) int {
			n, ok := resume(th, co, 1)
			if !ok {
				v := th.Pop()
				if v.isString() {
					v = String(th.Where(1) + v.text())
				}
				th.Throw(v)
			}
			return n
		}, co.Value()).Value())
		return 1
	})
}

func show(v Value) string {
	if text, ok := v.ToText(); ok {
		return text
	}
	switch v.Kind() {
	case KindNil:
		return "nil"
	case KindBool:
		return fmt.Sprint(v == True)
	}
	return v.TypeName()
}

// run compiles and runs a chunk and returns what it has printed, and its error.
func (l *lab) run(source, chunk string) string {
	p, err := Compile(source, chunk, nil, nil)
	if err != nil {
		return err.Error() + "\n"
	}
	l.Start()
	th := l.Main()
	th.Push(l.Load(p).Value())
	if thrown := th.PCall(0, 0); thrown != nil {
		l.out.WriteString("error: " + show(thrown.Value) + "\n")
	}
	l.Reset()
	return l.out.String()
}

// TestPrograms runs the programs in testdata, which print what they see. What
// lua5.1 printed stands beside them; LUA51=lua5.1 records it.
func TestPrograms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			recorded := strings.TrimSuffix(file, ".lua") + ".out"
			if oracle := os.Getenv("LUA51"); oracle != "" {
				out, err := exec.Command(oracle, file).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				out = regexp.MustCompile(`(table|function|thread): 0x[0-9a-f]+`).ReplaceAll(out, []byte("$1"))
				if err := os.WriteFile(recorded, out, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(recorded)
			if err != nil {
				t.Fatal(err)
			}
			got := newLab().run(string(source), "@"+filepath.ToSlash(file))
			compareLines(t, got, string(want))
		})
	}
}

func compareLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Fatalf("line %d:\n got %q\nwant %q", i+1, a, b)
		}
	}
}
