package lua

import (
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
// What functions of libraries keep in their variables does stay; they have a
// state to themselves (see functions.go).

// The chunks: how errors name the text that a state runs.
const (
	scriptChunk   = "user_script"
	functionChunk = "user_function"
)

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
	chunk   string
	meter   *meter
	log     func(level int, msg string)
	globals *glua.LTable
	enter   *glua.LFunction               // runs main
	guard   *glua.LFunction               // calls its first argument with the others, for pcall
	frozen  map[*glua.LTable]*glua.LTable // the face of a read-only table -> the table
	keys    *glua.LTable
	args    *glua.LTable
	texts   textCache
	status  statusTables
	arrays  arrayTables

	// Of the state of libraries only.
	kept                     map[*glua.LFunction]struct{} // the registered functions
	loading                  *Library
	callGlobals, loadGlobals map[string]glua.LValue

	// What belongs to the running script.
	host       Host
	params     []glua.LValue
	main       *glua.LFunction
	reply      resp.Writer
	replyStart int // where the reply of the script begins
	argv       [][]byte
	arena      []byte
	errorLine  int
	random     lcg48
	nesting    int // of coroutines
	json       jsonConfig
}

func newState(log func(level int, msg string), chunk string) *state {
	l := glua.NewState(glua.Options{
		CallStackSize: maxCallDepth, RegistrySize: 1024,
		RegistryMaxSize: maxStackValues, RegistryGrowStep: 8192, SkipOpenLibs: true,
	})
	s := &state{l: l, log: log, chunk: chunk, frozen: make(map[*glua.LTable]*glua.LTable)}
	s.meter = newMeter(s)
	l.SetContext(s.meter)
	l.Options.CallStackSize = maxCallDepth / 8 // these are for coroutines
	l.Options.RegistrySize = 128
	l.Options.MinimizeStackMemory = true
	s.globals = l.G.Global
	s.random = firstRandom
	s.openLibraries()
	raised := s.raised // once: a method as a value takes memory each time
	s.enter = l.NewFunction(func(l *glua.LState) int {
		l.Panic = raised
		l.Push(s.main)
		for _, v := range s.params {
			l.Push(v)
		}
		l.Call(len(s.params), 1)
		return 1
	})
	s.guard = l.NewFunction(func(l *glua.LState) int {
		l.Panic = raised
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

// run calls a script or function, which errors name name, and appends its
// reply. It reports whether the interpreter can serve the next one.
func (s *state) run(h Host, fn *glua.LFunction, name string, keys, args [][]byte, out *resp.Writer) (usable bool) {
	s.begin(h, fn)
	if s.chunk == scriptChunk {
		s.setList(&s.keys, "KEYS", keys)
		s.setList(&s.args, "ARGV", args)
	} else {
		s.params = append(s.params, s.list(keys), s.list(args))
	}
	start := out.Len()
	err := s.protected(func() error { return s.writeReply(s.l.Get(-1), out) })
	if err != nil {
		out.Truncate(start)
		s.writeFailure(err, name, out)
	}
	return s.end(err)
}

func (s *state) begin(h Host, fn *glua.LFunction) {
	s.host, s.main = h, fn
	s.json.reset()
	s.reply.Proto = 2
	s.nesting = 0
	s.meter.start()
}

// end reports whether the interpreter can go on.
func (s *state) end(err error) (usable bool) {
	usable = err == nil || !broken(err)
	if usable {
		s.l.SetTop(0)
	}
	s.l.G.CurrentThread = s.l
	if s.status.used, s.arrays.used = 0, 0; s.meter.madeMuch() {
		s.status.tables, s.arrays.tables = nil, nil
	}
	s.host, s.main = nil, nil
	clear(s.params)
	s.params = s.params[:0]
	if cap(s.arena) > 64<<10 {
		s.arena = nil
	}
	if s.reply.Len() > 64<<10 {
		s.reply.Swap(nil)
	}
	return usable
}

// protected runs the script and then finish, when its result is on the stack.
func (s *state) protected(finish func() error) (err error) {
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
	return finish()
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
func (s *state) writeFailure(err error, name string, out *resp.Writer) {
	out.Error(cText(s.failure(err)) + " script: " + name + ", on @" + s.chunk + ":" + strconv.Itoa(s.errorLine) + ".")
}

// failure is the message of an error, with its code.
func (s *state) failure(err error) string {
	if s.meter.stopped != "" {
		return "ERR " + s.meter.stopped
	}
	var api *glua.ApiError
	if !errors.As(err, &api) {
		return "ERR " + err.Error()
	}
	if table, ok := api.Object.(*glua.LTable); ok {
		if message, ok := toText(table.RawGetString("err")); ok {
			return strings.TrimRight(message, "\r\n")
		}
		return "ERR unknown error"
	}
	return strings.TrimRight("ERR "+s.plainMessage(api), "\r\n")
}

func (s *state) plainMessage(api *glua.ApiError) string {
	text, ok := toText(api.Object)
	if !ok {
		return s.display(api.Object)
	}
	return translate(text)
}

// list makes a table of keys or arguments.
func (s *state) list(items [][]byte) *glua.LTable {
	t := s.l.CreateTable(len(items), 0)
	for i, item := range items {
		t.RawSetInt(i+1, s.texts.get(item))
	}
	return t
}

// setList puts keys or arguments into a global table. The table of the last
// run serves again unless the script left something else in it.
func (s *state) setList(list **glua.LTable, name string, items [][]byte) {
	t := *list
	if t != nil && !isPlainList(t) {
		t = nil
	}
	if t == nil {
		t = s.l.CreateTable(len(items), 0)
		*list = t
		s.globals.RawSetString(name, t)
	}
	shorten(t, len(items))
	for i, item := range items {
		t.RawSetInt(i+1, s.texts.get(item))
	}
}
