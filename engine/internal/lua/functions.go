package lua

import (
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/lua/lua51"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
)

// Functions runs the functions of libraries. They have an interpreter of
// their own: what a function keeps in the variables of its library stays from
// call to call, until the interpreter breaks (a stack that overflows). Then
// libraries are loaded again when they are next called.
//
// A library is loaded by running its text, with hardly anything in sight but
// redis.register_function. The globals of the interpreter are exchanged for
// that time, so that functions made while loading see all of them later.
//
// Which libraries there are is the caller's to know.
type Functions struct {
	log   func(level int, msg string)
	state *state
}

// Library is a loaded library.
type Library struct {
	Name, Code string
	Functions  []*Function // in the order of their registration; at least one

	owner *state
}

// Function is one function of a library.
type Function struct {
	Name        string
	Description string
	Described   bool // it has a description, if an empty one
	Flags       Flags
	Library     *Library

	fn *lua51.Function
}

// NewFunctions gives an interpreter without libraries; see New for log.
func NewFunctions(log func(level int, msg string)) *Functions {
	return &Functions{log: logger(log)}
}

// LibraryName reads the name of a library off its first line. The error is an
// Error.
func LibraryName(code string) (string, error) { return libraryName(code) }

// Load runs the text of a library. The error is an Error.
func (f *Functions) Load(h Host, code string) (*Library, error) {
	name, err := libraryName(code)
	if err != nil {
		return nil, err
	}
	library := &Library{Name: name, Code: code}
	if err := f.load(h, library); err != nil {
		return nil, err
	}
	return library, nil
}

func (f *Functions) load(h Host, library *Library) error {
	if f.state == nil {
		f.state = newState(f.log, functionChunk)
	}
	usable, err := f.state.loadLibrary(h, library)
	if err == nil && len(library.Functions) == 0 {
		err = Error("ERR No functions registered")
	}
	if !usable {
		f.Close()
	}
	return err
}

// Forget lets go of a library that will not be called any more.
func (f *Functions) Forget(library *Library) {
	for _, fn := range library.Functions {
		if f.state != nil && library.owner == f.state {
			delete(f.state.kept, fn.fn)
		}
	}
}

// Close forgets all libraries and frees the interpreter.
func (f *Functions) Close() {
	f.state = nil
}

// Run calls a function and appends its reply, or an error, to out.
func (f *Functions) Run(h Host, fn *Function, keys, args [][]byte, out *resp.Writer) {
	if err := f.revive(h, fn.Library); err != nil {
		out.Error(err.Error())
		return
	}
	if !f.state.run(h, fn.fn, fn.Name, keys, args, out) {
		f.Close()
	}
}

// revive loads a library again whose interpreter is gone.
func (f *Functions) revive(h Host, library *Library) error {
	if f.state != nil && library.owner == f.state {
		return nil
	}
	again := &Library{Name: library.Name, Code: library.Code}
	if err := f.load(h, again); err != nil {
		return err
	}
	for _, fn := range library.Functions {
		anew := again.find(fn.Name)
		if anew == nil {
			return Error("ERR Function not found")
		}
		fn.fn = anew.fn
	}
	library.owner = f.state
	return nil
}

func (library *Library) find(name string) *Function {
	for _, fn := range library.Functions {
		if strings.EqualFold(fn.Name, name) {
			return fn
		}
	}
	return nil
}

// loadLibrary runs a library's text. It reports whether the interpreter can go on.
func (s *state) loadLibrary(h Host, library *Library) (usable bool, err error) {
	proto, err := s.compile(library.Code, functionChunk, nil)
	if err != nil {
		return true, Error("ERR Error compiling function: " + err.Error())
	}
	s.vm.SetGlobals(s.loadGlobals)
	s.loading, library.owner = library, s
	s.begin(h, s.vm.Load(proto))
	defer s.end()
	thrown, usable := s.protected(func() {
		s.l.Push(s.main.Value())
		s.l.Call(0, 0)
	})
	s.loading = nil
	s.vm.SetGlobals(s.callGlobals)
	if thrown == nil {
		return usable, nil
	}
	for _, fn := range library.Functions {
		delete(s.kept, fn.fn)
	}
	return usable, Error("ERR Error registering functions: " + s.failure(thrown))
}

// openLoading prepares the globals that a library sees while it is loaded.
func (s *state) openLoading() {
	s.kept = map[*lua51.Function]struct{}{}
	s.callGlobals = s.vm.Globals()
	redis := library{"register_function": s.function(s.registerFunction)}
	for key, v := range s.l.All(s.callGlobals.GetString("redis").AsTable()) {
		member, _ := key.AsString()
		if strings.EqualFold(member, "log") || strings.HasPrefix(member, "LOG_") || strings.HasPrefix(member, "REDIS_") {
			redis[member] = v
		}
	}
	s.loadGlobals = s.vm.NewTable(0, 1)
	s.loadGlobals.SetString(s.vm, "redis", s.table(redis, s.guard()).Value())
	s.loadGlobals.SetMeta(s.guard())
	s.loadGlobals.Protect()
}
