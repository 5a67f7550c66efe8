package lua

import (
	"context"
	"errors"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A state is one interpreter with its libraries. Making one costs 0.1 ms, so
// it serves script after script. That is safe because nothing a script does
// outlives it: globals and libraries cannot be changed (see sandbox.go), and
// run puts back what could (KEYS, ARGV, the settings of cjson, the protocol).

const (
	// Lua 5.1 stops at 20,000 nested calls; a frame here is 80 bytes and all
	// of them are allocated at once.
	maxCallDepth = 8000
	// maxStackValues bounds what nested calls and unpacked tables hold.
	maxStackValues = 1 << 17
	// maxTextBytes bounds a string a script builds, as Redis bounds a value.
	maxTextBytes = 512 << 20
)

type state struct {
	l       *glua.LState
	log     func(level int, msg string)
	globals *glua.LTable
	enter   *glua.LFunction               // runs main
	guard   *glua.LFunction               // calls its first argument with the others, for pcall
	frozen  map[*glua.LTable]*glua.LTable // the face of a read-only table -> the table
	keys    *glua.LTable
	args    *glua.LTable
	texts   textCache
	status  statusTables

	// What belongs to the running script.
	ctx       context.Context
	host      Host
	main      *glua.LFunction
	reply     resp.Writer
	argv      [][]byte
	arena     []byte
	errorLine int
	random    lcg48
	nesting   int // of coroutines
	json      jsonConfig
}

func newState(log func(level int, msg string)) *state {
	l := glua.NewState(glua.Options{
		CallStackSize: maxCallDepth, RegistrySize: 1024,
		RegistryMaxSize: maxStackValues, RegistryGrowStep: 8192, SkipOpenLibs: true,
	})
	s := &state{l: l, log: log, frozen: make(map[*glua.LTable]*glua.LTable)}
	l.Options.CallStackSize = maxCallDepth / 8 // these are for coroutines
	l.Options.RegistrySize = 128
	l.Options.MinimizeStackMemory = true
	s.globals = l.G.Global
	s.random = firstRandom
	s.openLibraries()
	s.enter = l.NewFunction(func(l *glua.LState) int {
		l.Panic = s.raised
		l.Push(s.main)
		l.Call(0, 1)
		return 1
	})
	s.guard = l.NewFunction(func(l *glua.LState) int {
		l.Panic = s.raised
		l.Call(l.GetTop()-1, glua.MultRet)
		return l.GetTop()
	})
	return s
}

// raised is how the interpreter raises an error: it notes the line while the
// stack still stands. (An error handler would do, but with one installed
// gopher-lua does not close the upvalues of functions that an error ends.)
func (s *state) raised(l *glua.LState) {
	s.errorLine = -1
	for level := 0; level < 3; level++ {
		if _, line := where(l, level); line > 0 {
			s.errorLine = line
			break
		}
	}
	// The trace must not be empty: pcall would spend a time on making one
	// that is quadratic in the depth of the stack.
	panic(&glua.ApiError{Type: glua.ApiErrorRun, Object: l.Get(-1), StackTrace: "-"})
}

// run reports whether the interpreter can serve the next script.
func (s *state) run(ctx context.Context, h Host, script *script, keys, args [][]byte, out *resp.Writer) (usable bool) {
	s.host, s.main = h, script.fn
	s.json.reset()
	s.reply.Proto = 2
	s.nesting = 0
	s.setList(&s.keys, "KEYS", keys)
	s.setList(&s.args, "ARGV", args)
	s.ctx = ctx
	if ctx.Done() != nil {
		s.l.SetContext(ctx)
		defer s.l.RemoveContext()
	}
	start := out.Len()
	err := s.protected(out)
	if err != nil {
		out.Truncate(start)
		s.writeFailure(err, script.sha, out)
	}
	usable = err == nil || !broken(err)
	if usable {
		s.l.SetTop(0)
	}
	s.l.G.CurrentThread = s.l
	s.status.used = 0
	s.host, s.main, s.ctx = nil, nil, nil
	if cap(s.arena) > 64<<10 {
		s.arena = nil
	}
	return usable
}

// protected runs the script and writes its result.
func (s *state) protected(out *resp.Writer) (err error) {
	defer func() {
		// Errors of scripts end in PCall. But PCall itself panics when the
		// registry overflows at certain instructions (it looks for the line
		// of a frame that has not started). The interpreter is lost then,
		// the process must not be.
		if fault := recover(); fault != nil {
			err = &glua.ApiError{Type: glua.ApiErrorPanic, Object: glua.LString("stack overflow")}
		}
	}()
	s.l.Push(s.enter)
	if err := s.l.PCall(0, 1, nil); err != nil {
		return err
	}
	return s.writeReply(s.l.Get(-1), out)
}

// broken says whether an error may have left the interpreter in a bad or a
// large shape. A fault inside gopher-lua (a panic in Go) is one of those.
func broken(err error) bool {
	var api *glua.ApiError
	if !errors.As(err, &api) || api.Type == glua.ApiErrorPanic {
		return true
	}
	text, ok := api.Object.(glua.LString)
	return ok && strings.Contains(string(text), "overflow")
}

// writeFailure writes the error that ended a script, as Redis 7.0 words it.
func (s *state) writeFailure(err error, sha string, out *resp.Writer) {
	if s.ctx.Err() != nil {
		s.writeError("ERR Script killed by user with SCRIPT KILL.", sha, out)
		return
	}
	var api *glua.ApiError
	if !errors.As(err, &api) {
		out.Error("ERR " + err.Error())
		return
	}
	var message string
	if table, ok := api.Object.(*glua.LTable); ok {
		message, _ = toText(table.RawGetString("err"))
		if message == "" {
			message = "ERR unknown error"
		}
	} else {
		message = "ERR " + s.plainMessage(api)
	}
	message = strings.TrimRight(message, "\r\n")
	s.writeError(message, sha, out)
}

func (s *state) writeError(message, sha string, out *resp.Writer) {
	out.Error(message + " script: " + sha + ", on @user_script:" + strconv.Itoa(s.errorLine) + ".")
}

func (s *state) plainMessage(api *glua.ApiError) string {
	text, ok := toText(api.Object)
	if !ok {
		return s.display(api.Object)
	}
	return translate(text)
}

// setList puts keys or arguments into a global table. The table of the last
// run serves again unless the script left something else in it.
func (s *state) setList(list **glua.LTable, name string, items [][]byte) {
	t := *list
	if t != nil && t.Metatable == glua.LNil {
		last := glua.LNil
		if n := t.MaxN(); n > 0 {
			last = glua.LNumber(n)
		}
		if extra, _ := t.Next(last); extra != glua.LNil {
			t = nil
		}
	} else {
		t = nil
	}
	if t == nil {
		t = s.l.CreateTable(len(items), 0)
		*list = t
		s.globals.RawSetString(name, t)
	}
	for n := t.MaxN(); n > len(items); n-- {
		t.Remove(-1)
	}
	for i, item := range items {
		t.RawSetInt(i+1, s.texts.get(item))
	}
}
