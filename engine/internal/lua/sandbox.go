package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Redis makes its globals and libraries read-only inside the interpreter.
// gopher-lua has no such switch, so a script gets *faces*: empty tables that
// pass reads on and refuse writes. Everything that looks at tables without
// metamethods (next, rawget, setmetatable, ...) asks unwrap first. The real
// tables are never handed to a script, except the table of globals, which
// scripts read directly and write never (see rewrite.go).

type library map[string]glua.LValue

const readonlyMessage = "Attempt to modify a readonly table"

// openLibraries fills the globals. A new library is one more line in libraries.
func (s *state) openLibraries() {
	for name, value := range s.baseFunctions() {
		s.globals.RawSetString(name, value)
	}
	s.globals.RawSetString(concatName, s.function(s.concat))
	s.globals.RawSetString(watchName, s.function(s.watchIndex))
	for name, members := range s.libraries() {
		s.addLibrary(name, members)
	}
	s.globals.RawSetString("_VERSION", glua.LString("Lua 5.1"))
	s.openStringMethods()
	if s.chunk == scriptChunk {
		s.setList(&s.keys, "KEYS", nil)
		s.setList(&s.args, "ARGV", nil)
	}
	s.guardGlobals()
	if s.chunk == functionChunk {
		s.openLoading()
	}
}

func (s *state) libraries() map[string]library {
	return map[string]library{
		"redis": s.redisLibrary(), "string": s.stringLibrary(), "table": s.tableLibrary(),
		"math": s.mathLibrary(), "coroutine": s.coroutineLibrary(), "bit": s.bitLibrary(),
		"struct": s.structLibrary(), "cjson": s.jsonLibrary(), "cmsgpack": s.msgpackLibrary(),
	}
}

func (s *state) addLibrary(name string, members library) *glua.LTable {
	real := s.l.CreateTable(0, len(members))
	for member, value := range members {
		real.RawSetString(member, value)
		s.globals.RawSetString(name+"."+member, value)
	}
	s.globals.RawSetString(name, s.face(real))
	return real
}

// isMember says whether "library.member" exists, for the rewriting of scripts.
func (s *state) isMember(name string) bool { return s.globals.RawGetString(name) != glua.LNil }

func (s *state) function(f glua.LGFunction) *glua.LFunction { return s.l.NewFunction(f) }

// functions makes a library of functions.
func (s *state) functions(table map[string]glua.LGFunction) library {
	members := make(library, len(table))
	for name, f := range table {
		members[name] = s.function(f)
	}
	return members
}

func refuseWrite(l *glua.LState) int {
	raise(l, readonlyMessage)
	return 0
}

// face makes the read-only face of a table.
func (s *state) face(real *glua.LTable) *glua.LTable {
	face, meta := s.l.CreateTable(0, 0), s.l.CreateTable(0, 3)
	meta.RawSetString("__index", real)
	meta.RawSetString("__newindex", s.function(refuseWrite))
	face.Metatable = meta
	s.frozen[face] = real
	return face
}

// unwrap gives the table behind a face, or the table itself.
func (s *state) unwrap(t *glua.LTable) *glua.LTable {
	if t.Metatable != glua.LNil {
		if real := s.frozen[t]; real != nil {
			return real
		}
	}
	return t
}

func (s *state) isFrozen(t *glua.LTable) bool {
	return t == s.globals || t.Metatable != glua.LNil && s.frozen[t] != nil
}

// unknownGlobal refuses a global that does not exist. The name may be one
// that rewrite has made of a library and its member.
func (s *state) unknownGlobal(l *glua.LState) int {
	name, _ := toText(l.Get(2))
	if library, member, ok := strings.Cut(name, "."); ok && s.loading != nil {
		name = library
		if s.globals.RawGetString(library) != glua.LNil {
			name = member
		}
	}
	raise(l, "Script attempted to access nonexistent global variable '%s'", name)
	return 0
}

// guardGlobals refuses unknown globals, and makes _G.
func (s *state) guardGlobals() {
	unknown := s.function(s.unknownGlobal)
	visible := s.l.CreateTable(0, 64)
	face := s.face(visible)
	visible.RawSetString("_G", face)
	s.globals.RawSetString("_G", face)
	for k, v := s.globals.Next(glua.LNil); k != glua.LNil; k, v = s.globals.Next(k) {
		if name := string(k.(glua.LString)); isName(name) {
			visible.RawSetString(name, v)
		}
	}
	face.Metatable.(*glua.LTable).RawSetString("__index", s.function(func(l *glua.LState) int {
		if name, ok := l.Get(2).(glua.LString); ok && isName(string(name)) {
			// KEYS and ARGV may be new tables in each run.
			if v := s.globals.RawGetString(string(name)); v != glua.LNil {
				l.Push(v)
				return 1
			}
		}
		return unknown.GFunction(l)
	}))
	meta := s.l.CreateTable(0, 2)
	meta.RawSetString("__index", unknown)
	meta.RawSetString("__newindex", s.function(refuseWrite))
	s.globals.Metatable = meta
}

// isName tells a script's names from those that rewrite makes.
func isName(name string) bool {
	for i := 0; i < len(name); i++ {
		if name[i] == '.' || name[i] == '=' {
			return false
		}
	}
	return true
}

// openStringMethods lets s:len() work, and arithmetic read "010" as ten.
func (s *state) openStringMethods() {
	methods := s.l.CreateTable(0, 16)
	for name, member := range s.stringLibrary() {
		methods.RawSetString(name, member)
	}
	shown := s.l.CreateTable(0, 1)
	shown.RawSetString("__index", s.globals.RawGetString("string"))
	meta := s.l.CreateTable(0, 16)
	meta.RawSetString("__index", methods)
	meta.RawSetString("__metatable", s.face(shown))
	for event, operation := range arithmetic {
		meta.RawSetString(event, s.function(operation))
	}
	s.l.SetMetatable(glua.LString(""), meta)
}
