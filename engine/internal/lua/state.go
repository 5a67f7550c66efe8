package lua

import (
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// A state is one interpreter with its libraries. It serves script after script.
// That is safe because nothing a script does outlives it: globals and libraries
// cannot be changed (see sandbox.go), and run puts back what could (KEYS, ARGV,
// the settings of cjson, the protocol); so what it has made serves the next
// script. What functions of libraries keep in their variables does stay; they
// have a state to themselves (see functions.go).

// The chunks: how errors name the text that a state runs.
const (
	scriptChunk   = "@user_script"
	functionChunk = "@user_function"
)

// maxScriptBytes bounds what a script holds.
const maxScriptBytes = 1 << 30

type state struct {
	vm    *lua51.State
	l     *lua51.Thread // the one that is no coroutine
	chunk string
	log   func(level int, msg string)
	known map[string]string // the names that libraries have, for the compiler

	// Of the state of libraries only.
	kept                     map[*lua51.Function]struct{} // the registered functions
	loading                  *Library
	callGlobals, loadGlobals *lua51.Table

	// What belongs to the running script.
	host       Host
	main       *lua51.Function
	reply      resp.Writer
	replyStart int // where the reply of the script begins
	argv       [][]byte
	arena      []byte
	random     lcg48
	json       jsonConfig
	idle       *matcher
	scratch    []byte // of outputs
}

func newState(log func(level int, msg string), chunk string) *state {
	s := &state{vm: lua51.NewState(maxScriptBytes), log: log, chunk: chunk}
	s.l = s.vm.Main()
	s.vm.Interrupt = func(steps int) string {
		if s.host == nil { // the libraries are being built
			return ""
		}
		return s.host.Interrupt(steps)
	}
	s.vm.Heavy = func() {
		if s.host != nil {
			s.host.Heavy(maxScriptBytes)
		}
	}
	s.vm.Beside = func(work func()) func() bool { return s.host.Beside(work) }
	s.vm.Roots = s.roots
	s.random = firstRandom
	s.openLibraries()
	if chunk == scriptChunk {
		s.vm.Recycle()
	}
	return s
}

// roots adds what Go holds for scripts.
func (s *state) roots(add func(lua51.Value)) {
	add(s.main.Value())
	for fn := range s.kept {
		add(fn.Value())
	}
	add(s.callGlobals.Value())
}

// run calls a script or function, which errors name name, and appends its
// reply. It reports whether the interpreter can serve the next one.
func (s *state) run(h Host, fn *lua51.Function, name string, keys, args [][]byte, out *resp.Writer) (usable bool) {
	s.begin(h, fn)
	defer s.end()
	start := out.Len()
	thrown, usable := s.protected(func() {
		n := 0
		s.l.Push(fn.Value())
		if s.chunk == scriptChunk {
			s.vm.Globals().SetString(s.vm, "KEYS", s.list(keys))
			s.vm.Globals().SetString(s.vm, "ARGV", s.list(args))
		} else {
			s.l.Push(s.list(keys))
			s.l.Push(s.list(args))
			n = 2
		}
		s.l.Call(n, 1)
		s.writeReply(s.l.Pop(), out)
	})
	if thrown != nil {
		out.Truncate(start)
		s.writeFailure(thrown, name, out)
	}
	return usable
}

func (s *state) begin(h Host, fn *lua51.Function) {
	s.host, s.main = h, fn
	s.json.reset()
	s.reply.Proto = 2
	s.vm.Start()
}

// end lets go of what a run has made.
func (s *state) end() {
	if s.chunk == scriptChunk {
		s.vm.Globals().SetString(s.vm, "KEYS", lua51.False)
		s.vm.Globals().SetString(s.vm, "ARGV", lua51.False)
	}
	s.vm.Reset()
	s.host, s.main = nil, nil
	if cap(s.arena) > 64<<10 {
		s.arena = nil
	}
	if s.reply.Len() > 64<<10 {
		s.reply.Swap(nil)
	}
}

// protected runs something that may raise an error. A fault in the interpreter
// costs that, and not the process.
func (s *state) protected(try func()) (thrown *lua51.Thrown, usable bool) {
	usable = true
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case *lua51.Thrown:
			thrown = fault
		case error:
			thrown, usable = &lua51.Thrown{Value: lua51.String("fault in the interpreter: " + fault.Error()), Line: -1}, false
		default:
			panic(fault)
		}
	}()
	try()
	return nil, true
}

// writeFailure writes the error that ended a script, as Redis 7.0 words it.
func (s *state) writeFailure(thrown *lua51.Thrown, name string, out *resp.Writer) {
	source := thrown.Source
	if source == "" {
		source = s.chunk
	}
	out.Error(cText(s.failure(thrown)) + " script: " + name + ", on " + cText(source) + ":" + strconv.Itoa(thrown.Line) + ".")
}

// failure is the message of an error, with its code.
func (s *state) failure(thrown *lua51.Thrown) string {
	if t := thrown.Value.AsTable(); t != nil {
		if message, ok := t.GetString("err").ToText(); ok {
			return strings.TrimRight(inLine(message), "\r\n")
		}
		return "ERR unknown error"
	}
	return strings.TrimRight("ERR "+inLine(s.display(thrown.Value)), "\r\n")
}

// list makes a table of keys or arguments.
func (s *state) list(items [][]byte) lua51.Value {
	t := s.vm.NewList(len(items))
	for i, item := range items {
		t.SetInt(s.vm, i+1, s.vm.Text(item))
	}
	return t.Value()
}

// maxSourceBytes bounds the text of a script.
const maxSourceBytes = 4 << 20

// compile compiles a text, which messages name by chunk. If it is done in a run,
// that is told by pass how far it is.
func (s *state) compile(source, chunk string, pass func(steps int)) (*lua51.Proto, error) {
	if len(source) > maxSourceBytes {
		return nil, lua51.SyntaxError(lua51.NoMemory)
	}
	return lua51.Compile(skipShebang(source), chunk, s.known, pass)
}

func skipShebang(source string) string {
	if !strings.HasPrefix(source, "#!") {
		return source
	}
	if end := strings.IndexByte(source, '\n'); end >= 0 {
		return source[end:]
	}
	return ""
}
